"""The nodes as arrays in the order of the tree: what a snapshot is copied from."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from muster.scheduling.amounts import RESOURCES, Amounts, capacity_of
from muster.scheduling.fit import Columns
from muster.scheduling.ledger import Ledger
from muster.scheduling.room import Memo
from muster.scheduling.snapshot import Level, Node
from muster.scheduling.tree import build_tree, path_of

_Number = TypeVar("_Number", bound=np.generic)


class Floor:
    """Valid for one set of nodes with one set of level labels; all else changes in place."""

    def __init__(self, levels: tuple[Level, ...], nodes: Mapping[str, Node], version: int) -> None:
        self.tree = build_tree(
            levels, {name: path_of(node.labels, levels) for name, node in nodes.items()}
        )
        self.memo = Memo()
        self._levels = levels
        self._nodes = [nodes[name] for name in self.tree.names]
        self._frozen_nodes: tuple[Node, ...] | None = None
        self._columns: Columns | None = None
        size = len(self._nodes)
        self._capacity: Amounts = np.zeros((RESOURCES, size), dtype=np.int64)
        self._frozen_capacity: Amounts | None = None
        self._free: Amounts = np.zeros((RESOURCES, size), dtype=np.int64)
        self._foreign: Amounts = np.zeros((RESOURCES, size), dtype=np.int64)
        self._is_up = np.zeros(size, dtype=np.bool_)
        self._draining: set[int] = set()
        self._touched: Amounts = np.full(size, version, dtype=np.int64)

    def takes(self, node: Node, old: Node) -> bool:
        """Take in a changed node if the tree stays as it is; whether it does."""
        if path_of(node.labels, self._levels) != path_of(old.labels, self._levels):
            return False
        self._nodes[self.tree.position[node.name]] = node
        self._frozen_nodes = None
        self._frozen_capacity = None
        if _matched_by(node) != _matched_by(old):
            self._columns = None
            self.memo = Memo()
        return True

    def write(self, names: Iterable[str], ledger: Ledger, foreign: Ledger, version: int) -> None:
        """Bring the arrays up to date for the nodes that changed."""
        known = [name for name in names if name in self.tree.position]
        if not known:
            return
        places = [self.tree.position[name] for name in known]
        nodes = [self._nodes[place] for place in places]
        capacity = np.array([capacity_of(node) for node in nodes], dtype=np.int64).T
        self._capacity[:, places] = capacity
        others = np.array(foreign.held_on(known), dtype=np.int64).T
        held = np.array(ledger.held_on(known), dtype=np.int64).T
        self._foreign[:, places] = others
        self._free[:, places] = capacity - held - others
        self._is_up[places] = [node.is_ready and not node.is_cordoned for node in nodes]
        self._touched[places] = version
        self._draining.difference_update(places)
        self._draining.update(
            place for place, node in zip(places, nodes, strict=True) if node.is_draining
        )

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes as they are now."""
        if self._frozen_nodes is None:
            self._frozen_nodes = tuple(self._nodes)
        return self._frozen_nodes

    @property
    def columns(self) -> Columns:
        """What rules may ask of the nodes."""
        if self._columns is None:
            self._columns = Columns(self.nodes)
        return self._columns

    @property
    def capacity(self) -> Amounts:
        """A copy of what the nodes have, shared until that changes."""
        if self._frozen_capacity is None:
            self._frozen_capacity = _frozen(self._capacity)
        return self._frozen_capacity

    @property
    def free(self) -> Amounts:
        """A copy of what nobody holds."""
        return _frozen(self._free)

    @property
    def foreign(self) -> Amounts:
        """A copy of what other people's pods hold."""
        return _frozen(self._foreign)

    @property
    def is_up(self) -> npt.NDArray[np.bool_]:
        """A copy of which nodes are ready and not cordoned."""
        return _frozen(self._is_up)

    @property
    def draining(self) -> frozenset[int]:
        """The nodes that everybody is asked to leave."""
        return frozenset(self._draining)

    @property
    def touched(self) -> Amounts:
        """A copy of the version at which each node last changed."""
        return _frozen(self._touched)


def _matched_by(node: Node) -> tuple[object, ...]:
    return (node.labels, node.taints, node.gpu_model, node.capacity_type, node.bad_gpus)


def _frozen(array: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
    copied = array.copy()
    copied.setflags(write=False)
    return copied
