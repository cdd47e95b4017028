"""The status of a pod, rendered from what its containers do.

Only computes. What others wrote into the status, such as conditions of kinds that are not ours,
stays; the time of a condition's last change is carried over from the status before.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from muster_local.nodes.admission import Refusal
from muster_local.nodes.fields import LOOPBACK

Raw = Mapping[str, Any]
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Waiting:
    """Not running now, and may run later."""

    reason: str = "ContainerCreating"
    message: str = ""


@dataclass(frozen=True, slots=True)
class Running:
    """Runs since then, in seconds since the epoch."""

    started_at: float
    run: str = ""
    """Identifies this run of the container."""


@dataclass(frozen=True, slots=True)
class Terminated:
    """Ended."""

    exit_code: int
    signal: int = 0
    reason: str = "Completed"
    message: str = ""
    started_at: float = 0.0
    finished_at: float = 0.0
    run: str = ""


State = Waiting | Running | Terminated


@dataclass(frozen=True, slots=True)
class ContainerView:
    """A container at one moment."""

    name: str
    image: str
    state: State
    last: Terminated | None = None
    """How the run before ended."""
    restarts: int = 0
    is_init: bool = False
    is_sidecar: bool = False

    @property
    def is_ready(self) -> bool:
        """Whether it does what others wait for: an init step is done, anything else runs."""
        if self.is_init and not self.is_sidecar:
            return isinstance(self.state, Terminated) and self.state.exit_code == 0
        return isinstance(self.state, Running)

    @property
    def was_ready(self) -> bool:
        """Whether it got that far at any time."""
        if self.is_init and not self.is_sidecar:
            return self.is_ready
        return self.last is not None or not isinstance(self.state, Waiting)


def phase_of(views: Sequence[ContainerView], *, is_over: bool) -> str:
    """The phase of the pod. *is_over* says that nothing will be started any more."""
    if is_over:
        counted = [view for view in views if not view.is_sidecar]
        return "Succeeded" if all(_succeeded(view) for view in counted) else "Failed"
    return "Running" if all(view.was_ready for view in views) else "Pending"


def status_of(
    pod: Raw,
    views: Sequence[ContainerView],
    *,
    now: float,
    started_at: float,
    is_over: bool = False,
    refusal: Refusal | None = None,
) -> Json:
    """The whole status, to be merged into the pod's. *refusal* says why the pod failed as such."""
    phase = "Failed" if refusal else phase_of(views, is_over=is_over)
    status: Json = {
        "phase": phase,
        "observedGeneration": pod["metadata"].get("generation", 0),
        "startTime": time_of(started_at),
        "hostIP": LOOPBACK,
        "hostIPs": [{"ip": LOOPBACK}],
        "podIP": LOOPBACK,
        "podIPs": [{"ip": LOOPBACK}],
        "conditions": _conditions(pod, views, phase, now),
        "initContainerStatuses": [_container(view) for view in views if view.is_init],
        "containerStatuses": [_container(view) for view in views if not view.is_init],
        "reason": refusal.reason if refusal else None,
        "message": refusal.message if refusal else None,
    }
    if not status["initContainerStatuses"]:
        del status["initContainerStatuses"]
    return status


def time_of(seconds: float) -> str:
    """RFC 3339 in UTC, to the second: what the API keeps of a pod's times."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _succeeded(view: ContainerView) -> bool:
    return isinstance(view.state, Terminated) and view.state.exit_code == 0


_OURS: Final = (
    "PodReadyToStartContainers",
    "Initialized",
    "Ready",
    "ContainersReady",
    "PodScheduled",
)


def _conditions(pod: Raw, views: Sequence[ContainerView], phase: str, now: float) -> list[Json]:
    before: list[Raw] = (pod.get("status") or {}).get("conditions") or []
    is_over = phase in ("Succeeded", "Failed")
    initialized = all(view.was_ready for view in views if view.is_init)
    unready = [v.name for v in views if not v.is_init and not isinstance(v.state, Running)]
    why_not: tuple[str, str] = (
        ("PodCompleted" if phase == "Succeeded" else "PodFailed", "")
        if is_over
        else ("ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]")
    )
    ready = (False, *why_not) if is_over or unready else (True, "", "")
    values: dict[str, tuple[bool, str, str]] = {
        "PodReadyToStartContainers": (not is_over, "", ""),
        "Initialized": (initialized, "", "")
        if initialized
        else (False, "ContainersNotInitialized", ""),
        "Ready": ready,
        "ContainersReady": ready,
        "PodScheduled": (True, "", ""),
    }
    known = {condition["type"]: condition for condition in before}
    kept = [dict(condition) for condition in before if condition["type"] not in _OURS]
    return kept + [_condition(name, values[name], known.get(name), now) for name in _OURS]


def _condition(name: str, value: tuple[bool, str, str], before: Raw | None, now: float) -> Json:
    is_true, reason, message = value
    status = "True" if is_true else "False"
    changed = time_of(now)
    if before and before["status"] == status and before.get("lastTransitionTime"):
        changed = before["lastTransitionTime"]
    texts = {"reason": reason, "message": message}
    told = {key: text for key, text in texts.items() if text}
    return {"type": name, "status": status, "lastTransitionTime": changed, **told}


def _container(view: ContainerView) -> Json:
    run = "" if isinstance(view.state, Waiting) else view.state.run
    if not run and view.last:
        run = view.last.run
    return {
        "name": view.name,
        "image": view.image,
        # Nothing was pulled; the field is required all the same.
        "imageID": "",
        "containerID": f"process://{run}" if run else "",
        "ready": view.is_ready,
        "started": isinstance(view.state, Running),
        "restartCount": view.restarts,
        "state": _state(view.state),
        "lastState": _state(view.last) if view.last else {},
    }


def _state(state: State) -> Json:
    match state:
        case Waiting():
            return {"waiting": dict(_told(reason=state.reason, message=state.message))}
        case Running():
            return {"running": {"startedAt": time_of(state.started_at)}}
        case Terminated():
            ended: Json = {
                "exitCode": state.exit_code,
                "finishedAt": time_of(state.finished_at),
                **dict(_told(reason=state.reason, message=state.message)),
            }
            if state.started_at:
                ended["startedAt"] = time_of(state.started_at)
            if state.signal:
                ended["signal"] = state.signal
            if state.run:
                ended["containerID"] = f"process://{state.run}"
            return {"terminated": ended}


def _told(**texts: str) -> Iterator[tuple[str, str]]:
    return ((key, text) for key, text in texts.items() if text)
