"""Who may start while capacity is reserved for a gang ahead.

On idle capacity: whoever is within its guarantee while the reserved gang is not; whoever may be
evicted, and then leaves when the gang it started behind starts; whoever ends in time, or leaves
the gang a place. At the cost of others: whoever does not put the gang's start off.
"""

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

import numpy as np

from muster.scheduling.amounts import Amounts
from muster.scheduling.fit import Mask
from muster.scheduling.gathering import Scheme
from muster.scheduling.placement import Run
from muster.scheduling.reservation import Reservation, end_of, spread_of_runs
from muster.scheduling.rights import Option
from muster.scheduling.room import counted
from muster.scheduling.snapshot import Question
from muster.scheduling.state import Ask, State


class Place(NamedTuple):
    """Where a gang may go on what is idle."""

    runs: tuple[Run, ...] | None
    behind: tuple[str, ...] = ()
    """The gangs behind whose reservations it goes there."""
    is_held_up: bool = False
    """There is room, but it is reserved."""


class Backfill:
    """The reservations of one pass."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.reservations: list[Reservation] = []
        self._masks: dict[object, Mask] = {}
        self._covered: set[object] = set()
        self._held_up: set[tuple[Question, bool]] = set()
        """What has to leave its place to a reservation: questions, and whether they outlast it."""

    def clear(self) -> None:
        """Begin a new pass: reservations are worked out anew for whoever is first then. Those of
        gangs that are being repaired stay.
        """
        self.reservations = [r for r in self.reservations if r.ask.gang.placement is not None]
        self._held_up.clear()
        self._covered.clear()

    def reserve(self, ask: Ask) -> None:
        """Reserve capacity, if no gang before it did so on nodes that it can use."""
        mask = self._could_use(ask.question)
        if ask.within is not None:
            mask = mask & ask.within
        if not mask.any():
            return
        if any((mask & r.mask).any() for r in self.reservations):
            if ask.within is None:
                self._covered.add((ask.question.needs, ask.question.rules))
            return
        self.reservations.append(Reservation(ask, mask, self._state))

    def _could_use(self, question: Question) -> Mask:
        """The nodes that would take a replica if they were empty and up."""
        key = (question.needs, question.rules)
        mask = self._masks.get(key)
        if mask is None:
            snapshot = self._state.snapshot
            lasting = snapshot.columns.mask(question.rules, lasting=True)
            field = counted(snapshot.tree, question.needs, snapshot.capacity, lasting)
            mask = self._masks[key] = field.counts[-1] > 0
        return mask

    def is_covered(self, ask: Ask) -> bool:
        """Whether the nodes that it could use are known to be reserved for somebody before it."""
        return (ask.question.needs, ask.question.rules) in self._covered

    def place(self, ask: Ask) -> Place:
        """Where it may go on what is idle."""
        runs = self._state.placed(ask)
        if runs is None or not self.reservations:
            return Place(runs)
        now = self._state.now
        # Whoever may be evicted goes behind a reservation whenever that is.
        is_bound = not ask.gang.is_preemptible or self._shield(ask) > 0
        kind = (ask.question, is_bound and any(r.outlasts(ask, now) for r in self.reservations))
        if kind in self._held_up:
            return Place(None, is_held_up=True)
        beside: Amounts | None = None
        for _ in range(len(self.reservations) + 1):
            barrier, behind = self._barrier(ask, runs)
            if barrier is None:
                return Place(runs, behind)
            free = barrier.beside(self._state)
            beside = free if beside is None else np.minimum(beside, free)
            elsewhere = self._state.placed_on(ask, beside)
            if elsewhere is None:
                break
            runs = elsewhere
        self._held_up.add(kind)
        return Place(None, is_held_up=True)

    def allows(self, ask: Ask, scheme: Scheme) -> bool:
        """Whether no reservation is put off by a gang that starts at the cost of others."""
        return all(
            self._is_not_put_off(reservation, ask, scheme) for reservation in self.reservations
        )

    def note(
        self,
        ask: Ask,
        spread: dict[int, int],
        behind: Sequence[str] = (),
        options: Sequence[Option] = (),
    ) -> None:
        """Count a gang that starts as still there at every reserved time that it outlasts."""
        for reservation in self.reservations:
            is_other = reservation.key != ask.gang.key and reservation.key not in behind
            if is_other and reservation.is_timed:
                outlasts = reservation.outlasts(ask, self._state.now)
                reservation.note(ask, spread if outlasts else {}, options)

    def _barrier(
        self, ask: Ask, runs: Sequence[Run]
    ) -> tuple[Reservation | None, tuple[str, ...]]:
        """The first reservation that forbids these places; else those that it goes behind."""
        behind: list[str] = []
        spread = spread_of_runs(runs)
        end = end_of(ask.gang, self._state.now)
        for reservation in self._bearing_on(ask, spread):
            if ask.gang.is_preemptible and self._may_leave(ask, reservation):
                behind.append(reservation.key)
            elif reservation.start.at == inf:
                if end == inf:
                    return reservation, ()
            elif end > reservation.start.at and reservation.hinders(ask, spread):
                return reservation, ()
        return None, tuple(behind)

    def _shield(self, ask: Ask) -> float:
        """Seconds that it runs before anybody may evict it."""
        queue = self._state.snapshot.quotas.queues.get(ask.gang.queue)
        return queue.min_run_time if queue else 0.0

    def _may_leave(self, ask: Ask, reservation: Reservation) -> bool:
        """Whether it may be evicted at the reserved time."""
        shield = self._shield(ask)
        return shield <= 0 or self._state.now + shield <= reservation.start.at

    def _bearing_on(self, ask: Ask, spread: dict[int, int]) -> list[Reservation]:
        state = self._state
        return [
            reservation
            for reservation in self.reservations
            if reservation.key != ask.gang.key
            and reservation.concerns(ask.gang, spread, state)
            and not reservation.is_exempt(ask, state)
        ]

    def _is_not_put_off(self, reservation: Reservation, ask: Ask, scheme: Scheme) -> bool:
        state, spread = self._state, spread_of_runs(scheme.runs)
        end = end_of(ask.gang, state.now)
        if (
            end <= reservation.start.at < inf
            or not reservation.concerns(ask.gang, spread, state)
            or reservation.is_exempt(ask, state)
        ):
            return True
        if reservation.start.at < inf:
            return not reservation.hinders(ask, spread, scheme.options)
        if end < inf:
            return True
        # It takes nothing that is idle and that the gang could use.
        freed = _gpus_freed(scheme.options)
        gpus = ask.question.needs.gpus
        return all(
            replicas * gpus <= freed.get(node, 0)
            for node, replicas in spread.items()
            if reservation.mask[node]
        )


def _gpus_freed(options: Sequence[Option]) -> dict[int, int]:
    freed: dict[int, int] = {}
    for option in options:
        for node, replicas in option.spread.items():
            freed[node] = freed.get(node, 0) + replicas * option.holder.gang.needs.gpus
    return freed
