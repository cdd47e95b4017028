"""Whose budget pays, and when the next try may come."""

import pytest

from muster.restarts import Backoff, Budgets, Cause, Loss, NodeState, Restarts, cause_of

CAUSES = {
    "a script that exits 1": (Loss(exit_code=1), Cause.USER),
    "a script that exits 255": (Loss(exit_code=255), Cause.USER),
    "a script that ran out of its memory": (
        Loss(exit_code=137, signal=9, reason="OOMKilled"),
        Cause.USER,
    ),
    "a script that crashed itself": (Loss(exit_code=139), Cause.USER),
    "a script that aborted": (Loss(exit_code=134, signal=6), Cause.USER),
    "a command that does not exist": (Loss(exit_code=128, reason="StartError"), Cause.USER),
    "a container without a command on a process node": (Loss(reason="NoCommand"), Cause.USER),
    "a volume that process nodes do not have": (Loss(reason="UnsupportedVolume"), Cause.USER),
    "a pod past its deadline": (Loss(reason="DeadlineExceeded"), Cause.USER),
    "a process killed from outside": (Loss(exit_code=137), Cause.INFRASTRUCTURE),
    "a process that was told to end": (Loss(exit_code=143), Cause.INFRASTRUCTURE),
    "a bus error": (Loss(exit_code=135), Cause.INFRASTRUCTURE),
    "a node that is gone": (Loss(exit_code=1, node=NodeState.GONE), Cause.INFRASTRUCTURE),
    "a node that is silent": (Loss(node=NodeState.UNREACHABLE), Cause.INFRASTRUCTURE),
    "a pod that somebody deleted": (Loss(is_deleted=True), Cause.INFRASTRUCTURE),
    "a pod evicted for want of memory": (
        Loss(reason="Evicted", disruption="TerminationByKubelet"),
        Cause.INFRASTRUCTURE,
    ),
    "a pod that nobody can explain": (Loss(), Cause.INFRASTRUCTURE),
    "a pod collected after its node": (
        Loss(disruption="DeletionByPodGC"),
        Cause.INFRASTRUCTURE,
    ),
    "a pod that made room for another": (
        Loss(exit_code=143, disruption="PreemptionByScheduler"),
        Cause.PREEMPTION,
    ),
    "a pod evicted by a drain": (
        Loss(disruption="EvictionByEvictionAPI", is_deleted=True),
        Cause.PREEMPTION,
    ),
    "a pod on a tainted node": (Loss(disruption="DeletionByTaintManager"), Cause.PREEMPTION),
    "a pod on a node that shut down": (Loss(exit_code=1, reason="Terminated"), Cause.PREEMPTION),
    "a pod on a node that shuts down": (Loss(reason="NodeShutdown"), Cause.PREEMPTION),
    "a pod for which its node has no CPU": (Loss(reason="OutOfcpu"), Cause.REFUSED),
    "a pod for which its node has no GPU": (Loss(reason="OutOfnvidia.com/gpu"), Cause.REFUSED),
    "a pod that a device plugin refuses": (
        Loss(reason="UnexpectedAdmissionError"),
        Cause.REFUSED,
    ),
    "a pod that does not match its node": (Loss(reason="NodeAffinity"), Cause.REFUSED),
}


@pytest.mark.parametrize("claim", CAUSES)
def test_the_table_names_the_cause_of(claim: str) -> None:
    loss, want = CAUSES[claim]

    assert want == cause_of(loss)


def test_preemptions_leave_the_budgets_of_others_alone() -> None:
    budgets = Budgets(user=1)
    restarts = Restarts()
    ends = (Cause.PREEMPTION, Cause.PREEMPTION, Cause.INFRASTRUCTURE, Cause.USER)
    for cause in ends:
        restarts = restarts.plus(cause)

        assert budgets.exhausted_by(restarts) is None

    restarts = restarts.plus(Cause.USER)

    assert Cause.USER == budgets.exhausted_by(restarts)
    assert Restarts(2, 1, 2) == restarts


def test_a_refusal_counts_nowhere() -> None:
    assert Restarts() == Restarts().plus(Cause.REFUSED)


BUDGETS = {
    "infrastructure has a limit of its own": (
        Budgets(infrastructure=0),
        Restarts(infrastructure=1),
        Cause.INFRASTRUCTURE,
    ),
    "preemption can have one": (Budgets(preemption=1), Restarts(preemption=2), Cause.PREEMPTION),
    "preemption has none unless given": (Budgets(), Restarts(preemption=1000), None),
}


@pytest.mark.parametrize("claim", BUDGETS)
def test_of_the_budgets(claim: str) -> None:
    budgets, restarts, want = BUDGETS[claim]

    assert want == budgets.exhausted_by(restarts)


def test_pauses_double_up_to_a_cap() -> None:
    refused = Backoff(5.0, 300.0)

    assert [0.0, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0] == [
        refused.pause(failures) for failures in range(8)
    ]
    assert 300.0 == refused.pause(10_000)


def test_the_first_failure_in_a_row_may_be_free() -> None:
    assert [0.0, 0.0, 5.0, 10.0] == [Backoff(5.0, free=1).pause(n) for n in range(4)]
