"""`TrainingJob.status` between the values of `job_status` and the API server.

A write is the difference between two values, as a merge patch, so that nothing is sent that did
not change. What is absent inside a changed field is sent as null, which removes it.
"""

from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, Final

from muster.claims import claim_of, directive_of, raw_of_claim, raw_of_directive
from muster.job_status import Attempt, Growth, JobStatus, Outcome, Phase, Placement
from muster.moments import seconds_of, text_of
from muster.restarts import Restarts
from muster.scheduling.snapshot import Displaced, Leaving, Took

_MAX_MESSAGE: Final = 4096
_MAX_REASON: Final = 128
_MAX_WHY: Final = 1024

Raw = Mapping[str, Any]


def status_of(raw: Raw | None) -> JobStatus:
    """The values in a job's `status`."""
    raw = raw or {}
    counters = raw.get("restarts") or {}
    return JobStatus(
        phase=Phase(raw["phase"]) if raw.get("phase") else None,
        reason=raw.get("reason") or "",
        message=raw.get("message") or "",
        attempt=raw.get("attempt") or 0,
        round=raw.get("round") or 0,
        gang=raw.get("gang") or "",
        queue_position=raw.get("queuePosition"),
        predicted_start=seconds_of(raw.get("predictedStart")),
        waits_for=raw.get("waitsFor") or "",
        placement=_placement_of(raw.get("placement")),
        claim=claim_of(raw.get("claim")),
        leaving=tuple(_leaving_of(each) for each in raw.get("leaving") or ()),
        displaced=_displaced_of(raw.get("displaced")),
        is_returning=bool(raw.get("returning")),
        attained=float(raw.get("attained") or 0.0),
        ran=float(raw.get("ran") or 0.0),
        is_released=bool(raw.get("released")),
        directive=directive_of(raw.get("directive")),
        attempts=tuple(_attempt_of(a) for a in raw.get("attempts") or ()),
        restarts=Restarts(**{f.name: counters.get(f.name, 0) for f in fields(Restarts)}),
        retry_at=seconds_of(raw.get("retryAt")),
        started_at=seconds_of(raw.get("startedAt")),
        finished_at=seconds_of(raw.get("finishedAt")),
        saved_at=seconds_of((raw.get("checkpoint") or {}).get("at")),
        eta=seconds_of((raw.get("progress") or {}).get("eta")),
    )


def difference(old: JobStatus, new: JobStatus) -> dict[str, Any]:
    """The merge patch of `status` that makes *new* out of *old*; empty when they are the same."""
    if old == new:
        return {}
    before, after = _as_raw(old), _as_raw(new)
    return {key: value for key, value in after.items() if value != before[key]}


def conditions_of(
    status: JobStatus, known: tuple[Raw, ...], generation: int, now: float
) -> list[dict[str, Any]]:
    """The conditions of *status*; one whose value did not change keeps its transition time.

    They are a total function of the status, so that they can never tell another story than the
    phase (kubeflow/sdk#803).
    """
    before = {c["type"]: c for c in known}
    is_running = status.phase in (Phase.RUNNING, Phase.PREEMPTING)
    return [
        {
            "type": kind,
            "status": "True" if holds else "False",
            "reason": status.reason[:_MAX_REASON] or (status.phase or Phase.PENDING).value,
            "message": status.message[:_MAX_MESSAGE],
            "observedGeneration": generation,
            "lastTransitionTime": transition(before.get(kind), now, holds=holds),
        }
        for kind, holds in (
            ("Admitted", status.placement is not None),
            ("Running", is_running),
            ("Finished", status.is_final),
        )
    ]


def transition(known: Raw | None, now: float, *, holds: bool) -> str:
    """When a condition got the value that it has, *known* being what is written of it so far."""
    if known is not None and (known.get("status") == "True") == holds:
        return str(known["lastTransitionTime"])
    # Kubernetes keeps condition times in whole seconds.
    return datetime.fromtimestamp(int(now), UTC).isoformat().replace("+00:00", "Z")


def _placement_of(raw: Raw | None) -> Placement | None:
    if not raw:
        return None
    took = raw.get("took")
    return Placement(
        attempt=raw["attempt"],
        decided_at=seconds_of(raw.get("decidedAt")) or 0.0,
        port=raw.get("port", 0),
        nodes=tuple(raw.get("nodes") or ()),
        why=raw.get("why", ""),
        round=raw.get("round") or 0,
        keeps=raw.get("keeps"),
        grown=tuple(_growth_of(each) for each in raw.get("grown") or ()),
        yielded=tuple(raw.get("yielded") or ()),
        behind=tuple(raw.get("behind") or ()),
        grown_behind=tuple(raw.get("grownBehind") or ()),
        took=Took(tuple(took.get("queues") or ()), seconds_of(took.get("at")) or 0.0)
        if took
        else None,
    )


def _growth_of(raw: Raw) -> Growth:
    at, running_at = seconds_of(raw.get("at")) or 0.0, seconds_of(raw.get("runningAt"))
    return Growth(raw.get("first", 0), at, raw.get("round", 0), running_at)


def _leaving_of(raw: Raw) -> Leaving:
    ranks = raw.get("ranks")
    return Leaving(
        claimant=raw.get("claimant", ""),
        ranks=None if ranks is None else tuple(ranks),
        deadline=seconds_of(raw.get("deadline")) or 0.0,
    )


def _displaced_of(raw: Raw | None) -> Displaced | None:
    if not raw or not raw.get("by"):
        return None
    return Displaced(raw["by"], seconds_of(raw.get("at")) or 0.0)


def _attempt_of(raw: Raw) -> Attempt:
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
    took = placement.took
    return {
        "attempt": placement.attempt,
        "decidedAt": text_of(placement.decided_at),
        "port": placement.port,
        "nodes": list(placement.nodes),
        "why": placement.why[:_MAX_WHY],
        "round": placement.round,
        "keeps": placement.keeps,
        "grown": [_present(_growth_as_raw(each)) for each in placement.grown] or None,
        "yielded": list(placement.yielded) or None,
        "behind": list(placement.behind) or None,
        "grownBehind": list(placement.grown_behind) or None,
        "took": {"queues": list(took.queues), "at": text_of(took.at)} if took else None,
    }


def _growth_as_raw(growth: Growth) -> dict[str, Any]:
    return {
        "first": growth.first,
        "at": text_of(growth.at),
        "round": growth.round,
        "runningAt": text_of(growth.running_at),
    }


def _leaving_as_raw(leaving: Leaving) -> dict[str, Any]:
    return {
        "claimant": leaving.claimant or None,
        "ranks": None if leaving.ranks is None else list(leaving.ranks),
        "deadline": text_of(leaving.deadline),
    }


def _attempt_as_raw(attempt: Attempt) -> dict[str, Any]:
    return {
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


def _present(raw: Raw) -> dict[str, Any]:
    """What is there. Items of a list are replaced as a whole, so that nothing need be removed."""
    return {key: value for key, value in raw.items() if value is not None}


def _as_raw(status: JobStatus) -> dict[str, Any]:
    """All fields, absent ones as `None`, which removes them in a merge patch."""
    displaced = status.displaced
    return {
        "phase": status.phase and status.phase.value,
        "reason": status.reason[:_MAX_REASON] or None,
        "message": status.message[:_MAX_MESSAGE] or None,
        "attempt": status.attempt,
        "round": status.round,
        "gang": status.gang or None,
        "queuePosition": status.queue_position,
        "predictedStart": text_of(status.predicted_start),
        "waitsFor": status.waits_for or None,
        "placement": _placement_as_raw(status.placement),
        "claim": raw_of_claim(status.claim),
        "leaving": [_present(_leaving_as_raw(each)) for each in status.leaving] or None,
        "displaced": {"by": displaced.by, "at": text_of(displaced.at)} if displaced else None,
        "returning": status.is_returning or None,
        "attained": round(status.attained, 3) or None,
        "ran": round(status.ran, 3) or None,
        "released": status.is_released or None,
        "directive": raw_of_directive(status.directive),
        "attempts": [_present(_attempt_as_raw(a)) for a in status.attempts],
        "restarts": {f.name: getattr(status.restarts, f.name) for f in fields(Restarts)},
        "retryAt": text_of(status.retry_at),
        "startedAt": text_of(status.started_at),
        "finishedAt": text_of(status.finished_at),
    }
