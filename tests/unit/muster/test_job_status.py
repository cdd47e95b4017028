"""A job's status as values, and back."""

from dataclasses import replace

import pytest

from muster.job_status import (
    MAX_ATTEMPTS,
    Attempt,
    JobStatus,
    Outcome,
    Phase,
    Placement,
    conditions_of,
    difference,
    seconds_of,
    status_of,
    text_of,
)
from muster.restarts import Restarts

_NODES = ("n1", "n1", "n2")
_FULL = JobStatus(
    phase=Phase.RESTARTING,
    reason="Restarting",
    message="words",
    attempt=2,
    round=3,
    gang="0/3",
    queue_position=1,
    placement=Placement(2, 1_700_000_000.125, 20_001, _NODES, "3 GPUs"),
    attempts=(
        Attempt(1, 1.0, _NODES, 3, 3, 2.0, 4.0, Outcome.LOST, "InfrastructureError", "gone"),
        Attempt(2, 1_700_000_000.125, _NODES, 3, 3),
    ),
    restarts=Restarts(1, 2, 3),
    retry_at=10.0,
    started_at=2.0,
    finished_at=11.5,
)


def test_a_write_and_a_read_give_the_same_values() -> None:
    assert _FULL == status_of(difference(JobStatus(), _FULL))


def test_nothing_is_written_that_did_not_change() -> None:
    assert {} == difference(_FULL, _FULL)
    assert {"message": "other"} == difference(_FULL, replace(_FULL, message="other"))


def test_what_is_gone_is_removed() -> None:
    change = difference(_FULL, replace(_FULL, placement=None, retry_at=None, reason=""))

    assert {"placement": None, "retryAt": None, "reason": None} == change


def test_an_absent_status_is_an_empty_one() -> None:
    assert JobStatus() == status_of(None) == status_of({})


def test_only_the_newest_attempts_are_kept() -> None:
    status = JobStatus()
    for number in range(1, 15):
        status = status.with_attempt(Attempt(number, float(number)))
    status = status.with_attempt(Attempt(14, 14.0, ended_at=15.0))

    assert list(range(5, 15)) == [attempt.attempt for attempt in status.attempts]
    assert MAX_ATTEMPTS == len(status.attempts)
    assert 15.0 == status.attempts[-1].ended_at


CURRENT = {
    "no placement, no attempt": (replace(_FULL, placement=None), None),
    "a placement without attempts": (replace(_FULL, attempts=()), None),
    "a placement of another attempt": (replace(_FULL, attempts=_FULL.attempts[:1]), None),
    "the attempt that holds GPUs": (_FULL, _FULL.attempts[1]),
}


@pytest.mark.parametrize("claim", CURRENT)
def test_the_current_attempt_is(claim: str) -> None:
    status, want = CURRENT[claim]

    assert want == status.current


def test_times_keep_their_milliseconds() -> None:
    assert "2023-11-14T22:13:20.125Z" == text_of(1_700_000_000.125)
    assert 1_700_000_000.125 == seconds_of("2023-11-14T22:13:20.125Z")
    assert text_of(None) is None
    assert seconds_of(None) is None


@pytest.mark.parametrize("phase", [None, *Phase])
def test_conditions_say_what_the_phase_says(phase: Phase | None) -> None:
    for placement in (None, _FULL.placement):
        status = JobStatus(phase=phase, placement=placement, reason="Why")
        conditions = {c["type"]: c["status"] for c in conditions_of(status, (), 1, 0.0)}

        assert {
            "Admitted": str(placement is not None),
            "Running": str(phase is Phase.RUNNING),
            "Finished": str(status.is_final),
        } == conditions


def test_a_condition_that_holds_on_keeps_its_time() -> None:
    waiting = JobStatus(phase=Phase.PENDING)
    first = conditions_of(waiting, (), 1, 100.9)
    again = conditions_of(replace(waiting, reason="Other"), tuple(first), 2, 200.0)
    placed = conditions_of(replace(waiting, placement=_FULL.placement), tuple(again), 3, 300.0)

    assert ["1970-01-01T00:01:40Z"] * 3 == [c["lastTransitionTime"] for c in again]
    assert "Pending" == first[0]["reason"]
    assert "Other" == again[0]["reason"]
    assert ["1970-01-01T00:05:00Z", "1970-01-01T00:01:40Z", "1970-01-01T00:01:40Z"] == [
        c["lastTransitionTime"] for c in placed
    ]
    assert [3, 3, 3] == [c["observedGeneration"] for c in placed]
