"""A job's status as values, and back."""

from dataclasses import replace

import pytest

from muster.claims import Ask, Asked, Claim, Directive
from muster.job_status import (
    MAX_ATTEMPTS,
    Attempt,
    Growth,
    JobStatus,
    Outcome,
    Phase,
    Placement,
)
from muster.moments import seconds_of, text_of, whole_ms
from muster.restarts import Restarts
from muster.scheduling.snapshot import Displaced, Leaving, Took
from muster.status_raw import conditions_of, difference, status_of

_NODES = ("n1", "n1", "n2")
_FULL = JobStatus(
    phase=Phase.RESTARTING,
    reason="Restarting",
    message="words",
    attempt=2,
    round=3,
    gang="0/3",
    queue_position=1,
    predicted_start=20.0,
    waits_for="team/other",
    placement=Placement(
        2,
        1_700_000_000.125,
        20_001,
        _NODES,
        "3 GPUs",
        round=2,
        keeps=1,
        grown=(Growth(1, 4.0, 3, 5.0), Growth(2, 6.0, 4)),
        yielded=("c1",),
        behind=("team/big",),
        grown_behind=("team/bigger",),
        took=Took(("b",), 3.0),
    ),
    claim=Claim(
        ("n1", "n2"),
        "1 job leaves",
        (
            Ask(
                "c2",
                1.5,
                61.5,
                (
                    Asked("team/a", "u-a", 3, (1, 2), "surplus"),
                    Asked("team/b", "u-b", 1, None, "priority"),
                ),
            ),
        ),
        ("b",),
    ),
    leaving=(Leaving("team/c", (2,), 7.0), Leaving("team/d", None, 8.0)),
    displaced=Displaced("team/c", 6.0),
    is_returning=True,
    is_released=True,
    attained=12.5,
    ran=3.25,
    directive=Directive("c3", "checkpoint", 8.0, 2.0),
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


def test_what_is_gone_inside_a_field_is_removed() -> None:
    assert _FULL.placement is not None
    whole = replace(_FULL.placement, keeps=None, took=None)
    change = difference(_FULL, replace(_FULL, placement=whole))

    assert {"keeps": None, "took": None} == {
        key: change["placement"][key] for key in ("keeps", "took")
    }


def test_the_times_of_the_recorder_are_read_and_never_written() -> None:
    moment = "2023-11-14T22:13:20.125Z"
    raw = {"checkpoint": {"at": moment}, "progress": {"eta": moment}}
    status = status_of(raw)

    assert (1_700_000_000.125, 1_700_000_000.125) == (status.saved_at, status.eta)
    assert {} == difference(status, replace(status, saved_at=None, eta=None))


def test_a_time_is_the_same_once_it_has_been_written() -> None:
    for seconds in (1_700_000_000.123456, 1_764_590_000.0019, 0.9999):
        kept = whole_ms(seconds)

        assert kept == seconds_of(text_of(kept))


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
            "Running": str(phase in (Phase.RUNNING, Phase.PREEMPTING)),
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
