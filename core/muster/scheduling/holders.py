"""Who holds capacity in a cycle: the gangs that ran before it, and those that it starts.

A holder changes while a cycle decides (it shrinks, grows, leaves); the gang in it does not.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import TypeVar, cast

from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import NOWHERE, Gang, Run, Snapshot

_Found = TypeVar("_Found")

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
    grown: int = 0
    """How many of its last ranks it only got in this cycle."""
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

    @property
    def is_special(self) -> bool:
        """Whether something is under way about it, or it may grow."""
        gang = self.gang
        return bool(
            gang.leaving
            or gang.claim
            or len(self.nodes) < gang.replicas
            or LOST in self.nodes
            or self.run.took
        )

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


class Base:
    """The placed gangs of a cluster, kept from cycle to cycle; a cycle changes nothing in here."""

    def __init__(self, position: Mapping[str, int], gangs: Iterable[Gang] = ()) -> None:
        self._position = position
        self.by_key: dict[str, Holder] = {}
        self.by_queue: dict[str, dict[str, Holder]] = {}
        self.version = -1
        """Of the last snapshot for which it is good."""
        self.special: dict[str, Holder] = {}
        """Those about which something is under way, or that may grow."""
        self.kept: dict[str, object] = {}
        """What was worked out of a queue, kept until one of its holders changes."""
        self.behind: dict[str, dict[str, Holder]] = {}
        """Who started or grew behind the reservation of each gang."""
        for gang in gangs:
            self.add(gang)

    def add(self, gang: Gang) -> None:
        """Take in a placed gang."""
        run, position = gang.run or _UNKNOWN, self._position
        nodes = [
            position.get(name, AWAY) if name != NOWHERE else LOST for name in gang.placement or ()
        ]
        holder = Holder(gang, nodes, run.started, run, is_asked=bool(gang.leaving))
        self.by_key[gang.key] = holder
        self.by_queue.setdefault(gang.queue, {})[gang.key] = holder
        self.kept.pop(gang.queue, None)
        if holder.is_special:
            self.special[gang.key] = holder
        for leader in (*holder.run.behind, *holder.run.grown_behind):
            self.behind.setdefault(leader, {})[holder.key] = holder

    def remove(self, key: str) -> None:
        """Forget a gang."""
        holder = self.by_key.pop(key)
        self.kept.pop(holder.queue, None)
        queue = self.by_queue[holder.queue]
        del queue[key]
        if not queue:
            del self.by_queue[holder.queue]
        self.special.pop(key, None)
        for leader in {*holder.run.behind, *holder.run.grown_behind}:
            followers = self.behind[leader]
            del followers[key]
            if not followers:
                del self.behind[leader]


class Roster:
    """Who holds what in one cycle: the base, and what was decided since.

    A holder of the base is never changed: `change` gives a copy that may be.
    """

    def __init__(self, base: Base) -> None:
        self._base = base
        self._gone: set[str] = set()
        """Keys of the base that left, or were replaced by a changed copy."""
        self._own: dict[str, Holder] = {}
        self._kept: dict[str, object] = {}
        self._stirred: set[str] = set()
        """Queues that are not as in the base."""
        self.generation = 0
        """Grows with every change."""

    def copy(self) -> "Roster":
        """The same, to go on with apart."""
        copied = Roster(self._base)
        copied._gone, copied._own = set(self._gone), dict(self._own)
        copied._stirred = set(self._stirred)
        return copied

    def __iter__(self) -> Iterator[Holder]:
        gone = self._gone
        for key, holder in self._base.by_key.items():
            if key not in gone:
                yield holder
        yield from self._own.values()

    def __contains__(self, key: str) -> bool:
        return key in self._own or (key in self._base.by_key and key not in self._gone)

    def __len__(self) -> int:
        return len(self._base.by_key) - len(self._gone) + len(self._own)

    def get(self, key: str) -> Holder | None:
        """The holder of this key."""
        own = self._own.get(key)
        if own is not None or key in self._gone:
            return own
        return self._base.by_key.get(key)

    @property
    def queues_held(self) -> Mapping[str, object]:
        """The queues of the gangs that ran before the cycle."""
        return self._base.by_queue

    def queues(self) -> list[str]:
        """The queues in which somebody may hold something, by name."""
        return sorted(self._base.by_queue.keys() | {h.queue for h in self._own.values()})

    def of_queue(self, queue: str) -> Iterator[Holder]:
        """The holders of one queue."""
        gone = self._gone
        for key, holder in self._base.by_queue.get(queue, {}).items():
            if key not in gone:
                yield holder
        for holder in self._own.values():
            if holder.queue == queue:
                yield holder

    def special(self) -> list[Holder]:
        """Those about which something is under way, or that may grow, by key."""
        found = [h for key, h in self._base.special.items() if key not in self._gone]
        found += [holder for holder in self._own.values() if holder.is_special]
        return sorted(found, key=lambda holder: holder.key)

    def kept(self, queue: str, work_out: Callable[[Iterable[Holder]], _Found]) -> _Found:
        """What *work_out* finds about the holders of a queue; kept while they stay the same."""
        kept = self._kept if queue in self._stirred else self._base.kept
        found = kept.get(queue)
        if found is None:
            found = kept[queue] = work_out(self.of_queue(queue))
        return cast("_Found", found)

    def touch(self, queue: str) -> None:
        """Note that a holder of the queue is not what it was."""
        self.generation += 1
        self._stirred.add(queue)
        self._kept.pop(queue, None)

    def behind(self, key: str) -> list[Holder]:
        """Who started, or grew, behind the reservation of a gang."""
        gone = self._gone
        followers = self._base.behind.get(key, {})
        found = [holder for follower, holder in followers.items() if follower not in gone]
        found += [
            holder
            for holder in self._own.values()
            if key in holder.run.behind or key in holder.run.grown_behind
        ]
        return found

    def is_behind(self, key: str) -> bool:
        """Whether anybody did."""
        return bool(self.behind(key))

    def add(self, holder: Holder) -> None:
        """Take in a gang that starts."""
        self.touch(holder.queue)
        self._own[holder.key] = holder

    def remove(self, holder: Holder) -> None:
        """Forget a holder."""
        self.touch(holder.queue)
        if self._own.pop(holder.key, None) is None:
            self._gone.add(holder.key)

    def change(self, holder: Holder) -> Holder:
        """The same holder, to be changed."""
        self.touch(holder.queue)
        own = self._own.get(holder.key)
        if own is None:
            own = self._own[holder.key] = replace(holder, nodes=list(holder.nodes))
            self._gone.add(holder.key)
        return own


def roster_of(snapshot: Snapshot) -> Roster:
    """The gangs that run before anything is decided."""
    base = snapshot.base
    if base is None or base.version != snapshot.version:
        # The cluster has gone on since this snapshot was taken.
        base = Base(snapshot.tree.position, snapshot.running)
    return Roster(base)


def taken_at_reserved_times(roster: Roster, snapshot: Snapshot) -> frozenset[tuple[str, str]]:
    """Pairs of queues: the first may reclaim nothing above its guarantee from the second, since a
    gang of the second took it at its reserved time and nothing has changed since.
    """
    return frozenset(
        (queue, holder.queue)
        for holder in roster.special()
        if holder.run.took and holder.run.took.at >= snapshot.changed
        for queue in holder.run.took.queues
    )


_UNKNOWN = Run(started=0.0)
