"""How many replicas of a shape each node takes, and each domain: the numbers that placement reads.

Counting all nodes costs some 50 µs at 5,000 of them, so it is done once for a shape and kept: from
then on only the nodes whose amounts changed are counted again, within a cycle and between cycles.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from muster.scheduling.amounts import GPUS, Amounts, taken_by
from muster.scheduling.fit import Mask
from muster.scheduling.kept import Kept
from muster.scheduling.plan import Wait, WaitReason
from muster.scheduling.snapshot import Needs, NodeRules, Pending, Snapshot, TieBreak
from muster.scheduling.tree import Index, Tree

Counts = npt.NDArray[np.int64]

_MOST = 1 << 20
"""No node takes more replicas than this; it keeps sums in range where an amount is unbounded."""

_SHAPES_KEPT = 256
_VERDICTS_KEPT = 10_000


class Field:
    """The room for one shape in every domain of every layer, with the GPUs free there.

    `counts[layer][domain]` is how many replicas a domain takes. `spare[layer][domain]` is how many
    GPUs are free on its nodes that the shape may use; the best fit leaves the least of them.
    """

    def __init__(self, tree: Tree, counts: Counts, spare: Counts) -> None:
        self.tree = tree
        self.counts = [layer.sums(counts) for layer in tree.layers]
        self.spare = [layer.sums(spare) for layer in tree.layers]

    @property
    def total(self) -> int:
        """How many replicas the cluster takes."""
        counts = self.counts[0]
        return int(counts[0]) if counts.size else 0

    def copy(self) -> Self:
        """The same numbers, apart."""
        copied = object.__new__(type(self))
        copied.tree = self.tree
        copied.counts = [counts.copy() for counts in self.counts]
        copied.spare = [spare.copy() for spare in self.spare]
        return copied

    def take(self, node: int, replicas: int, gpus: int) -> None:
        """Count replicas, and the GPUs that they take together, as placed on a node."""
        for layer, counts, spare in zip(self.tree.layers, self.counts, self.spare, strict=True):
            domain = layer.of_node[node]
            counts[domain] -= replicas
            spare[domain] -= gpus

    def recount(self, nodes: Index, counts: Counts, spare: Counts) -> None:
        """Put new numbers in for some nodes."""
        more, freed = counts - self.counts[-1][nodes], spare - self.spare[-1][nodes]
        for layer, sums, spares in zip(self.tree.layers, self.counts, self.spare, strict=True):
            domains = layer.of_node[nodes]
            np.add.at(sums, domains, more)
            np.add.at(spares, domains, freed)


def counted(tree: Tree, needs: Needs, amounts: Amounts, mask: Mask) -> Field:
    """The field of a shape over some amounts, on the nodes of the mask."""
    return Field(tree, _count(needs, amounts, mask), _gpus(amounts, mask))


class Room:
    """The field of a shape as it changes, up to date at one version of the amounts."""

    def __init__(self, needs: Needs, field: Field, version: int) -> None:
        self._needs = needs
        self.field = field
        self.version = version

    def copy(self) -> "Room":
        """The same, apart."""
        return Room(self._needs, self.field.copy(), self.version)

    def refresh(self, free: Amounts, mask: Mask, touched: Amounts, version: int) -> None:
        """Count the nodes again that changed since, or came to be or ceased to be in the mask."""
        (stale,) = (touched > self.version).nonzero()
        if stale.size:
            free, mask = free[:, stale], mask[stale]
            self.field.recount(stale, _count(self._needs, free, mask), _gpus(free, mask))
        self.version = version

    def without(self, barred: Mask) -> Field:
        """The field without some nodes."""
        counts, spare = self.field.counts[-1], self.field.spare[-1]
        return Field(self.field.tree, np.where(barred, 0, counts), np.where(barred, 0, spare))


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why the empty cluster never holds a gang, or `None` where it does."""

    message: str | None


@dataclass(frozen=True, slots=True, eq=False)
class Said:
    """What a cycle said to those who wait in one queue."""

    lane: Sequence[Pending]
    lowest: float
    named: frozenset[str]
    """Gangs that were told something of their own."""
    verdicts: Mapping[object, tuple[Pending, tuple[WaitReason, str]]]
    """The reason for each kind of gang, with one of that kind."""
    waits: Sequence[Wait]

    def by_key(self) -> dict[str, Wait]:
        """What each gang was told."""
        return {wait.gang: wait for wait in self.waits}


class Memo:
    """What was worked out for the nodes as they are, kept for later cycles.

    It holds nothing that cannot be worked out again: a plan is the same with an empty one.
    """

    def __init__(self) -> None:
        self._rooms: Kept[Room] = Kept(_SHAPES_KEPT)
        self._verdicts: Kept[Verdict] = Kept(_VERDICTS_KEPT)
        self._verdicts_version = -1
        self.reasons: Kept[tuple[object, object, tuple[WaitReason, str]]] = Kept(_VERDICTS_KEPT)
        """Why a question waits, with what that followed from."""
        self._ties: dict[tuple[TieBreak, ...], tuple[tuple[Counts, ...], ...]] = {}
        self.waits: dict[str, Said] = {}
        """What the last cycle said to those who wait, by queue."""

    def room(self, needs: Needs, rules: NodeRules, snapshot: Snapshot) -> Room:
        """The room for a shape in the snapshot, to be changed freely."""
        mask = snapshot.columns.mask(rules) & snapshot.is_up
        room = self._rooms.get((needs, rules))
        if room is None or room.version > snapshot.version:
            # Of an older snapshot than the last one all is counted: there is no way back.
            field = counted(snapshot.tree, needs, snapshot.free, mask)
            room = Room(needs, field, snapshot.version)
        else:
            room.refresh(snapshot.free, mask, snapshot.touched, snapshot.version)
        return self._rooms.put((needs, rules), room).copy()

    def ties(
        self, criteria: tuple[TieBreak, ...], snapshot: Snapshot
    ) -> tuple[tuple[Counts, ...], ...]:
        """What speaks against each domain of each layer, a row for each criterion that differs."""
        found = self._ties.get(criteria)
        if found is None:
            rows = [snapshot.columns.drawback(kind) for kind in criteria]
            found = self._ties[criteria] = tuple(
                tuple(layer.sums(row) for layer in snapshot.tree.layers)
                for row in rows
                if row is not None
            )
        return found

    def verdicts(self, capacity_version: int) -> "Kept[Verdict]":
        """What was found about the empty cluster, by question; emptied when that changes."""
        if capacity_version != self._verdicts_version:
            self._verdicts = Kept(_VERDICTS_KEPT)
            self._verdicts_version = capacity_version
        return self._verdicts


def _count(needs: Needs, amounts: Amounts, mask: Mask) -> Counts:
    """How many replicas each node takes: as many as its scarcest resource allows."""
    room: Counts | None = None
    for resource, amount in enumerate(taken_by(needs)):
        if amount:
            fits = amounts[resource] // amount if amount > 1 else amounts[resource]
            room = fits if room is None else np.minimum(room, fits)
    assert room is not None, "every pod takes a pod slot"
    return np.where(mask, np.minimum(np.maximum(room, 0), _MOST), 0)


def _gpus(amounts: Amounts, mask: Mask) -> Counts:
    """GPUs on the nodes of the mask; none where a node is overdrawn."""
    return np.where(mask, np.maximum(amounts[GPUS], 0), 0)
