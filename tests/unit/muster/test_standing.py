"""A job as the scheduler sees it, with its past."""

from dataclasses import replace
from typing import Any

from muster.claims import Claim, Departure
from muster.decisions import placed
from muster.job_status import JobStatus
from muster.parse import gang_of, job_of
from muster.scheduling.snapshot import NOWHERE, Displaced, Leaving, Run, Took
from muster.standing import Surrounding, standing

TEMPLATE = {"spec": {"containers": [{"name": "train"}]}}


def a_job(**spec: Any) -> Any:
    metadata = {"namespace": "team", "name": "train"}
    return job_of({"metadata": metadata, "spec": {"replicas": 3, "template": TEMPLATE, **spec}})


WAITING = JobStatus(
    attained=12.0,
    ran=3.0,
    is_returning=True,
    displaced=Displaced("team/other", 5.0),
    claim=Claim(("n1", "n2", "n3")),
)
PLACED = placed(
    WAITING,
    ("n1", "n1", "n2"),
    "",
    gpus=3,
    port=1,
    now=100.0,
    behind=("team/big",),
    took=Took(("b",), 7.0),
)


def test_one_that_waits_keeps_what_became_of_it() -> None:
    gang = standing(a_job(), WAITING, Surrounding(held_back="comes after a"))
    want = replace(
        gang_of(a_job(), None),
        held_back="comes after a",
        attained=12.0,
        ran=3.0,
        is_returning=True,
        displaced=Displaced("team/other", 5.0),
        claim=("n1", "n2", "n3"),
    )

    assert want == gang


def test_one_that_runs_tells_of_its_run() -> None:
    status = replace(PLACED, claim=None, saved_at=150.0, eta=900.0)
    departures = (Departure("c1", "team/high", None, 200.0),)
    gang = standing(a_job(), status, Surrounding(departures, finished=(1, 7)))

    assert ("n1", NOWHERE, "n2") == gang.placement
    assert ((1,), ()) == (gang.finished, gang.lost)
    assert (Leaving("team/high", None, 200.0),) == gang.leaving
    assert gang.run == Run(100.0, 150.0, 900.0, ("team/big",), (), Took(("b",), 7.0), None)
    assert (False, None, ()) == (gang.is_returning, gang.displaced, gang.claim)


def test_a_checkpoint_of_an_earlier_run_does_not_count_for_this_one() -> None:
    gang = standing(a_job(), replace(PLACED, saved_at=99.0), Surrounding())

    assert gang.run is not None
    assert gang.run.saved is None


def test_one_that_may_not_grow_asks_for_what_it_has() -> None:
    job = a_job(replicas=5, minReplicas=2)

    assert (3, 2) == _sizes(standing(job, PLACED, Surrounding(may_grow=False)))
    assert (5, 2) == _sizes(standing(job, PLACED, Surrounding()))


def _sizes(gang: Any) -> tuple[int, int]:
    return gang.replicas, gang.min_replicas
