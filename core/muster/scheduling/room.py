"""How many replicas of a shape each node takes, and each domain: the numbers that placement reads.

Counting all nodes costs some 50 µs at 5,000 of them, so it is done once for a shape and kept: from
then on only the nodes whose amounts changed are counted again, within a cycle and between cycles.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from muster.scheduling.amounts import GPUS, Amounts, taken_by
from muster.scheduling.fit import Mask
from muster.scheduling.snapshot import Needs, NodeRules, Snapshot
from muster.scheduling.tree import Tree

Counts = npt.NDArray[np.int64]

_MOST = 1 << 20
"""No node takes more replicas than this; it keeps sums in range where an amount is unbounded."""

_SHAPES_KEPT = 256


@dataclass(slots=True, eq=False)
class Room:
    """Replicas of one shape that fit on each node."""

    counts: Counts
    version: int
    """Of the amounts from which these were counted."""

    def at(self, version: int) -> "Room":
        """A copy that is up to date at *version*."""
        return Room(self.counts.copy(), version)

    def refresh(self, needs: Needs, state: "State") -> None:
        """Count the nodes again that changed since."""
        stale = np.flatnonzero(state.touched > self.version)
        if stale.size:
            self.counts[stale] = count(needs, state.free[:, stale], state.mask[stale])
        self.version = state.version


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """The amounts that a room is counted from."""

    free: Amounts
    touched: Amounts
    version: int
    mask: Mask


def count(needs: Needs, free: Amounts, mask: Mask) -> Counts:
    """How many replicas each node takes: as many as its scarcest resource allows."""
    room: Counts | None = None
    for resource, amount in enumerate(taken_by(needs)):
        if amount:
            fits = free[resource] // amount if amount > 1 else free[resource]
            room = fits if room is None else np.minimum(room, fits)
    assert room is not None, "every pod takes a pod slot"
    return np.where(mask, np.clip(room, 0, _MOST), 0)


class Field:
    """The room for one request in every domain of every layer, with the GPUs free there.

    `counts[layer][domain]` is how many replicas a domain takes. `spare[layer][domain]` is how many
    GPUs are free on its nodes that the request may use; the best fit leaves the least of them.
    """

    def __init__(self, tree: Tree, counts: Counts, free_gpus: Counts) -> None:
        self.tree = tree
        self.counts = [layer.sums(counts) for layer in tree.layers]
        self._free_gpus = free_gpus
        self._spare: list[Counts | None] = [None] * len(tree.layers)

    def spare(self, layer: int) -> Counts:
        """GPUs free in the domains of a layer; summed when they are first asked for."""
        spare = self._spare[layer]
        if spare is None:
            spare = self._spare[layer] = self.tree.layers[layer].sums(self._free_gpus)
        return spare

    @property
    def total(self) -> int:
        """How many replicas the cluster takes."""
        counts = self.counts[0]
        return int(counts[0]) if counts.size else 0

    def writable(self) -> "Field":
        """A copy from which replicas can be taken."""
        copied = Field.__new__(Field)
        copied.tree = self.tree
        copied.counts = [counts.copy() for counts in self.counts]
        copied._free_gpus = self._free_gpus
        copied._spare = [self.spare(n).copy() for n in range(len(self.counts))]
        return copied

    def take(self, node: int, replicas: int, gpus: int) -> None:
        """Count replicas, and the GPUs that they take together, as placed on a node."""
        for number, layer in enumerate(self.tree.layers):
            domain = layer.of_node[node]
            self.counts[number][domain] -= replicas
            self.spare(number)[domain] -= gpus


class Memo:
    """What was worked out for the nodes as they are, kept for later cycles.

    It holds nothing that cannot be worked out again: a plan is the same with an empty one.
    """

    def __init__(self) -> None:
        self._rooms: dict[tuple[Needs, NodeRules], Room] = {}
        self._ever: dict[object, str | None] = {}
        self._ever_version = -1

    def room(self, needs: Needs, rules: NodeRules, snapshot: Snapshot) -> Room:
        """The room for a shape in the snapshot."""
        mask = snapshot.columns.mask(rules) & snapshot.is_up
        state = State(snapshot.free, snapshot.touched, snapshot.version, mask)
        room = self._rooms.pop((needs, rules), None)
        if room is None or room.version > snapshot.version:
            room = Room(count(needs, snapshot.free, mask), snapshot.version)
        else:
            room.refresh(needs, state)
        self._rooms[needs, rules] = room
        if len(self._rooms) > _SHAPES_KEPT:
            del self._rooms[next(iter(self._rooms))]
        return room

    def verdicts(self, capacity_version: int) -> dict[object, str | None]:
        """What was found about the empty cluster, by question; emptied when that changes."""
        if capacity_version != self._ever_version:
            self._ever = {}
            self._ever_version = capacity_version
        return self._ever


def counted(tree: Tree, needs: Needs, amounts: Amounts, mask: Mask) -> Field:
    """The field of a shape over some amounts, counted afresh."""
    return Field(tree, count(needs, amounts, mask), free_gpus(amounts, mask))


def free_gpus(amounts: Amounts, mask: Mask) -> Counts:
    """GPUs on the nodes of the mask; none where a node is overdrawn."""
    return np.where(mask, np.maximum(amounts[GPUS], 0), 0)
