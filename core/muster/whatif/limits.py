"""The lowest limits with which a gang would start: of its queue and those above, user, model.

Only limits that are in the way are raised, each only as far as is needed.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from muster.scheduling.quota import Quotas
from muster.scheduling.snapshot import Queue
from muster.whatif.trying import Trying, Variant

_MOST: Final = 1 << 30
"""GPUs beyond all clusters."""


@dataclass(frozen=True, slots=True)
class Bound:
    """One limit of one queue."""

    queue: str
    value: int
    model: str | None = None
    is_per_user: bool = False

    def words(self, value: int) -> str:
        """The change to *value* in words."""
        what = "limit for each user" if self.is_per_user else "limit"
        of = f" on {self.model}" if self.model else ""
        return f"raise the {what}{of} of queue {self.queue} from {self.value} to {value} GPUs"

    def spec(self, value: int) -> dict[str, object]:
        """The change to *value* as a patch."""
        if self.is_per_user:
            return {"perUserLimit": value}
        return {"limit": {self.model: value} if self.model else value}

    def put(self, queue: Queue, value: int | None) -> Queue:
        """The queue with another limit, or with none."""
        if self.is_per_user:
            return replace(queue, per_user_limit=value)
        if self.model is None:
            return replace(queue, limit=value)
        limits = {m: gpus for m, gpus in queue.limit_by_model.items() if m != self.model}
        return replace(
            queue, limit_by_model=limits if value is None else {**limits, self.model: value}
        )


def bounds_of(queue: str, quotas: Quotas) -> Iterator[Bound]:
    """All limits that bind a job of *queue*, from the queue upwards."""
    for name, limit in quotas.limits(queue):
        yield Bound(name, limit)
    for name, limit in quotas.user_limits(queue):
        yield Bound(name, limit, is_per_user=True)
    for name, model, limit in quotas.limits_by_model(queue):
        yield Bound(name, limit, model=model)


def lowest_limits(base: Variant, trying: Trying, quotas: Quotas) -> Variant | None:
    """The variant with limits just high enough to start; `None` where none are."""
    bounds = list(bounds_of(base.gang.queue, quotas))
    values: dict[Bound, int | None] = dict.fromkeys(bounds)

    def starts_with(bound: Bound, value: int) -> bool:
        changed = _with_limits(base, {**values, bound: value}, quotas)
        return trying.start(changed) is not None

    if not bounds or trying.start(_with_limits(base, values, quotas)) is None:
        return None
    for bound in bounds:
        values[bound] = _lowest(bound, base, starts_with)
    raised = {bound: value for bound, value in values.items() if value != bound.value}
    return _told(base, raised, quotas) if raised and not trying.gave_up else None


def _lowest(bound: Bound, base: Variant, starts_with: Callable[[Bound, int], bool]) -> int:
    """The lowest value of one limit, with the others as they are by now."""
    if starts_with(bound, bound.value):
        return bound.value
    # The lowest that is known to do lies in (low, high].
    step = max(1, base.gang.needs.gpus)
    low, high = bound.value, bound.value + step
    while not starts_with(bound, high) and high - bound.value < _MOST:
        low, step = high, step * 2
        high += step
    while low + 1 < high:
        middle = (low + high) // 2
        if starts_with(bound, middle):
            high = middle
        else:
            low = middle
    return high


def _with_limits(base: Variant, values: Mapping[Bound, int | None], quotas: Quotas) -> Variant:
    queues = dict(base.queues)
    for bound, value in values.items():
        queue = queues.get(bound.queue, quotas.queues[bound.queue])
        queues[bound.queue] = bound.put(queue, value)
    return replace(base, queues=queues)


def _told(base: Variant, raised: Mapping[Bound, int | None], quotas: Quotas) -> Variant:
    found = base
    for bound, value in raised.items():
        assert value is not None, "each limit was given a value"
        queue = found.queues.get(bound.queue, quotas.queues[bound.queue])
        found = found.with_queue(bound.words(value), bound.spec(value), bound.put(queue, value))
    return found
