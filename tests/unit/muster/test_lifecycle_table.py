"""The next step of a job, as a table."""

from dataclasses import replace

import pytest

from job_scenes import (
    FAILED,
    NOW,
    PENDING,
    RUNNING,
    SEEN,
    STARTING,
    ended,
    failed,
    pod,
    step,
)
from muster.job_status import Outcome, Phase
from muster.restarts import Budgets, Loss, NodeState
from muster.steps import Create, Delete, Expire, JobFacts, Release

DELETED = JobFacts(deleted_at=NOW - 1)
HELD = JobFacts(deleted_at=NOW - 1, is_held=True)

# The claim: the scene, the phase after it, whether the placement is still there, and the deeds.
TABLE = {
    "a job that holds nothing waits": (
        (PENDING,),
        {},
        (Phase.PENDING, False, ()),
    ),
    "leftovers of an earlier attempt go": (
        (PENDING, pod(0), pod(1, "Failed")),
        {},
        (Phase.PENDING, False, (Delete("p-1-0", "u-1-0"), Delete("p-1-1", "u-1-1"))),
    ),
    "what is on its way out is not deleted again": (
        (PENDING, pod(0, deleting_since=NOW)),
        {},
        (Phase.PENDING, False, ()),
    ),
    "a waiting job can be suspended": (
        (PENDING,),
        {"job": JobFacts(is_suspended=True)},
        (Phase.SUSPENDED, False, ()),
    ),
    "a suspended one can be resumed": (
        (replace(PENDING, phase=Phase.SUSPENDED),),
        {},
        (Phase.PENDING, False, ()),
    ),
    "a suspended one rests": (
        (replace(PENDING, phase=Phase.SUSPENDED),),
        {"job": JobFacts(is_suspended=True)},
        (Phase.SUSPENDED, False, ()),
    ),
    "a placement without pods is carried out": (
        (STARTING,),
        {"job": JobFacts()},
        (Phase.STARTING, True, (Create(),)),
    ),
    "a missing pod is created": (
        (STARTING, pod(0)),
        {"job": JobFacts(seen=frozenset({0}))},
        (Phase.STARTING, True, (Create(),)),
    ),
    "but not beside one of an earlier attempt": (
        (STARTING, pod(1, attempt=0, deleting_since=NOW)),
        {"job": JobFacts()},
        (Phase.STARTING, True, ()),
    ),
    "a gang that starts is waited for": (
        (STARTING, pod(0), pod(1, "Pending")),
        {},
        (Phase.STARTING, True, ()),
    ),
    "a gang runs when all of it does": (
        (STARTING, pod(0), pod(1)),
        {},
        (Phase.RUNNING, True, ()),
    ),
    "or has, in part, already ended well": (
        (STARTING, pod(0), pod(1, "Succeeded")),
        {},
        (Phase.RUNNING, True, ()),
    ),
    "a gang that runs is left alone": (
        (RUNNING, pod(0), pod(1)),
        {},
        (Phase.RUNNING, True, ()),
    ),
    "a gang succeeds when all of it has": (
        (RUNNING, pod(0, "Succeeded"), pod(1, "Succeeded")),
        {},
        (Phase.SUCCEEDED, False, ()),
    ),
    "even if nobody saw it run": (
        (STARTING, pod(0, "Succeeded"), pod(1, "Succeeded")),
        {},
        (Phase.SUCCEEDED, False, ()),
    ),
    "one that fails takes the gang with it": (
        (RUNNING, failed(0), pod(1)),
        {},
        (Phase.RESTARTING, True, (Delete("p-1-1", "u-1-1"),)),
    ),
    "if all have failed, the restart needs no wait": (
        (RUNNING, failed(0), failed(1)),
        {},
        (Phase.RESTARTING, False, (Delete("p-1-0", "u-1-0"), Delete("p-1-1", "u-1-1"))),
    ),
    "with no budget left the gang is taken down first": (
        (RUNNING, failed(0), pod(1)),
        {"job": replace(SEEN, budgets=Budgets(user=0))},
        (Phase.RUNNING, True, (Delete("p-1-1", "u-1-1"),)),
    ),
    "and the job fails when nothing of it runs": (
        (ended(RUNNING, Outcome.FAILED, user=4), failed(0)),
        {},
        (Phase.FAILED, False, ()),
    ),
    "a pod that vanished while it ran is lost": (
        (RUNNING, pod(0)),
        {"job": JobFacts()},
        (Phase.RESTARTING, True, (Delete("p-1-0", "u-1-0"),)),
    ),
    "a pod that was seen and vanished is lost": (
        (STARTING, pod(0)),
        {},
        (Phase.RESTARTING, True, (Delete("p-1-0", "u-1-0"),)),
    ),
    "an attempt that ends waits for its last pod": (
        (ended(RUNNING, Outcome.LOST), pod(0, deleting_since=NOW)),
        {},
        (Phase.RUNNING, True, ()),
    ),
    "by force, where its node is gone": (
        (ended(RUNNING, Outcome.LOST), pod(0, deleting_since=NOW, node_state=NodeState.GONE)),
        {},
        (Phase.RUNNING, True, (Delete("p-1-0", "u-1-0", by_force=True),)),
    ),
    "not yet, where its node is silent": (
        (
            ended(RUNNING, Outcome.LOST),
            pod(0, deleting_since=NOW - 59, node_state=NodeState.UNREACHABLE),
        ),
        {},
        (Phase.RUNNING, True, ()),
    ),
    "by force, where it has been silent for long": (
        (
            ended(RUNNING, Outcome.LOST),
            pod(0, deleting_since=NOW - 60, node_state=NodeState.UNREACHABLE),
        ),
        {},
        (Phase.RUNNING, True, (Delete("p-1-0", "u-1-0", by_force=True),)),
    ),
    "a refused gang is taken back": (
        (STARTING, pod(0, "Pending")),
        {"job": replace(SEEN, refusal="exceeded quota")},
        (Phase.STARTING, True, (Delete("p-1-0", "u-1-0"),)),
    ),
    "and waits for another try": (
        (ended(STARTING, Outcome.REFUSED),),
        {},
        (Phase.PENDING, False, ()),
    ),
    "a pod that its kubelet refuses is a refusal": (
        (STARTING, pod(0, "Failed", loss=Loss(reason="OutOfcpu")), pod(1)),
        {},
        (Phase.STARTING, True, (Delete("p-1-1", "u-1-1"),)),
    ),
    "a suspended gang is stopped": (
        (RUNNING, pod(0), pod(1)),
        {"job": replace(SEEN, is_suspended=True)},
        (Phase.RUNNING, True, (Delete("p-1-0", "u-1-0"), Delete("p-1-1", "u-1-1"))),
    ),
    "and then suspended": (
        (ended(RUNNING, Outcome.SUSPENDED),),
        {"job": JobFacts(is_suspended=True)},
        (Phase.SUSPENDED, False, ()),
    ),
    "a deleted job is stopped": (
        (RUNNING, pod(0), pod(1)),
        {"job": HELD},
        (Phase.RUNNING, True, (Delete("p-1-0", "u-1-0"), Delete("p-1-1", "u-1-1"))),
    ),
    "and then cancelled": (
        (ended(RUNNING, Outcome.CANCELLED),),
        {"job": HELD},
        (Phase.CANCELLED, False, ()),
    ),
    "a deleted job without a gang is cancelled": (
        (PENDING,),
        {"job": HELD},
        (Phase.CANCELLED, False, ()),
    ),
    "one that has just succeeded has succeeded": (
        (RUNNING, pod(0, "Succeeded"), pod(1, "Succeeded")),
        {"job": HELD},
        (Phase.SUCCEEDED, False, ()),
    ),
    "nothing is created for a deleted job": (
        (STARTING,),
        {"job": HELD},
        (Phase.CANCELLED, False, ()),
    ),
    "a deleted job waits for its last pod": (
        (FAILED, pod(0, deleting_since=NOW)),
        {"job": HELD},
        (Phase.FAILED, False, ()),
    ),
    "the recorder has its time": (
        (replace(FAILED, finished_at=NOW - 29),),
        {"job": HELD},
        (Phase.FAILED, False, ()),
    ),
    "and no more than that": (
        (FAILED,),
        {"job": replace(HELD, deleted_at=NOW - 30)},
        (Phase.FAILED, False, (Release(),)),
    ),
    "a job that nobody holds goes by itself": (
        (FAILED,),
        {"job": DELETED},
        (Phase.FAILED, False, ()),
    ),
    "what is over stays over without its pods": (
        (FAILED,),
        {},
        (Phase.FAILED, False, ()),
    ),
    "its pods that ended stay for their logs": (
        (FAILED, failed(0), pod(1)),
        {},
        (Phase.FAILED, False, (Delete("p-1-1", "u-1-1"),)),
    ),
    "it stays as long as it was asked to": (
        (FAILED,),
        {"job": JobFacts(ttl_seconds=101)},
        (Phase.FAILED, False, ()),
    ),
    "and no longer": (
        (FAILED,),
        {"job": JobFacts(ttl_seconds=100)},
        (Phase.FAILED, False, (Expire(),)),
    ),
    "a final phase gives back a placement that was left": (
        (replace(FAILED, placement=STARTING.placement),),
        {},
        (Phase.FAILED, False, ()),
    ),
    "a placement of no attempt is given up with its pods": (
        (replace(STARTING, attempts=()), pod(0)),
        {"job": HELD},
        (Phase.STARTING, True, (Delete("p-1-0", "u-1-0"),)),
    ),
}


@pytest.mark.parametrize("claim", TABLE)
def test_next(claim: str) -> None:
    scene, more, want = TABLE[claim]
    got = step(*scene, **more)  # type: ignore[arg-type]

    assert want == (got.status.phase, got.status.placement is not None, got.deeds)
