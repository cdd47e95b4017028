"""What each node has and what is held on it, in arrays changed in place.

Nodes are kept by name in slots. A name has a slot while the node is known or something is held
there: a gang stays placed on a node that went away, and its place counts again when the node is
back.
"""

from collections.abc import Mapping

import numpy as np

from muster.scheduling.amounts import RESOURCES, Amounts, capacity_of, taken_by
from muster.scheduling.snapshot import Needs, Node
from muster.scheduling.tree import Index

_FIRST_SLOTS = 64


class Ledger:
    """Capacity, holdings, health and the version of the last change, by slot."""

    def __init__(self) -> None:
        self.capacity: Amounts = np.zeros((RESOURCES, _FIRST_SLOTS), dtype=np.int64)
        self.held: Amounts = np.zeros((RESOURCES, _FIRST_SLOTS), dtype=np.int64)
        self.is_up = np.zeros(_FIRST_SLOTS, dtype=np.bool_)
        self.touched = np.zeros(_FIRST_SLOTS, dtype=np.int64)
        self._slots: dict[str, int] = {}
        self._users: dict[str, int] = {}
        self._unused = list(range(_FIRST_SLOTS))[::-1]

    def set_node(self, node: Node, version: int, *, is_new: bool) -> None:
        """Note what a node has."""
        slot = self._enter(node.name) if is_new else self._slots[node.name]
        self.capacity[:, slot] = capacity_of(node)
        self.is_up[slot] = node.is_ready and not node.is_cordoned
        self.touched[slot] = version

    def drop_node(self, name: str) -> None:
        """Forget what a node has; what is held there stays."""
        slot = self._slots[name]
        self.capacity[:, slot] = 0
        self.is_up[slot] = False
        self._leave(name)

    def hold(self, needs: Needs, spread: Mapping[str, int], version: int) -> None:
        """Note replicas as held, by node."""
        slots = [self._enter(name) for name in spread]
        self._add(slots, needs, list(spread.values()), version)

    def release(self, needs: Needs, spread: Mapping[str, int], version: int) -> None:
        """Note replicas as no longer held."""
        slots = [self._slots[name] for name in spread]
        self._add(slots, needs, [-replicas for replicas in spread.values()], version)
        for name in spread:
            self._leave(name)

    def order(self, names: tuple[str, ...]) -> Index:
        """The slots of these nodes, to read the arrays in their order."""
        return np.array([self._slots[name] for name in names], dtype=np.intp)

    def _add(self, slots: list[int], needs: Needs, replicas: list[int], version: int) -> None:
        amounts = np.array(taken_by(needs), dtype=np.int64)
        self.held[:, slots] += amounts[:, None] * np.array(replicas, dtype=np.int64)
        self.touched[slots] = version

    def _enter(self, name: str) -> int:
        slot = self._slots.get(name)
        if slot is None:
            if not self._unused:
                self._widen()
            slot = self._slots[name] = self._unused.pop()
        self._users[name] = self._users.get(name, 0) + 1
        return slot

    def _leave(self, name: str) -> None:
        self._users[name] -= 1
        if not self._users[name]:
            del self._users[name]
            self._unused.append(self._slots.pop(name))

    def _widen(self) -> None:
        size = self.touched.size
        self.capacity = np.pad(self.capacity, ((0, 0), (0, size)))
        self.held = np.pad(self.held, ((0, 0), (0, size)))
        self.is_up = np.pad(self.is_up, (0, size))
        self.touched = np.pad(self.touched, (0, size))
        self._unused = list(range(size, 2 * size))[::-1]
