"""The cluster as the scheduler keeps it between cycles, in arrays changed in place.

Every call costs what it changes, not what exists. What is static between two changes of nodes,
labels or queues (tree, columns, quotas) is built when the next snapshot is taken.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Self, TypeVar

import numpy as np
import numpy.typing as npt

from muster.scheduling.fit import Columns
from muster.scheduling.lanes import Lanes
from muster.scheduling.ledger import Ledger
from muster.scheduling.quota import Accounts
from muster.scheduling.room import Memo
from muster.scheduling.snapshot import Gang, Level, Needs, Node, Queue, Snapshot
from muster.scheduling.tree import Index, Tree, build_tree, path_of

_Number = TypeVar("_Number", bound=np.generic)


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
        self._accounts = Accounts()
        self._lanes = Lanes()
        self._replicas_on: dict[str, dict[str, int]] = {}
        self._version = 0
        self._capacity_version = 0
        self._floor: _Floor | None = None
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
        self._ledger.set_node(node, self._version, is_new=old is None)
        self._recount(node.name, _model_of(old), node.gpu_model)
        if self._floor is not None and not self._floor.takes(node, old, self._levels):
            self._floor = None

    def remove_node(self, name: str) -> None:
        """Forget a node; what is placed there keeps its place."""
        old = self._nodes.pop(name, None)
        if old is None:
            return
        self._changed()
        self._capacity_version += 1
        self._ledger.drop_node(name)
        self._recount(name, old.gpu_model, None)
        self._floor = None

    def upsert_queue(self, queue: Queue) -> None:
        """Take in a queue, or what changed about it."""
        if self._accounts.set_queue(queue):
            self._changed()

    def remove_queue(self, name: str) -> None:
        """Forget a queue. Its gangs stay: the placed ones keep their place, the others wait."""
        if self._accounts.drop_queue(name):
            self._changed()

    def upsert_gang(self, gang: Gang) -> None:
        """Take in a gang, or what changed about it. A placed one holds its nodes."""
        if self._gangs.get(gang.key) == gang:
            return
        self.remove_gang(gang.key)
        self._changed()
        self._gangs[gang.key] = gang
        self._lanes.add(gang)
        if gang.placement:
            spread = Counter(gang.placement)
            self._ledger.hold(gang.needs, spread, self._version)
            self._charge(gang, spread, 1)
            for name, replicas in spread.items():
                self._replicas_on.setdefault(name, {})[gang.key] = replicas

    def remove_gang(self, key: str) -> None:
        """Forget a gang and give back what it holds."""
        gang = self._gangs.pop(key, None)
        if gang is None:
            return
        self._changed()
        self._lanes.remove(gang)
        if gang.placement:
            spread = Counter(gang.placement)
            self._ledger.release(gang.needs, spread, self._version)
            self._charge(gang, spread, -1)
            for name in spread:
                self._replicas_on[name].pop(key)
                if not self._replicas_on[name]:
                    del self._replicas_on[name]

    def upsert_foreign(self, key: str, node_name: str, needs: Needs) -> None:
        """Take in a pod on *node_name* that is not ours."""
        if self._foreign.get(key) == (node_name, needs):
            return
        self.remove_foreign(key)
        self._changed()
        self._foreign[key] = (node_name, needs)
        self._ledger.hold(needs, {node_name: 1}, self._version)

    def remove_foreign(self, key: str) -> None:
        """Forget a pod that is not ours."""
        old = self._foreign.pop(key, None)
        if old is not None:
            self._changed()
            node_name, needs = old
            self._ledger.release(needs, {node_name: 1}, self._version)

    def snapshot(self) -> Snapshot:
        """The cluster at this moment; the same object until something changes."""
        if self._latest is None:
            self._latest = self._take()
        return self._latest

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

    def _charge(self, gang: Gang, spread: Counter[str], sign: int) -> None:
        by_model: Counter[str | None] = Counter()
        for name, replicas in spread.items():
            by_model[_model_of(self._nodes.get(name))] += replicas
        for model, replicas in by_model.items():
            self._accounts.charge(gang.queue, model, sign * replicas * gang.needs.gpus)

    def _recount(self, name: str, old: str | None, new: str | None) -> None:
        """Count what is placed on a node under the model that it has now."""
        if old == new:
            return
        for key, replicas in self._replicas_on.get(name, {}).items():
            gang = self._gangs[key]
            self._accounts.charge(gang.queue, old, -replicas * gang.needs.gpus)
            self._accounts.charge(gang.queue, new, replicas * gang.needs.gpus)

    def _take(self) -> Snapshot:
        if self._floor is None:
            self._floor = _Floor(self._levels, self._nodes, self._ledger)
        floor, ledger = self._floor, self._ledger
        capacity = ledger.capacity[:, floor.slots]
        return Snapshot(
            version=self._version,
            nodes=tuple(floor.nodes),
            tree=floor.tree,
            columns=floor.columns,
            memo=floor.memo,
            capacity=_frozen(capacity),
            capacity_version=self._capacity_version,
            free=_frozen(capacity - ledger.held[:, floor.slots]),
            is_up=_frozen(ledger.is_up[floor.slots]),
            touched=_frozen(ledger.touched[floor.slots]),
            quotas=self._accounts.quotas,
            held=self._accounts.held.copy(),
            pending=self._lanes.pending(),
            running=self._lanes.running(),
        )


class _Floor:
    """What belongs to the nodes and their labels, in the order of the tree."""

    def __init__(
        self, levels: tuple[Level, ...], nodes: Mapping[str, Node], ledger: Ledger
    ) -> None:
        paths = {name: path_of(node.labels, levels) for name, node in nodes.items()}
        self.tree: Tree = build_tree(levels, paths)
        self.slots: Index = ledger.order(self.tree.names)
        self.nodes = [nodes[name] for name in self.tree.names]
        self._columns: Columns | None = None
        self.memo = Memo()

    @property
    def columns(self) -> Columns:
        """Made when they are asked for, since nodes may change one by one before."""
        if self._columns is None:
            self._columns = Columns(tuple(self.nodes))
        return self._columns

    def takes(self, node: Node, old: Node | None, levels: tuple[Level, ...]) -> bool:
        """Take in a changed node if the tree stays as it is; whether it does."""
        if old is None or path_of(node.labels, levels) != path_of(old.labels, levels):
            return False
        self.nodes[self.tree.position[node.name]] = node
        if _matched_by(node) != _matched_by(old):
            self._columns = None
            self.memo = Memo()
        return True


def _model_of(node: Node | None) -> str | None:
    return None if node is None else node.gpu_model


def _matched_by(node: Node) -> tuple[object, ...]:
    return (node.labels, node.taints, node.gpu_model, node.capacity_type)


def _frozen(array: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
    array.setflags(write=False)
    return array
