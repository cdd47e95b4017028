"""The cluster as the scheduler keeps it between cycles, in arrays changed in place.

Every call costs what it changes, not what exists. What is static between two changes of nodes,
labels or queues (tree, columns, quotas) is built when the next snapshot is taken.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from muster.scheduling.floor import Floor
from muster.scheduling.holders import Base
from muster.scheduling.lanes import Lanes
from muster.scheduling.ledger import Ledger
from muster.scheduling.quota import Accounts
from muster.scheduling.snapshot import NOWHERE, Gang, Level, Needs, Node, Queue, Snapshot
from muster.scheduling.usage import Usage


@dataclass(frozen=True, slots=True)
class Objects:
    """All that a cluster was told, as plain values that can be written down."""

    levels: tuple[Level, ...] = ()
    nodes: tuple[Node, ...] = ()
    queues: tuple[Queue, ...] = ()
    gangs: tuple[Gang, ...] = ()
    foreign: tuple[tuple[str, str, Needs], ...] = ()
    """Other people's pods: a key, the node, and what they hold there."""
    changed: float = 0.0
    usage: tuple[tuple[str, float], ...] = ()
    """Decayed usage of each queue at `usage_at`."""
    usage_by_model: tuple[tuple[str, str, float], ...] = ()
    usage_at: float = 0.0


class Cluster:
    """Nodes, queues, gangs and other people's pods; used from one thread.

    A gang may be placed on nodes that are not known, or not any more: it holds its place there,
    and counts against its queue.
    """

    def __init__(self) -> None:
        self._levels: tuple[Level, ...] = ()
        self._nodes: dict[str, Node] = {}
        self._gangs: dict[str, Gang] = {}
        self._foreign: dict[str, tuple[str, Needs]] = {}
        self._ledger = Ledger()
        self._others = Ledger()
        """What pods hold that are not ours."""
        self._accounts = Accounts()
        self._lanes = Lanes()
        self._spreads: dict[str, Mapping[str, int]] = {}
        self._gangs_on: dict[str, set[str]] = {}
        self._usage = Usage()
        self._outside = 0.0
        self._version = 0
        self._capacity_version = 0
        self._floor: Floor | None = None
        self._base: Base | None = None
        self._latest: Snapshot | None = None

    @classmethod
    def of(
        cls,
        *,
        levels: Iterable[Level] = (),
        nodes: Iterable[Node] = (),
        queues: Iterable[Queue] = (),
        gangs: Iterable[Gang] = (),
        foreign: Iterable[tuple[str, str, Needs]] = (),
    ) -> Self:
        """A cluster with all of this in it."""
        cluster = cls()
        cluster.set_levels(levels)
        for node in nodes:
            cluster.upsert_node(node)
        for queue in queues:
            cluster.upsert_queue(queue)
        for gang in gangs:
            cluster.upsert_gang(gang)
        for key, node_name, needs in foreign:
            cluster.upsert_foreign(key, node_name, needs)
        return cluster

    @classmethod
    def restored(cls, objects: Objects) -> Self:
        """The cluster that was told all of this."""
        cluster = cls.of(
            levels=objects.levels,
            nodes=objects.nodes,
            queues=objects.queues,
            gangs=objects.gangs,
            foreign=objects.foreign,
        )
        cluster.set_changed(objects.changed)
        cluster.load_usage(objects)
        return cluster

    def objects(self) -> Objects:
        """All that it was told, in the order of names."""
        return Objects(
            levels=self._levels,
            nodes=tuple(self._nodes[name] for name in sorted(self._nodes)),
            queues=tuple(self._accounts.queues[name] for name in sorted(self._accounts.queues)),
            gangs=tuple(self._gangs[key] for key in sorted(self._gangs)),
            foreign=tuple((key, *self._foreign[key]) for key in sorted(self._foreign)),
            changed=self._outside,
            usage=tuple(sorted(self._usage.total.items())),
            usage_by_model=tuple(
                (queue, model, value)
                for (queue, model), value in sorted(self._usage.by_model.items())
            ),
            usage_at=self._usage.at,
        )

    def set_changed(self, at: float) -> None:
        """Note that something changed from outside; see `Snapshot.changed`."""
        if at != self._outside:
            self._outside = at
            self._changed()

    def load_usage(self, objects: Objects) -> None:
        """Go on from decayed usage that was written down."""
        by_model = (((queue, model), value) for queue, model, value in objects.usage_by_model)
        self._usage.load(objects.usage, by_model, objects.usage_at)
        self._latest = None

    def advance(self, now: float, half_life: float) -> None:
        """Bring decayed usage to *now*; to be called before anything changes at a new time."""
        if half_life > 0:
            assert self._accounts.quotas is not None
            self._usage.advance(self._accounts.held, now, half_life)
            self._latest = None

    def set_levels(self, levels: Iterable[Level]) -> None:
        """The levels of the topology, outermost first."""
        levels = tuple(levels)
        if levels != self._levels:
            self._levels = levels
            self._changed()
            self._floor = None

    def upsert_node(self, node: Node) -> None:
        """Take in a node, or what changed about it."""
        old = self._nodes.get(node.name)
        if node == old:
            return
        self._changed()
        self._capacity_version += 1
        self._nodes[node.name] = node
        self._ledger.touch(node.name)
        self._recount(node.name, _model_of(old), node.gpu_model)
        if self._floor is not None and (old is None or not self._floor.takes(node, old)):
            self._floor = None

    def remove_node(self, name: str) -> None:
        """Forget a node; what is placed there keeps its place."""
        old = self._nodes.pop(name, None)
        if old is None:
            return
        self._changed()
        self._capacity_version += 1
        self._recount(name, old.gpu_model, None)
        self._floor = None

    def upsert_queue(self, queue: Queue) -> None:
        """Take in a queue, or what changed about it."""
        if self._accounts.set_queue(queue):
            self._lanes.reorder(queue.name, queue.order)
            self._lanes.limit_users(are_limited=self._accounts.are_users_limited)
            self._changed()

    def remove_queue(self, name: str) -> None:
        """Forget a queue. Its gangs stay: the placed ones keep their place, the others wait."""
        if self._accounts.drop_queue(name):
            self._lanes.reorder(name, self._accounts.order_of(name))
            self._lanes.limit_users(are_limited=self._accounts.are_users_limited)
            self._changed()

    def upsert_gang(self, gang: Gang) -> None:
        """Take in a gang, or what changed about it. A placed one holds its nodes."""
        if self._gangs.get(gang.key) == gang:
            return
        self.remove_gang(gang.key)
        self._changed()
        self._gangs[gang.key] = gang
        if self._base is not None and not gang.is_pending:
            self._base.add(gang)
        self._lanes.add(gang, self._accounts.order_of(gang.queue))
        if gang.placement:
            spread = self._spreads[gang.key] = Counter(gang.placement)
            del spread[NOWHERE]
            self._ledger.hold(gang.needs, spread)
            self._charge(gang, spread, 1)
            for name in spread:
                self._gangs_on.setdefault(name, set()).add(gang.key)

    def remove_gang(self, key: str) -> None:
        """Forget a gang and give back what it holds."""
        gang = self._gangs.pop(key, None)
        if gang is None:
            return
        self._changed()
        self._lanes.remove(gang)
        if self._base is not None and not gang.is_pending:
            self._base.remove(key)
        if gang.placement:
            spread = self._spreads.pop(key)
            self._ledger.release(gang.needs, spread)
            self._charge(gang, spread, -1)
            for name in spread:
                self._gangs_on[name].discard(key)
                if not self._gangs_on[name]:
                    del self._gangs_on[name]

    def upsert_foreign(self, key: str, node_name: str, needs: Needs) -> None:
        """Take in a pod on *node_name* that is not ours."""
        if self._foreign.get(key) == (node_name, needs):
            return
        self.remove_foreign(key)
        self._changed()
        self._foreign[key] = (node_name, needs)
        self._others.hold(needs, {node_name: 1})

    def remove_foreign(self, key: str) -> None:
        """Forget a pod that is not ours."""
        old = self._foreign.pop(key, None)
        if old is not None:
            self._changed()
            node_name, needs = old
            self._others.release(needs, {node_name: 1})

    def snapshot(self) -> Snapshot:
        """The cluster at this moment; the same object until something changes."""
        if self._latest is None:
            self._latest = self._take()
        return self._latest

    def copy(self) -> Self:
        """A cluster of its own that was told the same."""
        return type(self).restored(self.objects())

    def audit(self) -> tuple[str, ...]:
        """Where what is kept differs from what follows afresh from the objects alone."""
        fresh = Cluster.of(
            levels=self._levels,
            nodes=self._nodes.values(),
            queues=self._accounts.queues.values(),
            gangs=self._gangs.values(),
            foreign=[(key, *held) for key, held in self._foreign.items()],
        )
        kept, right = self.snapshot().facts(), fresh.snapshot().facts()
        return tuple(
            f"{name}: kept {kept[name]!r}, should be {right[name]!r}"
            for name in right
            if kept[name] != right[name]
        )

    def _changed(self) -> None:
        self._version += 1
        self._latest = None

    def _charge(self, gang: Gang, spread: Mapping[str, int], sign: int) -> None:
        by_model: dict[str | None, int] = {}
        for name, replicas in spread.items():
            model = _model_of(self._nodes.get(name))
            by_model[model] = by_model.get(model, 0) + replicas
        for model, replicas in by_model.items():
            gpus = sign * replicas * gang.needs.gpus
            self._accounts.charge(gang.queue, model, gpus, gang.user)

    def _recount(self, name: str, old: str | None, new: str | None) -> None:
        """Count what is placed on a node under the model that it has now."""
        if old == new:
            return
        # In any order: these are sums.
        for key in self._gangs_on.get(name, ()):
            gang = self._gangs[key]
            gpus = self._spreads[key][name] * gang.needs.gpus
            self._accounts.charge(gang.queue, old, -gpus, gang.user)
            self._accounts.charge(gang.queue, new, gpus, gang.user)

    def _take(self) -> Snapshot:
        changed = self._ledger.changes() | self._others.changes()
        if self._floor is None:
            self._floor = Floor(self._levels, self._nodes, self._version)
            changed = set(self._nodes)
            self._base = None
        floor = self._floor
        floor.write(changed, self._ledger, self._others, self._version)
        if self._base is None:
            self._base = Base(floor.tree.position, self._lanes.running())
        self._base.version = self._version
        return Snapshot(
            base=self._base,
            version=self._version,
            nodes=floor.nodes,
            tree=floor.tree,
            columns=floor.columns,
            memo=floor.memo,
            capacity=floor.capacity,
            capacity_version=self._capacity_version,
            free=floor.free,
            is_up=floor.is_up,
            draining=floor.draining,
            touched=floor.touched,
            quotas=self._accounts.quotas,
            held=self._accounts.held.copy(),
            pending=self._lanes.pending(),
            running=self._lanes.running(),
            foreign=floor.foreign,
            changed=self._outside,
            usage=dict(self._usage.total),
            usage_by_model=dict(self._usage.by_model),
            usage_at=self._usage.at,
        )


def _model_of(node: Node | None) -> str | None:
    return None if node is None else node.gpu_model
