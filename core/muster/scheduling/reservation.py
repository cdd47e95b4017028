"""Capacity held for the first gang that cannot start yet, and who may use it meanwhile.

A reservation is the earliest time at which a gang can start if every job ends when it declared, or
reports, that it will: topology, limits and what the gang may then evict included. It is worked out
anew in every cycle. Jobs behind it start as backfill: because they end in time, or still leave it
a place, or may be evicted when it starts.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from muster.scheduling.amounts import GPUS, Amounts
from muster.scheduling.fit import Mask
from muster.scheduling.holders import Holder, spread_of
from muster.scheduling.placement import Run
from muster.scheduling.rights import Option, shield_ends
from muster.scheduling.snapshot import Gang, Order
from muster.scheduling.state import Ask, State

_LOOKED_AT_IN_TURN = 24
"""Times that are tried one after the other; among more of them the first is found by halving."""


@dataclass(frozen=True, slots=True)
class Start:
    """When a gang can start, where, and whose end it waits for."""

    at: float
    runs: tuple[Run, ...] = ()
    waits_for: str = ""
    then: State | None = None
    """The state at that time, before it starts."""


UNKNOWN = Start(inf)


class Reservation:
    """The claim of one waiting gang to the nodes that it can use."""

    def __init__(self, ask: Ask, mask: Mask, state: State) -> None:
        """*mask* holds all nodes that it can use, those that are down among them."""
        self.ask = ask
        self.mask = mask
        self._state = state
        self._start: Start | None = None
        self._limited = frozenset(name for name, _ in _limits(state, ask.gang))

    @property
    def start(self) -> Start:
        """When the gang can start; worked out when somebody asks, as most never do."""
        if self._start is None:
            self._start = earliest(self.ask, self._state)
        return self._start

    @property
    def is_timed(self) -> bool:
        """Whether anybody has asked for its time."""
        return self._start is not None

    @property
    def key(self) -> str:
        """Of the gang it is for."""
        return self.ask.gang.key

    def concerns(self, gang: Gang, nodes: Iterable[int], state: State) -> bool:
        """Whether a gang on these nodes uses anything that is reserved."""
        if any(self.mask[node] for node in nodes):
            return True
        return any(name in self._limited for name, _ in _limits(state, gang))

    def is_exempt(self, ask: Ask, state: State) -> bool:
        """Whether a request within its guarantee goes first, before that of a gang that is not."""
        return state.within_guarantee(ask, self.ask.gang.queue) and not state.within_guarantee(
            self.ask, ask.gang.queue
        )

    def outlasts(self, ask: Ask, now: float) -> bool:
        """Whether a gang that starts now still runs at the reserved time."""
        return end_of(ask.gang, now) > self.start.at

    def hinders(self, ask: Ask, spread: Mapping[int, int], options: Sequence[Option] = ()) -> bool:
        """Whether the reserved gang could not start at its time, if that many replicas of another
        were still there, and the victims in *options* not.
        """
        then = self.start.then
        assert then is not None
        mark = then.trial.mark()
        for option in options:
            _release(option, then)
        gang = ask.gang
        then.trial.take(gang.queue, gang.needs, spread, gang.user)
        starts = can_start(self.ask, then) is not None
        then.trial.rollback(mark)
        return not starts

    def note(self, ask: Ask, spread: Mapping[int, int], options: Sequence[Option] = ()) -> None:
        """Count a gang as still there at the reserved time, and its victims as gone."""
        then = self.start.then
        if then is None:
            return
        for option in options:
            _release(option, then)
            if option.ranks is None and option.holder.key in then.roster:
                then.roster.remove(option.holder)
        if spread:
            then.trial.take(ask.gang.queue, ask.gang.needs, spread, ask.gang.user)

    def beside(self, state: State) -> Amounts:
        """What is free on each node besides what is reserved: now, as far as a time is known also
        at that time; none on the nodes that the gang could use where it is not.
        """
        if self.start.then is None:
            return np.where(self.mask, 0, state.trial.usable())
        trial, reserved = self.start.then.trial, self.ask.gang
        mark = trial.mark()
        trial.take(reserved.queue, reserved.needs, spread_of_runs(self.start.runs), reserved.user)
        free = trial.free.copy()
        trial.rollback(mark)
        return free


def end_of(gang: Gang, now: float) -> float:
    """When a gang that starts now ends by its declared limit."""
    return inf if gang.max_run_time is None else now + max(gang.max_run_time - gang.ran, 0.0)


def can_start(ask: Ask, state: State) -> tuple[Run, ...] | None:
    """Where a gang starts in a state: on what is idle, or on what it may take."""
    runs = state.placed(ask)
    if runs is not None:
        return runs
    scheme = state.scheme(ask)
    return None if scheme is None else scheme.runs


def earliest(ask: Ask, state: State) -> Start:
    """The earliest time to come at which the gang can start; `UNKNOWN` if there is none."""
    ends = _times(state)
    if not ends:
        return UNKNOWN
    times = sorted(ends)
    first = _first_with_enough(ask, state, times, ends)
    if first is None:
        return UNKNOWN
    then = state.at(times[first])
    done = -1
    for number in range(first, min(first + _LOOKED_AT_IN_TURN, len(times))):
        for earlier in range(done + 1, number + 1):
            _let_end(then, ends[times[earlier]])
        done = number
        then.now = times[number]
        runs = can_start(ask, then)
        if runs is not None:
            return _start(times[number], runs, ends, then)
    return _halved(ask, state, times, ends, first + _LOOKED_AT_IN_TURN)


def _halved(
    ask: Ask, state: State, times: list[float], ends: dict[float, list[Holder]], least: int
) -> Start:
    """Among many times, as if a gang that can start once could start ever after."""
    most, found = len(times), None
    while least < most:
        middle = (least + most) // 2
        then = state.at(times[middle])
        for time in times[: middle + 1]:
            _let_end(then, ends[time])
        runs = can_start(ask, then)
        if runs is None:
            least = middle + 1
        else:
            most, found = middle, _start(times[middle], runs, ends, then)
    return found or UNKNOWN


def _times(state: State) -> dict[float, list[Holder]]:
    """Who ends at each time to come; nobody where only a shield ends."""
    ends: dict[float, list[Holder]] = {}
    quotas = state.snapshot.quotas
    for holder in state.roster:
        end = holder.ends(state.now)
        if end < inf:
            ends.setdefault(end, []).append(holder)
        shield = shield_ends(holder, quotas)
        if state.now < shield < end:
            ends.setdefault(shield, [])
    return ends


def _first_with_enough(
    ask: Ask, state: State, times: list[float], ends: dict[float, list[Holder]]
) -> int | None:
    """The first time by which as many GPUs are free, or may be taken, as the gang needs."""
    mask = state.mask(ask)
    free = np.maximum(state.trial.free[GPUS][mask], 0).sum()
    lacking = ask.gpus - int(free)
    movable = _movable(ask, state)
    lacking -= sum(movable.values())
    for number, time in enumerate(times):
        lacking -= sum(h.gpus for h in ends[time] if h.key not in movable)
        if lacking <= 0:
            return number
    return None


def _movable(ask: Ask, state: State) -> dict[str, int]:
    """GPUs that the gang might take from each holder at some time, at most."""
    queues = state.snapshot.quotas.queues.values()
    if any(queue.min_run_time > 0 or queue.order is not Order.FIFO for queue in queues):
        # Time alone gives further rights: as if all of them could be had.
        return {holder.key: holder.gpus for holder in state.roster if holder.gang.is_preemptible}
    return state.movable(ask)


def _release(option: Option, then: State) -> None:
    """Give back what a victim holds at a time to come, if it is still there."""
    if option.holder.key in then.roster:
        gang = option.holder.gang
        then.trial.give(gang.queue, gang.needs, option.spread, gang.user)


def _let_end(state: State, holders: Iterable[Holder]) -> None:
    for holder in holders:
        if holder.key in state.roster:
            state.leave(holder)


def _start(
    at: float, runs: tuple[Run, ...], ends: dict[float, list[Holder]], then: State
) -> Start:
    last = sorted(holder.key for holder in ends[at])
    return Start(at, runs, last[-1] if last else "", then)


def _limits(state: State, gang: Gang) -> list[tuple[str, int]]:
    return list(state.snapshot.quotas.limits(gang.queue))


def spread_of_runs(runs: Iterable[Run]) -> dict[int, int]:
    """Replicas by node."""
    return spread_of(node for node, replicas in runs for _ in range(replicas))
