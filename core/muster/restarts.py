"""Why a replica was lost, whose budget pays for it, and when the next attempt may start.

One table, read from top to bottom: the first row that matches names the cause. Preemption and
broken machines never eat the budget for mistakes in the training script (ray-project/ray#41285),
and what the cluster refuses before anything ran costs no budget at all.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Cause(StrEnum):
    """Who is to blame for the end of an attempt."""

    USER = "user"
    INFRASTRUCTURE = "infrastructure"
    PREEMPTION = "preemption"
    REFUSED = "refused"
    """Quota, admission or the kubelet said no; nothing ran, nothing is spent."""


REASONS: Final = {
    Cause.USER: "UserError",
    Cause.INFRASTRUCTURE: "InfrastructureError",
    Cause.PREEMPTION: "Preempted",
    Cause.REFUSED: "AdmissionRefused",
}
"""The condition reason of each cause."""


class NodeState(StrEnum):
    """What is known of the node of a replica."""

    UP = "up"
    UNREACHABLE = "unreachable"
    """Its Ready condition is `Unknown`: nobody has heard of it for the grace period."""
    GONE = "gone"
    """There is no such node object."""


@dataclass(frozen=True, slots=True)
class Loss:
    """The end of one replica, as far as it can be seen."""

    exit_code: int | None = None
    """Of the container that failed; `None` when none has."""
    signal: int | None = None
    reason: str = ""
    """`status.reason` of the pod, else the reason of the terminated container (`OOMKilled`)."""
    disruption: str = ""
    """The reason of the `DisruptionTarget` condition; empty without one."""
    is_deleted: bool = False
    """Somebody deleted the pod while the attempt went on."""
    node: NodeState = NodeState.UP

    @property
    def killed_by(self) -> int | None:
        """The signal that ended it: told by the kubelet, or by a shell as 128 + n."""
        if self.signal:
            return self.signal
        if self.exit_code is not None and 128 < self.exit_code < 160:
            return self.exit_code - 128
        return None


# Reasons with which a kubelet refuses a pod that was bound to its node; `OutOf…` besides.
_KUBELET_REFUSALS: Final = frozenset(
    {
        "NodeAffinity",
        "NodePorts",
        "PodFeatureUnsupported",
        "PodOSNotSupported",
        "PodOSSelectorNodeLabelDoesNotMatch",
        "ResourceAllocationError",
        "TopologyAffinityError",
        "UnexpectedAdmissionError",
    }
)
# Who takes a pod away to use its place otherwise, or because its node is about to leave.
_PREEMPTIONS: Final = frozenset(
    {"DeletionByTaintManager", "EvictionByEvictionAPI", "PreemptionByScheduler"}
)
# A node that shuts down leaves pods as `Failed` with one of these (kubernetes#98012, #104798).
_SHUTDOWNS: Final = frozenset({"NodeShutdown", "Shutdown", "Terminated"})
# A container that could not be started: a wrong command, a missing program, or a template that
# process nodes cannot run, which no other node will run either.
_NOT_STARTED: Final = frozenset(
    {"ContainerCannotRun", "NoCommand", "StartError", "UnsupportedVolume"}
)
# What a process does to itself; any other signal came from outside.
_OWN_SIGNALS: Final = frozenset({4, 5, 6, 8, 11, 31})

_TABLE: Final[tuple[tuple[str, Callable[[Loss], bool], Cause], ...]] = (
    (
        "its node had no room after all",
        lambda loss: loss.reason.startswith("OutOf"),
        Cause.REFUSED,
    ),
    (
        "the kubelet refused the pod for what it is",
        lambda loss: loss.reason in _KUBELET_REFUSALS,
        Cause.REFUSED,
    ),
    (
        "somebody took its place",
        lambda loss: loss.disruption in _PREEMPTIONS,
        Cause.PREEMPTION,
    ),
    ("its node shut down", lambda loss: loss.reason in _SHUTDOWNS, Cause.PREEMPTION),
    ("its node is gone", lambda loss: loss.node is not NodeState.UP, Cause.INFRASTRUCTURE),
    (
        "the platform ended it",
        lambda loss: bool(loss.disruption) or loss.reason in {"Evicted", "NodeLost"},
        Cause.INFRASTRUCTURE,
    ),
    ("it outgrew its memory limit", lambda loss: loss.reason == "OOMKilled", Cause.USER),
    ("it ran past its deadline", lambda loss: loss.reason == "DeadlineExceeded", Cause.USER),
    ("its command could not be run", lambda loss: loss.reason in _NOT_STARTED, Cause.USER),
    ("somebody deleted it", lambda loss: loss.is_deleted, Cause.INFRASTRUCTURE),
    (
        "it was killed from outside",
        lambda loss: loss.killed_by is not None and loss.killed_by not in _OWN_SIGNALS,
        Cause.INFRASTRUCTURE,
    ),
    ("it failed", lambda loss: bool(loss.exit_code) or bool(loss.signal), Cause.USER),
)


def cause_of(loss: Loss) -> Cause:
    """Whose budget pays for *loss*. What nobody can explain is the platform's fault."""
    return next((cause for _, holds, cause in _TABLE if holds(loss)), Cause.INFRASTRUCTURE)


@dataclass(frozen=True, slots=True)
class Restarts:
    """How often each cause has ended an attempt of this job."""

    preemption: int = 0
    infrastructure: int = 0
    user: int = 0

    def plus(self, cause: Cause) -> "Restarts":
        """With one more end by *cause*; a refusal counts nowhere."""
        return Restarts(
            self.preemption + (cause is Cause.PREEMPTION),
            self.infrastructure + (cause is Cause.INFRASTRUCTURE),
            self.user + (cause is Cause.USER),
        )


@dataclass(frozen=True, slots=True)
class Budgets:
    """How many restarts each cause may cost; `None` is without limit."""

    preemption: int | None = None
    infrastructure: int | None = 10
    user: int | None = 3

    def exhausted_by(self, restarts: Restarts) -> Cause | None:
        """The cause whose budget *restarts* exceeds: N allowed means N restarts, not N - 1."""
        pairs = (
            (Cause.USER, restarts.user, self.user),
            (Cause.INFRASTRUCTURE, restarts.infrastructure, self.infrastructure),
            (Cause.PREEMPTION, restarts.preemption, self.preemption),
        )
        return next((c for c, used, most in pairs if most is not None and used > most), None)


@dataclass(frozen=True, slots=True)
class Backoff:
    """Growing pauses: nothing before the first free tries, then doubling up to a cap."""

    first_seconds: float = 5.0
    most_seconds: float = 300.0
    free: int = 0
    """Failures in a row after which there is no pause yet."""

    def pause(self, failures: int) -> float:
        """Seconds to wait after that many failures in a row."""
        paid = failures - self.free
        if paid <= 0:
            return 0.0
        # The exponent is capped as well: 2.0**1100 is no float.
        return min(self.most_seconds, self.first_seconds * 2.0 ** min(paid - 1, 32))
