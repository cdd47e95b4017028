"""An elastic gang that changes its size, step by step."""

from dataclasses import replace

from job_scenes import NOW, RUNNING, SEEN, STARTING, pod
from muster.claims import Departure
from muster.decisions import with_growth
from muster.job_status import JobStatus, Outcome, Phase
from muster.lifecycle import next_step
from muster.losses import PodFacts
from muster.scheduling.plan import Grow
from muster.steps import Create, Delete, JobFacts, Rules, Scene, Step

SURPLUS = Departure("c2", "team/other", (1,), NOW)
GROWN = with_growth(RUNNING, Grow("team/train", ("n3", "n3")), now=NOW)
RULES = Rules(start_deadline=100.0, unschedulable_wait=10.0)


def step(status: JobStatus, *pods: PodFacts, job: JobFacts = SEEN, now: float = NOW) -> Step:
    return next_step(Scene(job, status, pods, now, RULES))


def test_surplus_leaves_in_two_writes() -> None:
    asked = replace(SEEN, departures=(SURPLUS,))
    first = step(RUNNING, pod(0), pod(1), job=asked)

    assert first.status.placement is not None
    assert (1, ("n1", "n2")) == (first.status.placement.keeps, first.status.placement.nodes)
    assert (2, "1/1", Phase.RUNNING) == (
        first.status.round,
        first.status.gang,
        first.status.phase,
    )
    assert (Delete("p-1-1", "u-1-1"),) == first.deeds
    assert ["Shrinking"] == [story.reason for story in first.stories]

    waiting = step(first.status, pod(0), pod(1, deleting_since=NOW), job=asked)

    assert (first.status, ()) == (waiting.status, waiting.deeds)

    second = step(first.status, pod(0), job=asked, now=NOW + 10)

    placement, attempt = second.status.placement, second.status.attempts[-1]
    assert placement is not None
    assert (("n1",), None, ("c2",)) == (placement.nodes, placement.keeps, placement.yielded)
    assert (("n1",), 1, 1) == (attempt.nodes, attempt.replicas, attempt.gpus)
    # One GPU, from its decision until its pod was gone.
    assert 20.0 == second.status.attained
    assert ["Shrunk"] == [story.reason for story in second.stories]


def test_a_gang_that_starts_gives_up_surplus_at_once() -> None:
    asked = replace(JobFacts(), departures=(replace(SURPLUS, deadline=NOW + 60),))
    got = step(STARTING, pod(0, "Pending"), job=asked)

    assert got.status.placement is not None
    assert (1, Phase.STARTING) == (got.status.placement.keeps, got.status.phase)


def test_one_that_shrinks_can_succeed_without_the_others() -> None:
    asked = replace(SEEN, departures=(SURPLUS,))
    shrinking = step(RUNNING, pod(0), pod(1), job=asked).status

    assert Phase.SUCCEEDED is step(shrinking, pod(0, "Succeeded"), job=asked).status.phase


def test_what_is_given_is_created_beside_the_others() -> None:
    got = step(GROWN, pod(0), pod(1))

    assert ((Create(),), GROWN) == (got.deeds, got.status)


def test_it_is_of_its_new_size_when_all_run() -> None:
    starting = step(GROWN, pod(0), pod(1), pod(2, "Pending"), pod(3))

    assert (GROWN, NOW + 100.0) == (starting.status, starting.wake_at)

    got = step(GROWN, pod(0), pod(1), pod(2), pod(3), now=NOW + 5)

    assert got.status.placement is not None
    assert ("4/4", 4) == (got.status.gang, got.status.placement.settled)
    assert "runs with 4 replicas, 2 before" == got.stories[0].message


def test_a_second_growth_is_marked_apart() -> None:
    settled = step(GROWN, pod(0), pod(1), pod(2), pod(3), now=NOW + 5).status
    again = with_growth(settled, Grow("team/train", ("n4",)), now=NOW + 6)
    pods = [pod(rank) for rank in range(5)]
    got = step(again, *pods, now=NOW + 8)

    assert got.status.placement is not None
    assert [NOW + 5, NOW + 8] == [growth.running_at for growth in got.status.placement.grown]


def test_what_is_refused_is_given_back_and_not_taken_again_soon() -> None:
    refused = replace(SEEN, refusal="exceeded quota")
    got = step(GROWN, pod(0), pod(1), job=refused)

    assert got.status.placement is not None
    assert (2, NOW + 300.0) == (got.status.placement.keeps, got.status.retry_at)
    assert None is got.status.attempts[-1].outcome
    assert "exceeded quota" in got.stories[0].message

    back = step(got.status, pod(0), pod(1), job=SEEN, now=NOW + 1)

    assert back.status.placement is not None
    assert (("n1", "n2"), ()) == (back.status.placement.nodes, back.status.placement.grown)
    assert NOW + 300.0 == step(back.status, pod(0), pod(1), now=NOW + 2).wake_at
    assert None is step(back.status, pod(0), pod(1), now=NOW + 301).wake_at


def test_what_does_not_start_in_time_is_given_back() -> None:
    late = step(GROWN, pod(0), pod(1), pod(2, "Pending"), pod(3), now=NOW + 100)

    assert late.status.placement is not None
    assert 2 == late.status.placement.keeps
    assert "they did not start in time" in late.stories[0].message

    pending = pod(2, "Pending", waiting="Unschedulable: no room", is_unschedulable=True)
    early = step(GROWN, pod(0), pod(1), pending, pod(3), now=NOW + 10)

    assert early.status.placement is not None
    assert 2 == early.status.placement.keeps
    assert "Unschedulable: no room" in early.stories[0].message


def test_a_new_replica_that_was_there_and_vanished_is_lost_with_the_gang() -> None:
    seen = JobFacts(seen=frozenset(range(4)))
    got = step(GROWN, pod(0), pod(1), pod(2), job=seen)

    assert Outcome.LOST is got.status.attempts[-1].outcome


def test_a_growth_that_was_cut_in_half_is_settled_at_what_is_left() -> None:
    asked = replace(SEEN, departures=(Departure("c3", "team/other", (3,), NOW),))
    shrinking = step(GROWN, pod(0), pod(1), pod(2), pod(3), job=asked).status
    left = step(shrinking, pod(0), pod(1), pod(2), job=asked).status

    assert left.placement is not None
    assert (("n1", "n2", "n3"), 2) == (left.placement.nodes, left.placement.settled)
    assert "3/3" == step(left, pod(0), pod(1), pod(2)).status.gang
