"""`TrainingJob.status` as the operator knows it, in frozen values.

`status_raw` reads and writes them. Of the recorder's fields (`progress`, `checkpoint`, `cost`)
only two times are here, which are read and never written.
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from muster.claims import Claim, Directive
from muster.restarts import Restarts
from muster.scheduling.snapshot import Displaced, Leaving, Took

MAX_ATTEMPTS: Final = 10
"""Attempts that status keeps; the recorder has them all."""


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
    PREEMPTED = "Preempted"


@dataclass(frozen=True, slots=True)
class Growth:
    """Replicas that a running gang was given: those from `first` on."""

    first: int
    at: float
    round: int
    """The round that it began; it tells its pods from earlier ones of the same rank."""
    running_at: float | None = None
    """When all of them ran."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The decision: the node of each replica, in rank order; there while the gang holds GPUs."""

    attempt: int
    decided_at: float
    port: int
    nodes: tuple[str, ...]
    why: str
    round: int = 0
    """With which the attempt began; all of its replicas carry it."""
    keeps: int | None = None
    """Replicas that stay, while the others end."""
    grown: tuple[Growth, ...] = ()
    yielded: tuple[str, ...] = ()
    """The latest asks for surplus that were carried out."""
    behind: tuple[str, ...] = ()
    grown_behind: tuple[str, ...] = ()
    took: Took | None = None

    @property
    def size(self) -> int:
        """Replicas that are meant to go on."""
        return len(self.nodes) if self.keeps is None else self.keeps

    @property
    def settled(self) -> int:
        """Replicas that have all run together; those above have only just been given."""
        news = [growth.first for growth in self.grown if growth.running_at is None]
        return min([*news, self.size])

    def incarnation(self, replica: int) -> int:
        """What tells the pod of *replica* from an earlier one of this attempt."""
        rounds = [growth.round for growth in self.grown if growth.first <= replica]
        return max(rounds) - self.round if rounds else 0

    def held_since(self, replica: int) -> float:
        """Since when it holds the GPUs of *replica*."""
        times = [growth.at for growth in self.grown if growth.first <= replica]
        return max(times, default=self.decided_at)


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

    @property
    def gpus_per_replica(self) -> int:
        """GPUs of each of its replicas."""
        return self.gpus // max(self.replicas, 1)


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
    predicted_start: float | None = None
    waits_for: str = ""
    placement: Placement | None = None
    claim: Claim | None = None
    leaving: tuple[Leaving, ...] = ()
    """For people to see: what counts is in the claims of the others."""
    displaced: Displaced | None = None
    is_returning: bool = False
    attained: float = 0.0
    """GPU-seconds that earlier attempts held, and ranks that were taken back."""
    is_released: bool = False
    """Whether the job that it comes after has succeeded."""
    ran: float = 0.0
    """Seconds of work that earlier attempts did and that are kept."""
    directive: Directive | None = None
    attempts: tuple[Attempt, ...] = ()
    restarts: Restarts = field(default_factory=Restarts)
    retry_at: float | None = None
    started_at: float | None = None
    finished_at: float | None = None
    saved_at: float | None = None
    """When its newest checkpoint was verified; the recorder's."""
    eta: float | None = None
    """When it will be done, by its own progress; the recorder's."""

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
