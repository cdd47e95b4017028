"""The next step of a job, as laws over every combination of facts."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from job_scenes import (
    FAILED,
    NOW,
    PENDING,
    RULES,
    RUNNING,
    STARTING,
    ended,
    failed,
    pod,
    step,
)
from muster.job_status import JobStatus, Outcome, Phase
from muster.lifecycle import next_step
from muster.restarts import Budgets, Cause, Loss, NodeState
from muster.steps import Create, Delete, JobFacts, Scene

PODS = st.sampled_from(
    [
        None,
        pod(0, "Pending"),
        pod(0),
        pod(0, "Succeeded"),
        failed(0),
        pod(0, "Failed", loss=Loss(reason="OutOfcpu")),
        pod(0, deleting_since=NOW),
        pod(0, node_state=NodeState.GONE),
        pod(0, deleting_since=NOW, node_state=NodeState.UNREACHABLE),
    ]
)
OUTCOMES = st.sampled_from([None, *Outcome])


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    """Any combination of facts, possible or not."""
    status = draw(st.sampled_from([JobStatus(), PENDING, STARTING, RUNNING, FAILED]))
    status = replace(status, phase=draw(st.sampled_from([status.phase, *Phase])))
    outcome = draw(OUTCOMES)
    if outcome is not None and status.current is not None:
        status = ended(status, outcome, user=draw(st.integers(0, 5)))
    pods = []
    for replica in range(2):
        drawn = draw(PODS)
        if drawn is not None:
            attempt = draw(st.sampled_from([1, 1, 1, 2]))
            name = f"p-{attempt}-{replica}"
            pods.append(
                replace(drawn, replica=replica, attempt=attempt, name=name, uid=f"u-{name}")
            )
    job = JobFacts(
        is_suspended=draw(st.booleans()),
        deleted_at=draw(st.sampled_from([None, NOW - 1, NOW - 100])),
        is_held=draw(st.booleans()),
        ttl_seconds=draw(st.sampled_from([None, 10, 10_000])),
        budgets=Budgets(user=draw(st.integers(0, 5))),
        refusal=draw(st.sampled_from([None, "no"])),
        seen=frozenset(draw(st.sets(st.integers(0, 1)))),
    )
    return Scene(job, status, tuple(pods), NOW, RULES)


@given(scenes())
def test_laws_of_every_step(scene: Scene) -> None:
    got = next_step(scene)
    before, after = scene.status, got.status

    # What is over stays over.
    if before.is_final:
        assert before.phase is after.phase
    # Nothing is created for what is deleted, suspended, over or ending.
    if Create() in got.deeds:
        assert scene.job.deleted_at is None
        assert not scene.job.is_suspended
        assert not after.is_final
        assert after.current is not None
        assert after.current.outcome is None
    # GPUs are given back only when no pod can hold any, and a job ends only without them.
    if before.placement is not None and after.placement is None and not before.is_final:
        assert scene.is_clear
    if after.is_final and not before.is_final:
        assert after.placement is None
        assert after.finished_at is not None
    # Counters never go back, and count one end at most.
    spent = [
        a - b
        for a, b in zip(
            (after.restarts.user, after.restarts.infrastructure, after.restarts.preemption),
            (before.restarts.user, before.restarts.infrastructure, before.restarts.preemption),
            strict=True,
        )
    ]
    assert min(spent) >= 0
    assert sum(spent) <= 1
    # No pod is deleted twice in one step.
    names = [deed.name for deed in got.deeds if isinstance(deed, Delete)]
    assert len(set(names)) == len(names)


@given(scenes())
def test_steps_come_to_rest(scene: Scene) -> None:
    """With the same pods, a few steps lead to one that changes nothing: no loop of writes."""
    status = scene.status
    for _ in range(4):
        after = next_step(scene.with_status(status)).status
        if after == status:
            return
        status = after
    pytest.fail(f"still changing: {status}")


def test_every_pair_of_pods_has_a_step() -> None:
    phases = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
    for first, second in product(phases, phases):
        for status in (PENDING, STARTING, RUNNING, FAILED):
            assert step(status, pod(0, first), pod(1, second)).status.phase is not None


def test_causes_lead_to_their_outcomes() -> None:
    losses = {
        Cause.USER: (Loss(exit_code=1), Outcome.FAILED),
        Cause.INFRASTRUCTURE: (Loss(exit_code=137), Outcome.LOST),
        Cause.PREEMPTION: (Loss(reason="NodeShutdown"), Outcome.LOST),
        Cause.REFUSED: (Loss(reason="NodeAffinity"), Outcome.REFUSED),
    }
    for loss, outcome in losses.values():
        got = step(RUNNING, pod(0, "Failed", loss=loss), pod(1, "Succeeded"))

        assert outcome is got.status.attempts[0].outcome
