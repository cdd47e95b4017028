"""A what-if over a snapshot: free capacity and what the queues hold, with a log to undo it.

The one thing in the core that changes in place. Everything that a cycle decides goes through a
trial, so that a further question (what if these left, what if it started there) is a mark, some
takes and gives, and a rollback.

It keeps two books. *After* is what holds when everybody who was asked to leave has left and every
claim is taken; *now* is what is held at this moment. They are one and the same until somebody
leaves later. What starts now has to fit both: it may use neither what is not free yet nor what is
being freed for somebody else, and no limit may be passed even for a moment.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntFlag

import numpy as np

from muster.scheduling.amounts import Amounts, taken_by
from muster.scheduling.fit import Mask
from muster.scheduling.quota import Held
from muster.scheduling.room import Field, Room
from muster.scheduling.snapshot import Needs, NodeRules, Snapshot

Spread = Mapping[int, int]
"""Replicas by node, as its position in the tree."""


class Books(IntFlag):
    """Where a move counts."""

    NOW = 1
    AFTER = 2
    BOTH = 3


@dataclass(frozen=True, slots=True)
class _Move:
    queue: str
    user: str
    needs: Needs
    spread: Spread
    sign: int
    books: Books


class Trial:
    """The state of a snapshot, with what a cycle has taken and given so far."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.free = snapshot.free.copy()
        """Of the book *after*."""
        self.held = snapshot.held.copy()
        """Of the book *after*."""
        self.held_now = self.held
        self._now = self.free
        self._usable = self.free
        """What both books leave."""
        self._touched = snapshot.touched.copy()
        self._version = snapshot.version
        self._print: tuple[int, int] | None = None
        self._log: list[_Move] = []
        self._rooms: dict[tuple[Needs, NodeRules, bool], Room] = {}
        self._barred: dict[tuple[object, ...], tuple[int, Field]] = {}
        self.stirred: set[str] = set()
        """Queues whose holdings changed; emptied by whoever looks after the order."""

    @property
    def is_split(self) -> bool:
        """Whether the two books ever differed."""
        return self._now is not self.free

    @property
    def version(self) -> int:
        """Differs whenever something was taken or given since."""
        return self._version

    def take(
        self, queue: str, needs: Needs, spread: Spread, user: str = "", books: Books = Books.BOTH
    ) -> None:
        """Hold capacity for replicas of one gang."""
        self._do(_Move(queue, user, needs, spread, 1, books))

    def give(
        self, queue: str, needs: Needs, spread: Spread, user: str = "", books: Books = Books.BOTH
    ) -> None:
        """Give capacity back."""
        self._do(_Move(queue, user, needs, spread, -1, books))

    def mark(self) -> int:
        """A point to which `rollback` returns."""
        return len(self._log)

    def rollback(self, mark: int) -> None:
        """Undo everything since *mark*."""
        while len(self._log) > mark:
            move = self._log.pop()
            self._carry_out(
                _Move(move.queue, move.user, move.needs, move.spread, -move.sign, move.books)
            )

    def fork(self) -> "Trial":
        """The state as it is now, as a trial of its own whose books are one: the one *after*."""
        fork = object.__new__(type(self))
        fork.snapshot = self.snapshot
        fork.free = self.free.copy()
        fork.held = self.held.copy()
        fork.held_now = fork.held
        fork._now = fork._usable = fork.free
        fork._touched = self._touched.copy()
        fork._version = self._version
        fork._log = []
        fork._print = None
        # A room of the other books would be wrong here.
        fork._rooms = (
            {}
            if self.is_split
            else {key: room.copy() for key, room in self._rooms.items() if not key[2]}
        )
        fork._barred = {}
        fork.stirred = set()
        return fork

    def field(
        self,
        needs: Needs,
        rules: NodeRules,
        barred: Iterable[str] = (),
        *,
        within: Mask | None = None,
        after: bool = False,
    ) -> Field:
        """The room for a shape now, or *after*, without the nodes of the *barred* GPU models and
        only *within* a mask of nodes.
        """
        after = after and self.is_split
        room = self._room(needs, rules, after=after)
        models = tuple(sorted(barred))
        if not models and within is None:
            return room.field
        key = (needs, rules, models, after, None if within is None else within.tobytes())
        kept = self._barred.get(key)
        if kept is not None and kept[0] == self._version:
            return kept[1]
        out = self.snapshot.columns.of_models(models)
        if within is not None:
            out = out | ~within
        field = room.without(out)
        self._barred[key] = (self._version, field)
        return field

    def mask(self, rules: NodeRules) -> Mask:
        """The nodes that match and are up."""
        return self.snapshot.columns.mask(rules) & self.snapshot.is_up

    def fingerprint(self) -> int:
        """Differs, but for a chance of one in 2^64, where other amounts are free, or other nodes
        are up.
        """
        if self._print is None or self._print[0] != self._version:
            values = hash((self._usable.tobytes(), self.snapshot.is_up.tobytes()))
            self._print = self._version, values
        return self._print[1]

    def usable(self) -> Amounts:
        """What both books leave on each node; not to be changed."""
        return self._usable

    def _room(self, needs: Needs, rules: NodeRules, *, after: bool) -> Room:
        key = (needs, rules, after)
        room = self._rooms.get(key)
        if room is None:
            room = self._rooms[key] = self.snapshot.memo.room(needs, rules, self.snapshot)
        if room.version != self._version:
            free = self.free if after else self._usable
            room.refresh(free, self.mask(rules), self._touched, self._version)
        return room

    def _do(self, move: _Move) -> None:
        self._log.append(move)
        self._carry_out(move)

    def _carry_out(self, move: _Move) -> None:
        if move.books is not Books.BOTH and not self.is_split:
            self._split()
        nodes = np.fromiter(move.spread, dtype=np.intp, count=len(move.spread))
        replicas = np.fromiter(move.spread.values(), dtype=np.int64, count=len(move.spread))
        amounts = np.array(taken_by(move.needs), dtype=np.int64)
        change = move.sign * amounts[:, None] * replicas
        if move.books & Books.AFTER:
            self.free[:, nodes] -= change
            self._charge(move, self.held)
        if self.is_split:
            if move.books & Books.NOW:
                self._now[:, nodes] -= change
                self._charge(move, self.held_now)
            self._usable[:, nodes] = np.minimum(self.free[:, nodes], self._now[:, nodes])
        self._version += 1
        self._touched[nodes] = self._version
        self.stirred.add(move.queue)

    def _split(self) -> None:
        self._now, self._usable = self.free.copy(), self.free.copy()
        self.held_now = self.held.copy()

    def _charge(self, move: _Move, held: Held) -> None:
        if not move.needs.gpus:
            return
        models = self.snapshot.columns.models
        lineage = self.snapshot.quotas.lineage(move.queue)
        by_model: dict[str | None, int] = {}
        for node, replicas in move.spread.items():
            by_model[models[node]] = by_model.get(models[node], 0) + replicas
        for model, replicas in by_model.items():
            held.add(lineage, model, move.sign * move.needs.gpus * replicas, move.user)
