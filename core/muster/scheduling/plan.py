"""What a cycle says: decisions, and the reason for everything that it did not do.

Status, events, metrics and log lines are rendered from this, outside. What is not in the plan did
not happen.
"""

from dataclasses import dataclass
from enum import StrEnum


class WaitReason(StrEnum):
    """The constraint that binds a pending gang; the value is the condition reason that a user
    sees.

    In the order of precedence: where several are true, the first one is given.
    """

    SUSPENDED = "Suspended"
    UNKNOWN_QUEUE = "UnknownQueue"
    UNKNOWN_TOPOLOGY_LEVEL = "UnknownTopologyLevel"
    DEPENDENCY = "Dependency"
    NO_MATCHING_NODES = "NoMatchingNodes"
    NEVER_FITS = "NeverFits"
    QUEUE_LIMIT = "QueueLimit"
    WAITING_FOR_PREEMPTION = "WaitingForPreemption"
    RESERVED = "Reserved"
    TOPOLOGY_UNSATISFIED = "TopologyUnsatisfied"
    FRAGMENTED = "Fragmented"
    QUEUE_SHARE = "QueueShare"
    INSUFFICIENT_CAPACITY = "InsufficientCapacity"


@dataclass(frozen=True, slots=True)
class Admit:
    """Start a gang, whole: the node of each replica, in rank order."""

    gang: str
    nodes: tuple[str, ...]
    why: str
    """The placement in words: `8 GPUs on 1 node in rack r1`."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Leave a gang in its queue."""

    gang: str
    reason: WaitReason
    message: str
    """The reason in words, with the numbers."""
    position: int
    """Its place in its queue, from 1, in the order of this cycle."""


Decision = Admit | Wait


@dataclass(frozen=True, slots=True)
class Plan:
    """The outcome of one cycle: a decision for each pending gang, in the order they were taken."""

    decisions: tuple[Decision, ...] = ()

    @property
    def admitted(self) -> tuple[Admit, ...]:
        """The gangs that start."""
        return tuple(d for d in self.decisions if isinstance(d, Admit))

    @property
    def waiting(self) -> tuple[Wait, ...]:
        """The gangs that do not, and why."""
        return tuple(d for d in self.decisions if isinstance(d, Wait))
