"""Which jobs hang together."""

from dataclasses import replace

from muster.claims import Ask, Asked, Claim, Departure
from muster.decisions import placed
from muster.job_status import JobStatus
from muster_operator.ties import Ties

PLACED = placed(JobStatus(), ("n1", "n2", "n3"), "", gpus=3, port=1, now=0.0)


def a_claim(name: str, *victims: Asked) -> Claim:
    return Claim(("n1",), "", (Ask(name, 0.0, 60.0, victims),))


WHOLE = Asked("team/low", "u-low", 1)


def departures(ties: Ties, status: JobStatus = PLACED, uid: str = "u-low") -> list[Departure]:
    return list(ties.departures("team/low", uid, status))


def test_a_claim_concerns_those_that_it_names_and_named() -> None:
    ties = Ties()

    assert ["team/low"] == ties.claim("team/high", a_claim("c1", WHOLE))
    assert [] == ties.claim("team/high", a_claim("c1", WHOLE))
    assert ["team/low", "team/other"] == ties.claim(
        "team/high", a_claim("c2", Asked("team/other", "u", 1))
    )
    assert [] == departures(ties)
    assert ["team/other"] == ties.claim("team/high", None)


def test_a_victim_knows_for_whom_it_leaves() -> None:
    ties = Ties()
    ties.claim("team/z", a_claim("c1", WHOLE))
    ties.claim("team/high", a_claim("c2", replace(WHOLE, ranks=(2,))))

    assert [
        Departure("c2", "team/high", (2,), 60.0),
        Departure("c1", "team/z", None, 60.0),
    ] == departures(ties)

    ties.claim("team/z", None)

    assert ["c2"] == [each.id for each in departures(ties)]


def test_another_attempt_or_job_of_that_name_is_not_meant() -> None:
    ties = Ties()
    ties.claim("team/high", a_claim("c1", WHOLE))
    again = placed(PLACED, ("n1",), "", gpus=1, port=1, now=1.0)

    assert [] == departures(ties, again)
    assert [] == departures(ties, uid="u-new")
    assert [] == departures(ties, JobStatus())


def test_surplus_is_given_once() -> None:
    ties = Ties()
    ties.claim("team/high", a_claim("c1", replace(WHOLE, ranks=(2, 3))))

    # Of what it has: rank 3 is gone already.
    assert [(2,)] == [each.ranks for each in departures(ties)]
    assert PLACED.placement is not None
    smaller = replace(PLACED, placement=replace(PLACED.placement, nodes=("n1", "n2")))
    assert [] == departures(ties, smaller)
    # Grown again since, and not asked again.
    done = replace(PLACED, placement=replace(PLACED.placement, yielded=("c1",)))
    assert [] == departures(ties, done)


def test_followers_are_found_and_forgotten() -> None:
    ties = Ties()
    ties.comes_after("team/b", "team/a")
    ties.comes_after("team/c", "team/a")

    assert ("team/b", "team/c") == ties.followers("team/a")
    assert {"team/b": "team/a", "team/c": "team/a"} == ties.predecessors()

    ties.comes_after("team/b", "team/c")
    ties.comes_after("team/c", None)

    assert () == ties.followers("team/a")
    assert ("team/b",) == ties.followers("team/c")
