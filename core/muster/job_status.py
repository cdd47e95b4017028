"""`TrainingJob.status` as the operator reads and writes it, in frozen values.

The fields of the recorder (`progress`, `checkpoint`, `cost`) are not here: the operator neither
reads nor writes them. A write is the difference between two values, as a merge patch, so that
nothing is sent that did not change.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from muster.restarts import Restarts

MAX_ATTEMPTS: Final = 10
"""Attempts that status keeps; the recorder has them all."""
_MAX_MESSAGE: Final = 4096
_MAX_REASON: Final = 128
_MAX_WHY: Final = 1024


class Phase(StrEnum):
    """Where a job is in its life."""

    PENDING = "Pending"
    STARTING = "Starting"
    RUNNING = "Running"
    PREEMPTING = "Preempting"
    RESTARTING = "Restarting"
    SUSPENDED = "Suspended"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    CANCELLED = "Cancelled"

    @property
    def is_final(self) -> bool:
        """Whether nothing ever comes after it."""
        return self in (Phase.SUCCEEDED, Phase.FAILED, Phase.CANCELLED)


class Outcome(StrEnum):
    """How an attempt ended."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    LOST = "Lost"
    CANCELLED = "Cancelled"
    SUSPENDED = "Suspended"
    REFUSED = "Refused"


@dataclass(frozen=True, slots=True)
class Placement:
    """The decision: the node of each replica, in rank order; there while the gang holds GPUs."""

    attempt: int
    decided_at: float
    port: int
    nodes: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try to run the gang: first its `outcome` is decided, at `ended_at` its GPUs are free."""

    attempt: int
    decided_at: float
    nodes: tuple[str, ...] = ()
    replicas: int = 0
    gpus: int = 0
    running_at: float | None = None
    ended_at: float | None = None
    outcome: Outcome | None = None
    cause: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class JobStatus:
    """All that the operator has to remember of a job; empty for one that nobody has looked at."""

    phase: Phase | None = None
    reason: str = ""
    message: str = ""
    attempt: int = 0
    round: int = 0
    gang: str = ""
    queue_position: int | None = None
    placement: Placement | None = None
    attempts: tuple[Attempt, ...] = ()
    restarts: Restarts = field(default_factory=Restarts)
    retry_at: float | None = None
    started_at: float | None = None
    finished_at: float | None = None

    @property
    def is_final(self) -> bool:
        """Whether the job is over."""
        return self.phase is not None and self.phase.is_final

    @property
    def current(self) -> Attempt | None:
        """The attempt that holds GPUs now."""
        if self.placement is None or not self.attempts:
            return None
        last = self.attempts[-1]
        return last if last.attempt == self.placement.attempt else None

    def with_attempt(self, attempt: Attempt) -> "JobStatus":
        """With *attempt* as the newest one, in place of the one of the same number."""
        older = tuple(a for a in self.attempts if a.attempt != attempt.attempt)
        return replace(self, attempts=(*older, attempt)[-MAX_ATTEMPTS:])


def seconds_of(text: str | None) -> float | None:
    """The time in an RFC 3339 *text*, in seconds since the epoch."""
    return None if not text else datetime.fromisoformat(text).timestamp()


def text_of(seconds: float | None) -> str | None:
    """The RFC 3339 text of a time, in UTC with milliseconds."""
    if seconds is None:
        return None
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def status_of(raw: Mapping[str, Any] | None) -> JobStatus:
    """The values in a job's `status`."""
    raw = raw or {}
    counters = raw.get("restarts") or {}
    return JobStatus(
        phase=Phase(raw["phase"]) if raw.get("phase") else None,
        reason=raw.get("reason", ""),
        message=raw.get("message", ""),
        attempt=raw.get("attempt", 0),
        round=raw.get("round", 0),
        gang=raw.get("gang", ""),
        queue_position=raw.get("queuePosition"),
        placement=_placement_of(raw.get("placement")),
        attempts=tuple(_attempt_of(a) for a in raw.get("attempts") or ()),
        restarts=Restarts(**{f.name: counters.get(f.name, 0) for f in fields(Restarts)}),
        retry_at=seconds_of(raw.get("retryAt")),
        started_at=seconds_of(raw.get("startedAt")),
        finished_at=seconds_of(raw.get("finishedAt")),
    )


def _placement_of(raw: Mapping[str, Any] | None) -> Placement | None:
    if not raw:
        return None
    return Placement(
        attempt=raw["attempt"],
        decided_at=seconds_of(raw.get("decidedAt")) or 0.0,
        port=raw.get("port", 0),
        nodes=tuple(raw.get("nodes") or ()),
        why=raw.get("why", ""),
    )


def _attempt_of(raw: Mapping[str, Any]) -> Attempt:
    return Attempt(
        attempt=raw["attempt"],
        decided_at=seconds_of(raw.get("decidedAt")) or 0.0,
        nodes=tuple(raw.get("nodes") or ()),
        replicas=raw.get("replicas", 0),
        gpus=raw.get("gpus", 0),
        running_at=seconds_of(raw.get("runningAt")),
        ended_at=seconds_of(raw.get("endedAt")),
        outcome=Outcome(raw["outcome"]) if raw.get("outcome") else None,
        cause=raw.get("cause", ""),
        message=raw.get("message", ""),
    )


def _placement_as_raw(placement: Placement | None) -> dict[str, Any] | None:
    if placement is None:
        return None
    return {
        "attempt": placement.attempt,
        "decidedAt": text_of(placement.decided_at),
        "port": placement.port,
        "nodes": list(placement.nodes),
        "why": placement.why[:_MAX_WHY],
    }


def _attempt_as_raw(attempt: Attempt) -> dict[str, Any]:
    raw: dict[str, Any] = {
        "attempt": attempt.attempt,
        "decidedAt": text_of(attempt.decided_at),
        "runningAt": text_of(attempt.running_at),
        "endedAt": text_of(attempt.ended_at),
        "outcome": attempt.outcome and attempt.outcome.value,
        "cause": attempt.cause[:_MAX_REASON] or None,
        "message": attempt.message[:_MAX_MESSAGE] or None,
        "replicas": attempt.replicas,
        "gpus": attempt.gpus,
        "nodes": list(attempt.nodes),
    }
    return {key: value for key, value in raw.items() if value is not None}


def _as_raw(status: JobStatus) -> dict[str, Any]:
    """All fields, absent ones as `None`, which removes them in a merge patch."""
    return {
        "phase": status.phase and status.phase.value,
        "reason": status.reason[:_MAX_REASON] or None,
        "message": status.message[:_MAX_MESSAGE] or None,
        "attempt": status.attempt,
        "round": status.round,
        "gang": status.gang or None,
        "queuePosition": status.queue_position,
        "placement": _placement_as_raw(status.placement),
        "attempts": [_attempt_as_raw(a) for a in status.attempts],
        "restarts": {f.name: getattr(status.restarts, f.name) for f in fields(Restarts)},
        "retryAt": text_of(status.retry_at),
        "startedAt": text_of(status.started_at),
        "finishedAt": text_of(status.finished_at),
    }


def difference(old: JobStatus, new: JobStatus) -> dict[str, Any]:
    """The merge patch of `status` that makes *new* out of *old*; empty when they are the same."""
    if old == new:
        return {}
    before, after = _as_raw(old), _as_raw(new)
    return {key: value for key, value in after.items() if value != before[key]}


def conditions_of(
    status: JobStatus, known: tuple[Mapping[str, Any], ...], generation: int, now: float
) -> list[dict[str, Any]]:
    """The conditions of *status*; one whose value did not change keeps its transition time.

    They are a total function of the status, so that they can never tell another story than the
    phase (kubeflow/sdk#803).
    """
    before = {c["type"]: c for c in known}
    return [
        {
            "type": kind,
            "status": "True" if holds else "False",
            "reason": status.reason[:_MAX_REASON] or (status.phase or Phase.PENDING).value,
            "message": status.message[:_MAX_MESSAGE],
            "observedGeneration": generation,
            "lastTransitionTime": _transition(before.get(kind), holds, now),
        }
        for kind, holds in (
            ("Admitted", status.placement is not None),
            ("Running", status.phase is Phase.RUNNING),
            ("Finished", status.is_final),
        )
    ]


def _transition(known: Mapping[str, Any] | None, holds: bool, now: float) -> str:  # noqa: FBT001
    if known is not None and (known.get("status") == "True") == holds:
        return str(known["lastTransitionTime"])
    # Kubernetes keeps condition times in whole seconds.
    return datetime.fromtimestamp(int(now), UTC).isoformat().replace("+00:00", "Z")
