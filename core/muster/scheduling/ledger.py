"""What is held on each node, by name, whether the node is known or not.

A gang stays placed on a node that went away, and its place counts again when the node is back.
Plain numbers, since most calls change one node; arrays are written when a snapshot is taken.
"""

from collections.abc import Iterable, Mapping

from muster.scheduling.amounts import taken_by
from muster.scheduling.snapshot import Needs

_NOTHING = (0, 0, 0, 0)


class Ledger:
    """Amounts held by node, and which nodes changed since they were last asked for."""

    def __init__(self) -> None:
        self._held: dict[str, list[int]] = {}
        self._changed: set[str] = set()

    def hold(self, needs: Needs, spread: Mapping[str, int]) -> None:
        """Note replicas as held, by node."""
        gpus, cpu, memory, pods = taken_by(needs)
        for name, replicas in spread.items():
            row = self._held.get(name)
            if row is None:
                row = self._held[name] = [0, 0, 0, 0]
            row[0] += gpus * replicas
            row[1] += cpu * replicas
            row[2] += memory * replicas
            row[3] += pods * replicas
            if not row[3]:
                # Every pod takes a slot: without one nothing is held here any more.
                del self._held[name]
        self._changed.update(spread)

    def release(self, needs: Needs, spread: Mapping[str, int]) -> None:
        """Note replicas as no longer held."""
        self.hold(needs, {name: -replicas for name, replicas in spread.items()})

    def touch(self, name: str) -> None:
        """Note that the node itself changed."""
        self._changed.add(name)

    def held_on(self, names: Iterable[str]) -> list[tuple[int, ...]]:
        """What is held on each of these nodes."""
        return [tuple(self._held.get(name, _NOTHING)) for name in names]

    def changes(self) -> set[str]:
        """The nodes that changed since the last call."""
        changed, self._changed = self._changed, set()
        return changed
