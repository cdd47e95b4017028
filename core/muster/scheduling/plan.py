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


class Right(StrEnum):
    """Why a gang may take capacity from another."""

    PRIORITY = "priority"
    """A lower priority in the same queue, or a later turn where the queue's order preempts."""
    SURPLUS = "surplus"
    """Replicas beyond the minimum of a job of the same queue, of no higher priority."""
    GUARANTEE = "guarantee"
    """Reclaimed within the guarantee of the claimant's queue."""
    SHARE = "share"
    """Reclaimed above it, from a queue that stays above the claimant's share."""
    RESERVATION = "reservation"
    """Started behind the reservation of the claimant, on what was reserved."""


@dataclass(frozen=True, slots=True)
class Victim:
    """Who has to leave for somebody else."""

    gang: str
    ranks: tuple[int, ...] | None
    """Surplus replicas; `None` means the whole gang."""
    right: Right
    lost_gpu_seconds: int
    """Work that is lost unless it saves once more: 0 for surplus."""


@dataclass(frozen=True, slots=True)
class Admit:
    """Start a gang, whole: the node of each replica, in rank order."""

    gang: str
    nodes: tuple[str, ...]
    why: str
    """The placement in words: `8 GPUs on 1 node in rack r1`."""
    behind: tuple[str, ...] = ()
    """The gangs with a reservation that it started behind."""


@dataclass(frozen=True, slots=True)
class Preempt:
    """Make room for a gang: ask the victims to leave, and keep what they free for it.

    With `Policy.leaves_at_once` the decision that uses the room follows in the same plan.
    """

    gang: str
    nodes: tuple[str, ...]
    """The claim: where it will go, see `Gang.claim`."""
    victims: tuple[Victim, ...]
    why: str
    """Who leaves and what that costs, in words."""


@dataclass(frozen=True, slots=True)
class Withdraw:
    """A gang needs its claim no more: nobody has to leave for it any longer.

    Whoever was asked to leave for it and is still there stays. An `Admit` may follow in the same
    plan.
    """

    gang: str
    why: str


@dataclass(frozen=True, slots=True)
class Grow:
    """Give a running elastic gang further replicas, behind its last rank."""

    gang: str
    nodes: tuple[str, ...]
    behind: tuple[str, ...] = ()
    """The gangs with a reservation behind which it got them."""


@dataclass(frozen=True, slots=True)
class Shrink:
    """Go on without some ranks: an elastic gang lost them, and is still above its minimum.

    The ranks behind them move up.
    """

    gang: str
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Replace:
    """Put lost ranks of a running gang on other nodes; all other ranks stay."""

    gang: str
    ranks: tuple[int, ...]
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Leave:
    """Ask ranks on nodes that are drained to save their work and go; they are lost then."""

    gang: str
    ranks: tuple[int, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Requeue:
    """Take back all of a gang whose lost replicas could not be replaced in time."""

    gang: str
    why: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Leave a gang in its queue."""

    gang: str
    reason: WaitReason
    message: str
    """The reason in words, with the numbers."""
    position: int
    """Its place in its queue, from 1, in the order of this cycle."""
    predicted_start: float | None = None
    """When it starts if every job ends as it declared or reports; `None` where that is unknown, or
    not worked out in a cycle: for that see `simulation.forecast`."""
    waits_for: str = ""
    """The job whose end it waits for then."""


Deed = Preempt | Withdraw | Admit | Grow | Shrink | Replace | Leave | Requeue
Decision = Deed | Wait


@dataclass(frozen=True, slots=True)
class Plan:
    """The outcome of one cycle: what happens, in the order in which it is to be carried out, and
    why everything else waits.
    """

    decisions: tuple[Decision, ...] = ()
    wake_at: float | None = None
    """When time alone may change the decisions: a shield that ends, a level that is reached."""

    @property
    def admitted(self) -> tuple[Admit, ...]:
        """The gangs that start."""
        return tuple(d for d in self.decisions if isinstance(d, Admit))

    @property
    def waiting(self) -> tuple[Wait, ...]:
        """The gangs that do not, and why."""
        return tuple(d for d in self.decisions if isinstance(d, Wait))

    @property
    def deeds(self) -> tuple[Deed, ...]:
        """All that changes something."""
        return tuple(d for d in self.decisions if not isinstance(d, Wait))
