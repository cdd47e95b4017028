"""When time alone may change what a cycle decides."""

from collections.abc import Iterator, Mapping, Sequence
from math import inf

from muster.scheduling.holders import Holder
from muster.scheduling.order import bound_of, level_of
from muster.scheduling.rights import attained_by, shield_ends
from muster.scheduling.snapshot import Order, Pending
from muster.scheduling.state import State


def wake_at(state: State, waiting: Mapping[str, Sequence[Pending]]) -> float | None:
    """The first such time after now: a gang has waited long enough for replacements, nobody is
    shielded from eviction any more, or a running gang leaves a level of attained service.
    """
    times = (time for time in _times(state, waiting) if state.now < time < inf)
    return min(times, default=None)


def _times(state: State, waiting: Mapping[str, Sequence[Pending]]) -> Iterator[float]:
    queues = state.snapshot.quotas.queues
    has_shields = bool(waiting) and any(queue.min_run_time > 0 for queue in queues.values())
    for holder in state.roster.special():
        if holder.lacking and holder.gang.lost and holder.run.lost_at is not None:
            yield holder.run.lost_at + state.policy.replace_failed_for
    if has_shields:
        for holder in state.roster:
            yield shield_ends(holder, state.snapshot.quotas)
    for name in waiting:
        queue = queues.get(name)
        if queue and queue.order is Order.ATTAINED_SERVICE:
            for holder in state.roster.of_queue(name):
                yield from _next_level(holder, state.now)


def _next_level(holder: Holder, now: float) -> Iterator[float]:
    if holder.gpus:
        attained = attained_by(holder, now)
        yield now + (bound_of(level_of(attained)) - attained) / holder.gpus
