"""Which replica's end explains the end of the gang."""

import pytest

from muster.losses import GangLoss, PodFacts, first_loss
from muster.restarts import Cause, Loss, NodeState


def pod(replica: int, phase: str = "Running", **facts: object) -> PodFacts:
    return PodFacts(f"p{replica}", f"u{replica}", 1, replica, phase, **facts)  # type: ignore[arg-type]


def failed(replica: int, code: int = 1, at: float = 0.0, message: str = "") -> PodFacts:
    return pod(replica, "Failed", loss=Loss(exit_code=code), finished_at=at, message=message)


ALL = frozenset(range(3))
CASES = {
    "nothing is lost while all run": ([pod(0), pod(1), pod(2)], None),
    "a replica that exited 0 is finished, not lost": (
        [pod(0, "Succeeded", node_state=NodeState.GONE), pod(1), pod(2)],
        None,
    ),
    "the one that failed first is to blame": (
        [failed(0, at=9.0), failed(1, 3, at=5.0, message="boom"), failed(2, at=7.0)],
        GangLoss(Cause.USER, "replica 1: exit code 3: boom"),
    ),
    "of two in the same second the lower rank": (
        [failed(2, at=5.0), failed(1, at=5.0), pod(0)],
        GangLoss(Cause.USER, "replica 1: exit code 1"),
    ),
    "a lost node explains what broke on the others": (
        [failed(0, at=1.0), pod(1, node_state=NodeState.GONE), pod(2)],
        GangLoss(Cause.INFRASTRUCTURE, "replica 1: its node is gone"),
    ),
    "a silent node does too": (
        [pod(0), pod(1, node_state=NodeState.UNREACHABLE), pod(2)],
        GangLoss(Cause.INFRASTRUCTURE, "replica 1: its node does not answer"),
    ),
    "a pod that is gone was deleted": (
        [failed(0, at=1.0), pod(2)],
        GangLoss(Cause.INFRASTRUCTURE, "replica 1: its pod was deleted"),
    ),
    "a pod that is going was deleted": (
        [pod(0), pod(1, deleting_since=5.0), pod(2)],
        GangLoss(Cause.INFRASTRUCTURE, "replica 1: its pod was deleted"),
    ),
    "an eviction is named": (
        [
            pod(0),
            pod(1, deleting_since=5.0, loss=Loss(disruption="EvictionByEvictionAPI")),
            pod(2),
        ],
        GangLoss(Cause.PREEMPTION, "replica 1: taken away (EvictionByEvictionAPI)"),
    ),
    "a refusal goes before a preemption": (
        [
            pod(0, "Failed", loss=Loss(disruption="PreemptionByScheduler")),
            pod(1, "Failed", loss=Loss(reason="OutOfcpu"), message="no CPU"),
            pod(2),
        ],
        GangLoss(Cause.REFUSED, "replica 1: OutOfcpu: no CPU"),
    ),
    "a signal is named": (
        [pod(0, "Failed", loss=Loss(exit_code=137, signal=9, reason="OOMKilled")), pod(1), pod(2)],
        GangLoss(Cause.USER, "replica 0: killed by signal 9 (OOMKilled)"),
    ),
    "so is one that a shell tells of": (
        [failed(0, 143), pod(1), pod(2)],
        GangLoss(Cause.INFRASTRUCTURE, "replica 0: killed by signal 15"),
    ),
    "a failure without a reason is still one": (
        [pod(0, "Failed"), pod(1), pod(2)],
        GangLoss(Cause.INFRASTRUCTURE, "replica 0: failed"),
    ),
}


@pytest.mark.parametrize("claim", CASES)
def test_of_a_gang(claim: str) -> None:
    pods, want = CASES[claim]

    assert want == first_loss(pods, 3, ALL)


def test_a_replica_that_was_never_seen_is_not_lost() -> None:
    assert first_loss([pod(0)], 3, frozenset({0})) is None


def test_replicas_beyond_the_gang_do_not_matter() -> None:
    assert first_loss([pod(0)], 1, frozenset({0, 7})) is None
