"""A what-if over a snapshot: free capacity and what the queues hold, with a log to undo it.

The one thing in the core that changes in place. Everything that a cycle decides goes through a
trial, so that a further question (what if these left, what if it started there) is a mark, some
takes and gives, and a rollback.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from muster.scheduling.amounts import taken_by
from muster.scheduling.fit import Mask
from muster.scheduling.room import Field, Room
from muster.scheduling.snapshot import Needs, NodeRules, Snapshot

Spread = Mapping[int, int]
"""Replicas by node, as its position in the tree."""


@dataclass(frozen=True, slots=True)
class _Move:
    queue: str
    needs: Needs
    spread: Spread
    sign: int


class Trial:
    """The state of a snapshot, with what a cycle has taken and given so far."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.free = snapshot.free.copy()
        self.held = snapshot.held.copy()
        self._touched = snapshot.touched.copy()
        self._version = snapshot.version
        self._log: list[_Move] = []
        self._rooms: dict[tuple[Needs, NodeRules], Room] = {}

    def take(self, queue: str, needs: Needs, spread: Spread) -> None:
        """Hold capacity for replicas of one gang."""
        self._do(_Move(queue, needs, spread, 1))

    def give(self, queue: str, needs: Needs, spread: Spread) -> None:
        """Give capacity back."""
        self._do(_Move(queue, needs, spread, -1))

    def mark(self) -> int:
        """A point to which `rollback` returns."""
        return len(self._log)

    def rollback(self, mark: int) -> None:
        """Undo everything since *mark*."""
        while len(self._log) > mark:
            move = self._log.pop()
            self._carry_out(_Move(move.queue, move.needs, move.spread, -move.sign))

    def field(self, needs: Needs, rules: NodeRules, barred: Iterable[str] = ()) -> Field:
        """The room for a shape now, without the nodes of the *barred* GPU models."""
        key = (needs, rules)
        room = self._rooms.get(key)
        if room is None:
            room = self._rooms[key] = self.snapshot.memo.room(needs, rules, self.snapshot)
        if room.version != self._version:
            room.refresh(self.free, self.mask(rules), self._touched, self._version)
        models = sorted(barred)
        return room.without(self.snapshot.columns.of_models(models)) if models else room.field

    def mask(self, rules: NodeRules) -> Mask:
        """The nodes that match and are up."""
        return self.snapshot.columns.mask(rules) & self.snapshot.is_up

    def _do(self, move: _Move) -> None:
        self._log.append(move)
        self._carry_out(move)

    def _carry_out(self, move: _Move) -> None:
        nodes = np.fromiter(move.spread, dtype=np.intp, count=len(move.spread))
        replicas = np.fromiter(move.spread.values(), dtype=np.int64, count=len(move.spread))
        amounts = np.array(taken_by(move.needs), dtype=np.int64)
        self.free[:, nodes] -= move.sign * amounts[:, None] * replicas
        self._version += 1
        self._touched[nodes] = self._version
        self._charge(move)

    def _charge(self, move: _Move) -> None:
        if not move.needs.gpus:
            return
        models = self.snapshot.columns.models
        lineage = self.snapshot.quotas.lineage(move.queue)
        by_model: dict[str | None, int] = {}
        for node, replicas in move.spread.items():
            by_model[models[node]] = by_model.get(models[node], 0) + replicas
        for model, replicas in by_model.items():
            self.held.add(lineage, model, move.sign * move.needs.gpus * replicas)
