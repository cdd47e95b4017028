"""Who holds capacity in a cycle: the gangs that ran before it, and those that it starts.

A holder changes while a cycle decides (it shrinks, grows, leaves); the gang in it does not.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf

from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import NOWHERE, Gang, Run, Snapshot

AWAY = -1
"""Stands for the position of a node that is not known: a rank holds its place there."""

LOST = -2
"""Stands for the position of a rank that holds nothing: it is lost, or has finished."""


@dataclass(slots=True, eq=False)
class Holder:
    """A placed gang."""

    gang: Gang
    nodes: list[int]
    """The position of each rank's node."""
    started: float
    run: Run
    is_fresh: bool = False
    """Started in this cycle: what becomes of it before the end of the cycle never happened."""
    is_asked: bool = False
    """Some of it was asked to leave already."""
    has_evicted: bool = False
    """It makes others leave in this cycle."""

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return self.gang.key

    @property
    def queue(self) -> str:
        """The queue that it counts against."""
        return self.gang.queue

    @property
    def replicas(self) -> int:
        """How many hold a place, on known nodes or not."""
        return len(self.nodes) - self.lacking

    @property
    def lacking(self) -> int:
        """Ranks that are lost or have finished."""
        return self.nodes.count(LOST)

    @property
    def surplus(self) -> int:
        """Replicas beyond the minimum; none while a rank is lost or has finished."""
        return 0 if self.lacking else max(len(self.nodes) - self.gang.min_replicas, 0)

    @property
    def gpus(self) -> int:
        """GPUs that it holds."""
        return self.replicas * self.gang.needs.gpus

    def spread(self, ranks: Iterable[int] | None = None) -> dict[int, int]:
        """Replicas by node, of all ranks or some."""
        nodes = self.nodes if ranks is None else [self.nodes[rank] for rank in ranks]
        return spread_of(nodes)

    def ends(self, now: float) -> float:
        """When it ends by what it declared or reports. One that is overdue counts as endless."""
        declared = inf
        if self.gang.max_run_time is not None:
            declared = self.started + self.gang.max_run_time - self.gang.ran
        reported = inf if self.run.eta is None else self.run.eta
        end = min(declared, reported)
        return end if end > now else inf

    def work_lost(self, policy: Policy, now: float) -> float:
        """GPU-seconds since its last checkpoint, or its start, and those of a restart."""
        if self.is_fresh:
            return 0.0
        since = max(self.started, self.started if self.run.saved is None else self.run.saved)
        return self.gpus * (max(now - since, 0.0) + policy.restart_time)


def spread_of(nodes: Iterable[int]) -> dict[int, int]:
    """Replicas by node, for a row of positions."""
    spread: dict[int, int] = {}
    for node in nodes:
        if node >= 0:
            spread[node] = spread.get(node, 0) + 1
    return spread


@dataclass(slots=True)
class Roster:
    """All holders, by queue and by key."""

    by_key: dict[str, Holder] = field(default_factory=dict)
    by_queue: dict[str, dict[str, Holder]] = field(default_factory=dict)
    _behind: dict[str, int] = field(default_factory=dict)

    def is_behind(self, key: str) -> bool:
        """Whether anybody started, or grew, behind the reservation of a gang."""
        return self._behind.get(key, 0) > 0

    def note_behind(self, keys: Iterable[str]) -> None:
        """Note that somebody started behind the reservations of these gangs."""
        for key in keys:
            self._behind[key] = self._behind.get(key, 0) + 1

    def add(self, holder: Holder) -> None:
        """Take in a holder."""
        self.note_behind((*holder.run.behind, *holder.run.grown_behind))
        self.by_key[holder.key] = holder
        self.by_queue.setdefault(holder.queue, {})[holder.key] = holder

    def remove(self, holder: Holder) -> None:
        """Forget a holder."""
        del self.by_key[holder.key]
        del self.by_queue[holder.queue][holder.key]

    def __iter__(self) -> Iterator[Holder]:
        return iter(self.by_key.values())


def roster_of(snapshot: Snapshot) -> Roster:
    """The gangs that run before anything is decided."""
    roster, position = Roster(), snapshot.tree.position
    for gang in snapshot.running:
        roster.add(_holder(gang, position))
    return roster


def _holder(gang: Gang, position: Mapping[str, int]) -> Holder:
    run = gang.run or _UNKNOWN
    nodes = [
        position.get(name, AWAY) if name != NOWHERE else LOST for name in gang.placement or ()
    ]
    return Holder(gang, nodes, run.started, run, is_asked=bool(gang.leaving))


_UNKNOWN = Run(started=0.0)
