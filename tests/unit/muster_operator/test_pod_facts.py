"""What is read from a pod."""

from typing import Any

import pytest

from muster.restarts import Loss
from muster_operator.pod_facts import facts_of, owner_of

T0, T1 = "2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z"
S0, S1 = 1767225600.0, 1767225609.0


def pod(status: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    labels = {"muster.dev/attempt": "2", "muster.dev/replica": "7"}
    return {
        "metadata": {"name": "p", "uid": "u", "labels": labels, **metadata},
        "status": status,
    }


def container(state: str, **facts: Any) -> dict[str, Any]:
    return {"name": "c", "state": {state: facts}}


def ended(code: int, at: str = T1, **facts: Any) -> dict[str, Any]:
    return container("terminated", exitCode=code, startedAt=T0, finishedAt=at, **facts)


TRACEBACK = "Traceback (most recent call last):\n  File\nValueError: no such column\n\n"
TABLE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a new pod": ({}, {"phase": "Pending", "started_at": None, "waiting": ""}),
    "a pod that runs": (
        {"phase": "Running", "containerStatuses": [container("running", startedAt=T0)]},
        {"phase": "Running", "started_at": S0, "finished_at": None},
    ),
    "a pod that ended well": (
        {"phase": "Succeeded", "containerStatuses": [ended(0, T0), ended(0)]},
        {"phase": "Succeeded", "started_at": S0, "finished_at": S1, "loss": Loss()},
    ),
    "a script that raised": (
        {
            "phase": "Failed",
            "containerStatuses": [ended(1, reason="Error", message=TRACEBACK), ended(0)],
        },
        {"loss": Loss(exit_code=1), "message": "ValueError: no such column"},
    ),
    "the container that failed first": (
        {"phase": "Failed", "containerStatuses": [ended(143, T1), ended(3, T0)]},
        {"loss": Loss(exit_code=3)},
    ),
    "an init container that failed": (
        {"phase": "Failed", "initContainerStatuses": [ended(2)]},
        {"loss": Loss(exit_code=2)},
    ),
    "out of memory": (
        {"phase": "Failed", "containerStatuses": [ended(137, reason="OOMKilled", signal=9)]},
        {"loss": Loss(exit_code=137, signal=9, reason="OOMKilled")},
    ),
    "refused by its kubelet": (
        {"phase": "Failed", "reason": "OutOfcpu", "message": "no room"},
        {"loss": Loss(reason="OutOfcpu"), "message": "no room"},
    ),
    "taken away": (
        {
            "phase": "Running",
            "conditions": [{"type": "DisruptionTarget", "reason": "EvictionByEvictionAPI"}],
        },
        {"loss": Loss(disruption="EvictionByEvictionAPI")},
    ),
    "taken away, and ended by it": (
        {
            "phase": "Failed",
            "conditions": [{"type": "DisruptionTarget", "reason": "PreemptionByScheduler"}],
            "containerStatuses": [ended(143)],
        },
        {"loss": Loss(exit_code=143, disruption="PreemptionByScheduler")},
    ),
    "an image that is not there": (
        {
            "phase": "Pending",
            "containerStatuses": [
                container("waiting", reason="ErrImagePull", message="no such\nimage")
            ],
        },
        {"waiting": "ErrImagePull: no such image", "is_unschedulable": False},
    ),
    "an ordinary wait": (
        {
            "phase": "Pending",
            "containerStatuses": [container("waiting", reason="PodInitializing")],
        },
        {"waiting": ""},
    ),
    "no room on the node that was chosen": (
        {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "reason": "Unschedulable", "message": ""}],
        },
        {"waiting": "Unschedulable", "is_unschedulable": True},
    ),
}


@pytest.mark.parametrize("claim", TABLE)
def test_of(claim: str) -> None:
    status, want = TABLE[claim]
    facts = facts_of(pod(status))

    assert want == {name: getattr(facts, name) for name in want}
    assert (2, 7) == (facts.attempt, facts.replica)


def test_a_deletion_counts_from_when_it_was_asked_for() -> None:
    raw = pod({}, deletionTimestamp=T1, deletionGracePeriodSeconds=9)

    assert S0 == facts_of(raw).deleting_since


def test_labels_that_make_no_sense_are_no_replica() -> None:
    assert -1 == facts_of(pod({}, labels={"muster.dev/replica": "x"})).replica


def test_only_a_controlling_job_owns_a_pod() -> None:
    job = {"kind": "TrainingJob", "uid": "j", "controller": True}

    assert "j" == owner_of(pod({}, ownerReferences=[{"kind": "X", "uid": "x"}, job]))
    assert owner_of(pod({}, ownerReferences=[{**job, "controller": False}])) is None
    assert owner_of(pod({}, ownerReferences=[{**job, "kind": "Job"}])) is None
    assert owner_of(pod({})) is None
