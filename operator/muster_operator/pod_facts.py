"""From a raw pod to the facts that decisions need. This is on the watch path of every pod."""

from collections.abc import Mapping
from typing import Any, Final

from muster import wire
from muster.losses import PodFacts
from muster.moments import seconds_of
from muster.restarts import Loss

_MAX_WORDS: Final = 1024
# What a container waits for as a matter of course.
_ORDINARY: Final = frozenset({"ContainerCreating", "PodInitializing"})


def owner_of(pod: Mapping[str, Any]) -> str | None:
    """The uid of the training job that controls *pod*; `None` for other people's pods."""
    for reference in pod["metadata"].get("ownerReferences") or ():
        if reference.get("controller") and reference.get("kind") == "TrainingJob":
            return str(reference["uid"])
    return None


def facts_of(pod: Mapping[str, Any]) -> PodFacts:
    """The facts of one of our own pods."""
    metadata = pod["metadata"]
    labels = metadata.get("labels") or {}
    status = pod.get("status") or {}
    phase = status.get("phase", "Pending")
    if phase == "Failed":
        loss, message = _end_of(status)
    else:
        loss, message = Loss(disruption=_condition(status, "DisruptionTarget")), ""
    has_waited = phase == "Pending"
    return PodFacts(
        name=metadata["name"],
        uid=metadata["uid"],
        attempt=_number(labels.get(wire.LABEL_ATTEMPT)),
        replica=_number(labels.get(wire.LABEL_REPLICA)),
        phase=phase,
        deleting_since=_since(metadata) if "deletionTimestamp" in metadata else None,
        loss=loss,
        message=message,
        waiting=_waiting(status) if has_waited else "",
        is_unschedulable=has_waited and _condition(status, "PodScheduled") == "Unschedulable",
        started_at=None if has_waited else _started(status),
        finished_at=_finished(status) if phase in ("Succeeded", "Failed") else None,
    )


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() else -1


def _since(metadata: Mapping[str, Any]) -> float | None:
    """When the deletion was asked for: the timestamp is when the grace period ends."""
    end = seconds_of(metadata["deletionTimestamp"])
    return None if end is None else end - float(metadata.get("deletionGracePeriodSeconds") or 0)


def _condition(status: Mapping[str, Any], kind: str) -> str:
    for condition in status.get("conditions") or ():
        if condition["type"] == kind and condition.get("reason"):
            return str(condition["reason"])
    return ""


def _ended(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The terminated states of all containers, init containers first."""
    states = (
        container.get("state", {}).get("terminated")
        for kind in ("initContainerStatuses", "containerStatuses")
        for container in status.get(kind) or ()
    )
    return [state for state in states if state]


def _end_of(status: Mapping[str, Any]) -> tuple[Loss, str]:
    """How a failed pod ended, from the container that failed first."""
    failed = [s for s in _ended(status) if s.get("exitCode") or s.get("signal")]
    # RFC 3339 in UTC sorts as text.
    first = min(failed, key=lambda s: s.get("finishedAt") or "", default=None)
    reason = status.get("reason") or ""
    if first is None:
        return Loss(reason=reason, disruption=_condition(status, "DisruptionTarget")), _last_line(
            status.get("message")
        )
    told = str(first.get("reason") or "")
    return Loss(
        exit_code=first.get("exitCode"),
        signal=first.get("signal") or None,
        reason=reason or (told if told != "Error" else ""),
        disruption=_condition(status, "DisruptionTarget"),
    ), _last_line(first.get("message") or status.get("message"))


def _last_line(text: str | None) -> str:
    """The last words, which for a Python program name the exception."""
    lines = [line.strip() for line in (text or "").splitlines()]
    return next((line for line in reversed(lines) if line), "")[:_MAX_WORDS]


def _waiting(status: Mapping[str, Any]) -> str:
    """What keeps a pending pod from running, in the kubelet's or the scheduler's words."""
    for kind in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(kind) or ():
            state = container.get("state", {}).get("waiting") or {}
            if state.get("reason") and state["reason"] not in _ORDINARY:
                return _words(state)
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition.get("reason") == "Unschedulable":
            return _words(condition)
    return ""


def _words(state: Mapping[str, Any]) -> str:
    message = " ".join(str(state.get("message") or "").split())[:_MAX_WORDS]
    return f"{state['reason']}: {message}" if message else str(state["reason"])


def _started(status: Mapping[str, Any]) -> float | None:
    """When the last of its containers started."""
    times: list[str] = []
    for container in status.get("containerStatuses") or ():
        state = container.get("state", {})
        now = state.get("running") or state.get("terminated") or {}
        if now.get("startedAt"):
            times.append(now["startedAt"])
    return seconds_of(max(times, default=None))


def _finished(status: Mapping[str, Any]) -> float | None:
    """When the last of its containers ended."""
    times = [s["finishedAt"] for s in _ended(status) if s.get("finishedAt")]
    return seconds_of(max(times, default=None))
