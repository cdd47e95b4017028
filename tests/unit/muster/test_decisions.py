"""What a plan decided for one job, as the status that commits it."""

from dataclasses import replace

from job_scenes import NOW, PENDING, RUNNING
from muster.claims import Ask, Asked, Claim
from muster.decisions import Decision, placed, with_growth
from muster.job_status import Growth, JobStatus, Phase
from muster.scheduling.plan import Admit, Grow
from muster.scheduling.snapshot import Displaced, Took

ASK = Ask("c1", NOW, NOW + 60, (Asked("team/low", "u-low", 1),))
CLAIM = Claim(("n1", "n2"), "1 job leaves", (ASK,))
START = Admit("team/train", ("n1", "n1", "n2"), "3 GPUs on 2 nodes", ("team/big",))
EVICTED = replace(
    PENDING, displaced=Displaced("team/other", 5.0), is_returning=True, claim=CLAIM, attempt=1
)


def applied(status: JobStatus, **parts: object) -> JobStatus:
    decision = Decision(NOW, 7.0, **parts)  # type: ignore[arg-type]
    return decision.applied(status, gpus_per_replica=2, port=20_000)


def test_a_start_commits_the_whole_gang_and_ends_what_came_before() -> None:
    status = applied(EVICTED, start=START)

    assert status.placement is not None
    assert (("n1", "n1", "n2"), ("team/big",), 1) == (
        status.placement.nodes,
        status.placement.behind,
        status.placement.round,
    )
    assert (Phase.STARTING, 2, 6, "0/3") == (
        status.phase,
        status.attempt,
        status.attempts[-1].gpus,
        status.gang,
    )
    assert (None, None, False) == (status.claim, status.displaced, status.is_returning)


def test_what_it_took_at_its_reserved_time_is_remembered_with_the_start() -> None:
    claiming = replace(PENDING, claim=replace(CLAIM, took=("b",)))
    status = applied(claiming, start=START)

    assert status.placement is not None
    assert Took(("b",), 7.0) == status.placement.took


def test_a_claim_is_written_and_a_further_one_is_added() -> None:
    once = applied(PENDING, claim=CLAIM)
    twice = applied(once, claim=replace(CLAIM, nodes=("n3",)))

    assert CLAIM == once.claim
    assert twice.claim is not None
    assert (("n3",), 2) == (twice.claim.nodes, len(twice.claim.asks))


def test_a_claim_is_given_up() -> None:
    assert applied(EVICTED, withdraws=True).claim is None
    assert applied(EVICTED, withdraws=True, claim=CLAIM).claim == CLAIM


def test_growth_adds_ranks_and_begins_a_round() -> None:
    claiming = replace(RUNNING, claim=CLAIM)
    status = applied(claiming, growth=Grow("team/train", ("n3", "n3"), ("team/big",)))

    assert status.placement is not None
    assert ("n1", "n2", "n3", "n3") == status.placement.nodes
    assert (Growth(2, NOW, 2),) == status.placement.grown
    assert ("team/big",) == status.placement.grown_behind
    assert (2, 4, 4, None) == (
        status.round,
        status.attempts[-1].replicas,
        status.attempts[-1].gpus,
        status.claim,
    )
    assert status.attempts[-1].nodes == status.placement.nodes


def test_nothing_grows_that_holds_nothing() -> None:
    assert PENDING == with_growth(PENDING, Grow("team/train", ("n3",)), now=NOW)


def test_a_decision_says_where_pods_are_to_be_created() -> None:
    assert START.nodes == Decision(NOW, 0.0, start=START).nodes
    assert ("n3",) == Decision(NOW, 0.0, growth=Grow("team/train", ("n3",))).nodes
    assert () == Decision(NOW, 0.0, claim=CLAIM).nodes


def test_the_replicas_of_a_placement_have_their_times_and_incarnations() -> None:
    placement = placed(PENDING, ("n1", "n2"), "", gpus=2, port=1, now=10.0).placement
    assert placement is not None
    grown = replace(
        placement,
        nodes=("n1", "n2", "n3", "n4"),
        grown=(Growth(2, 20.0, 3, 25.0), Growth(3, 30.0, 5)),
    )

    assert [10.0, 10.0, 20.0, 30.0] == [grown.held_since(rank) for rank in range(4)]
    assert [0, 0, 2, 4] == [grown.incarnation(rank) for rank in range(4)]
    assert (4, 3) == (grown.size, grown.settled)
    assert (2, 2) == (replace(grown, keeps=2).size, replace(grown, keeps=2).settled)
