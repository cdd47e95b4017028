"""A job in the simulated world: how far its work has come, and what became of it.

How long the work takes is not told to the scheduler. Work is done while at least the minimum of
replicas run or have finished, whatever their number, and stands still otherwise.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf

from muster.scheduling.plan import Wait
from muster.scheduling.snapshot import Gang

_TOLERANCE = 1e-6
"""Seconds. Times are rounded to microseconds, so that events of one instant meet."""


class State(StrEnum):
    """What a job is doing."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class Work:
    """What there is to do, in seconds."""

    seconds: float = inf
    """For all replicas together; infinite means that it never ends."""
    by_rank: tuple[float, ...] = ()
    """For each replica, where they end at different times; replaces `seconds`."""


ENDLESS = Work()


def instant(seconds: float) -> float:
    """The time as the simulation counts it."""
    return round(seconds, 6)


@dataclass(slots=True)
class Job:
    """One job; changed by the driver only.

    `starts`, `finished`, `evictions`, `replicas_lost` and `wait` are there to be read.
    """

    gang: Gang
    work: Work
    after: str = ""
    """The job that has to succeed first."""
    is_submitted: bool = False
    starts: list[float] = field(default_factory=list)
    finished: float | None = None
    evictions: int = 0
    """How often the scheduler took all of its replicas."""
    replicas_lost: int = 0
    """Replicas that others took from it without evicting it."""
    wait: Wait | None = None
    """Why it is pending, as of the last `Simulation.explain`."""
    held_gpu_seconds: float = 0.0
    counted: float = 0.0
    """Up to when `held_gpu_seconds` counts."""
    ticket: int = 0
    """Counts its changes; what was expected of an earlier state is void."""
    done: float = 0.0
    """Seconds of work that are not lost."""
    done_by_rank: dict[int, float] = field(default_factory=dict)
    _clock: float | None = None
    """Up to when `done` counts; `None` while the work stands still; later than now while a
    restart is being paid for."""

    @property
    def key(self) -> str:
        """The name of the job."""
        return self.gang.key

    @property
    def state(self) -> State:
        """What it is doing."""
        if self.finished is not None:
            return State.SUCCEEDED
        return State.PENDING if self.gang.is_pending else State.RUNNING

    @property
    def placement(self) -> tuple[str, ...]:
        """The node of each rank; empty while it holds nothing."""
        return () if self.finished is not None else self.gang.placement or ()

    def count(self, now: float) -> None:
        """Bring the sums to *now*. To be called before anything changes about its gang."""
        held = self.gang.running * self.gang.needs.gpus
        self.held_gpu_seconds += held * (now - self.counted)
        self.counted = now
        if self._clock is not None and now > self._clock:
            passed = now - self._clock
            self.done += passed
            for rank in self._running_ranks():
                self.done_by_rank[rank] = self.done_by_rank.get(rank, 0.0) + passed
            self._clock = now

    def become(self, gang: Gang, now: float, *, overhead: float = 0.0) -> None:
        """Go on as *gang*; of what follows, *overhead* seconds get nothing done."""
        self.count(now)
        self.gang = gang
        self.ticket += 1
        whole = gang.running + len(gang.finished) >= gang.min_replicas
        if gang.is_pending or not whole:
            self._clock = None
        elif self._clock is None:
            self._clock = now + overhead

    def renumber(self, ranks: Mapping[int, int]) -> None:
        """Go on with these ranks only, under their new numbers."""
        self.done_by_rank = {
            ranks[rank]: done for rank, done in self.done_by_rank.items() if rank in ranks
        }

    def lose_work(self) -> None:
        """Nothing that was done so far counts any more."""
        self.done = 0.0
        self.done_by_rank = {}

    def next_end(self) -> float:
        """When the job ends, or the next of its ranks; infinity while that is not in sight."""
        if self._clock is None:
            return inf
        if not self.work.by_rank:
            return instant(self._clock + max(0.0, self.work.seconds - self.done))
        left = [self._left(rank) for rank in self._running_ranks()]
        return instant(self._clock + max(0.0, min(left, default=inf)))

    def ending_ranks(self) -> tuple[int, ...]:
        """The ranks that have nothing left to do; all of them where they end together."""
        if self.work.by_rank:
            return tuple(r for r in self._running_ranks() if self._left(r) <= _TOLERANCE)
        return tuple(self._running_ranks())

    def _left(self, rank: int) -> float:
        return self.work.by_rank[rank] - self.done_by_rank.get(rank, 0.0)

    def _running_ranks(self) -> list[int]:
        return [rank for rank, node in enumerate(self.gang.placement or ()) if node]
