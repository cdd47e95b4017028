"""What a step writes down: times, counts, pauses and words of each attempt."""

from dataclasses import replace

import pytest

from job_scenes import (
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
from muster.decisions import placed
from muster.endings import seen_or_told
from muster.job_status import Attempt, JobStatus, Outcome
from muster.restarts import NodeState, Restarts
from muster.steps import JobFacts, Story


def test_a_gang_that_runs_has_its_time_on_record() -> None:
    got = step(STARTING, pod(0), pod(1))

    assert NOW == got.status.attempts[0].running_at == got.status.started_at
    assert "2/2" == got.status.gang
    assert (Story("Running", "attempt 1: all 2 replicas run"),) == got.stories


def test_a_gang_of_one_is_told_in_the_singular() -> None:
    alone = placed(JobStatus(), ("n1",), "1 GPU", gpus=1, port=20_000, now=NOW)
    runs = step(alone, pod(0))
    ends = step(alone, pod(0, "Succeeded"))

    assert (Story("Running", "attempt 1: the only replica runs"),) == runs.stories
    assert "the only replica exited with 0" == ends.status.message


def test_a_success_ends_when_its_last_pod_did_if_nobody_was_there() -> None:
    pods = [pod(r, "Succeeded", started_at=900.0 + r, finished_at=950.0 + r) for r in (0, 1)]
    early = replace(STARTING.with_attempt(replace(STARTING.attempts[0], decided_at=890.0)))
    got = step(early, *pods)

    assert (901.0, 951.0) == (got.status.attempts[0].running_at, got.status.finished_at)


def test_pods_cannot_have_run_before_they_were_placed() -> None:
    attempt = Attempt(1, decided_at=500.25)

    assert 500.25 == seen_or_told(NOW, [500.0], attempt)
    assert NOW == seen_or_told(NOW, [NOW - 1], attempt)
    assert NOW == seen_or_told(NOW, [None, 10.0], attempt)
    assert NOW == seen_or_told(NOW, [], attempt)


def test_a_failure_is_counted_once_and_tells_its_last_words() -> None:
    first = step(RUNNING, failed(0), pod(1))
    second = step(first.status, failed(0), pod(1, deleting_since=NOW))
    third = step(second.status, failed(0))

    assert first.status == second.status
    assert [1, 1, 1] == [s.status.restarts.user for s in (first, second, third)]
    assert "replica 0: exit code 1: boom" == third.status.message
    assert (Outcome.FAILED, "UserError") == (
        third.status.attempts[0].outcome,
        third.status.attempts[0].cause,
    )
    assert NOW == third.status.attempts[0].ended_at
    assert ["ReplicaFailed"] == [s.reason for s in first.stories]
    assert ["Restarting"] == [s.reason for s in third.stories]


def test_restarts_that_lead_nowhere_come_ever_later() -> None:
    status, pauses = PENDING, []
    for _ in range(4):
        status = placed(status, ("n1",), "", gpus=1, port=1, now=NOW)
        got = step(status, pod(0, "Failed", attempt=status.attempt), job=JobFacts())
        status = got.status
        pauses.append((status.retry_at or NOW) - NOW)

        assert got.wake_at == status.retry_at

    assert [0.0, 5.0, 10.0, 20.0] == pauses


def test_an_attempt_that_ran_for_long_starts_the_row_anew() -> None:
    status = placed(PENDING, ("n1",), "", gpus=1, port=1, now=NOW - 100)
    status = step(status, pod(0, "Failed"), job=JobFacts()).status
    status = placed(status, ("n1",), "", gpus=1, port=1, now=NOW - 100)
    long = replace(status.attempts[-1], running_at=NOW - 90)
    got = step(status.with_attempt(long), pod(0, "Failed", attempt=2), job=JobFacts())

    assert got.status.retry_at is None


def test_refusals_come_ever_later_too_and_cost_nothing() -> None:
    status, pauses = PENDING, []
    for _ in range(3):
        status = placed(status, ("n1",), "", gpus=1, port=1, now=NOW)
        status = step(status, job=JobFacts(refusal="exceeded quota")).status
        pauses.append((status.retry_at or NOW) - NOW)

    assert [5.0, 10.0, 20.0] == pauses
    assert Restarts() == status.restarts
    assert ("AdmissionRefused", "exceeded quota") == (status.reason, status.message)


def test_a_pause_is_waited_for_and_not_beyond() -> None:
    pausing = replace(PENDING, retry_at=NOW + 5)

    assert NOW + 5 == step(pausing).wake_at
    assert step(pausing, now=NOW + 5).wake_at is None


def test_a_refusal_after_a_loss_is_the_first_in_its_row() -> None:
    status = placed(PENDING, ("n1",), "", gpus=1, port=1, now=NOW)
    status = step(status, pod(0, "Failed"), job=JobFacts()).status
    status = placed(status, ("n1",), "", gpus=1, port=1, now=NOW)
    status = step(status, job=JobFacts(refusal="exceeded quota")).status

    assert NOW + 5.0 == status.retry_at


def test_what_hinders_a_start_is_told_once() -> None:
    waiting = pod(1, "Pending", waiting="ErrImagePull: no such image")
    first = step(STARTING, pod(0), waiting)
    second = step(first.status, pod(0), waiting)

    assert "replica 1: ErrImagePull: no such image" == first.status.message
    assert first.status == second.status
    assert NOW - 10 + RULES.start_deadline == first.wake_at


STUCK = {
    "a start has a deadline": ({}, RULES.start_deadline, Outcome.LOST, "not all replicas ran"),
    "with the words of the kubelet": (
        {"waiting": "ErrImagePull"},
        RULES.start_deadline,
        Outcome.LOST,
        "replica 1: ErrImagePull",
    ),
    "a node without room has a shorter one": (
        {"waiting": "Unschedulable: full", "is_unschedulable": True},
        RULES.unschedulable_wait,
        Outcome.REFUSED,
        "Unschedulable: full",
    ),
}


@pytest.mark.parametrize("claim", STUCK)
def test_nothing_waits_for_ever(claim: str) -> None:
    facts, seconds, outcome, words = STUCK[claim]
    early = step(STARTING, pod(0), pod(1, "Pending", **facts), now=NOW - 11 + seconds)
    late = step(STARTING, pod(0), pod(1, "Pending", **facts), now=NOW - 10 + seconds)

    assert early.status.attempts[0].outcome is None
    assert outcome is late.status.attempts[0].outcome
    assert words in late.status.attempts[0].message


def test_a_pod_on_a_silent_node_is_looked_at_again_in_time() -> None:
    silent = pod(0, deleting_since=NOW - 10, node_state=NodeState.UNREACHABLE)
    got = step(ended(RUNNING, Outcome.LOST), silent)

    assert NOW + 50 == got.wake_at


def test_a_new_attempt_is_one_whole_decision() -> None:
    status = replace(PENDING, attempt=3, round=5, retry_at=NOW, queue_position=2)
    got = placed(status, ("n1", "n1", "n2"), "why", gpus=12, port=20_007, now=NOW)

    assert got.placement is not None
    assert (4, 6, None, None) == (got.attempt, got.round, got.retry_at, got.queue_position)
    assert (4, ("n1", "n1", "n2"), 20_007) == (
        got.placement.attempt,
        got.placement.nodes,
        got.placement.port,
    )
    assert Attempt(4, NOW, ("n1", "n1", "n2"), 3, 12) == got.current
