"""Limits over the tree of queues, and what the queues hold.

A limit binds a queue and all below it together. A job counts against its queue and every one above
it, in all and for the GPU model of the nodes it is on.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from muster.scheduling.snapshot import Order, Queue
from muster.wire import DEFAULT_QUEUE

_Key = TypeVar("_Key")


@dataclass(slots=True)
class Held:
    """GPUs that each queue holds, those below it included."""

    total: dict[str, int] = field(default_factory=dict)
    by_model: dict[tuple[str, str], int] = field(default_factory=dict)
    by_user: dict[tuple[str, str], int] = field(default_factory=dict)

    def copy(self) -> "Held":
        """The same numbers, apart."""
        return Held(self.total.copy(), self.by_model.copy(), self.by_user.copy())

    def add(self, lineage: Iterable[str], model: str | None, gpus: int, user: str = "") -> None:
        """Count GPUs of a model, negative when they are given back, in each queue of *lineage*."""
        for queue in lineage:
            _add(self.total, queue, gpus)
            if model is not None:
                _add(self.by_model, (queue, model), gpus)
            if user:
                _add(self.by_user, (queue, user), gpus)


def _add(numbers: dict[_Key, int], key: _Key, more: int) -> None:
    left = numbers.get(key, 0) + more
    if left:
        numbers[key] = left
    else:
        # Nothing stays behind of what is gone, so that equal states are equal.
        numbers.pop(key, None)


class Quotas:
    """The tree of queues, static between two changes of a queue."""

    def __init__(self, queues: Mapping[str, Queue]) -> None:
        # A cluster without this object still takes the jobs that name no queue.
        self.queues = {DEFAULT_QUEUE: Queue(DEFAULT_QUEUE), **queues}
        self._lineages = {name: tuple(self._climb(name)) for name in self.queues}
        self.rivals: dict[tuple[str, str], object] = {}
        """Kept by `Shares`: for two queues, who of them and above them are compared."""
        self._children: dict[str, list[str]] = {}
        for name in sorted(self.queues):
            lineage = self._lineages[name]
            self._children.setdefault(lineage[1] if len(lineage) > 1 else "", []).append(name)
        self.is_by_model = any(
            queue.guaranteed_by_model or queue.limit_by_model for queue in self.queues.values()
        )
        """Whether any quota is given for single GPU models."""

    def lineage(self, queue: str) -> tuple[str, ...]:
        """The queue and those above it. One that is unknown stands alone."""
        return self._lineages.get(queue) or (queue,)

    def children(self, queue: str) -> list[str]:
        """The queues right below one, by name; below no queue for an empty name."""
        return self._children.get(queue, [])

    def is_known(self, queue: str) -> bool:
        """Whether there is a queue of that name."""
        return queue in self.queues

    def paused(self, queue: str) -> str | None:
        """The first queue, from this one upwards, that starts nothing now."""
        return next((q.name for q in self._above(queue) if q.is_paused), None)

    def limits(self, queue: str) -> Iterator[tuple[str, int]]:
        """The limits on GPUs in all that bind a job of this queue, and whose they are."""
        return ((q.name, q.limit) for q in self._above(queue) if q.limit is not None)

    def user_limits(self, queue: str) -> Iterator[tuple[str, int]]:
        """The limits on the GPUs of one user that bind a job of this queue, and whose they are."""
        return (
            (q.name, q.per_user_limit) for q in self._above(queue) if q.per_user_limit is not None
        )

    def limits_by_model(self, queue: str) -> Iterator[tuple[str, str, int]]:
        """The limits on single models that bind a job of this queue: whose, model, GPUs."""
        for above in self._above(queue):
            for model in sorted(above.limit_by_model):
                yield above.name, model, above.limit_by_model[model]

    def _above(self, queue: str) -> Iterator[Queue]:
        return (self.queues[name] for name in self.lineage(queue) if name in self.queues)

    def _climb(self, name: str) -> Iterator[str]:
        # Parents may be missing or form a ring while somebody edits them: each counts once.
        seen: set[str] = set()
        current: str | None = name
        while current is not None and current in self.queues and current not in seen:
            seen.add(current)
            yield current
            current = self.queues[current].parent


@dataclass(frozen=True, slots=True)
class Excess:
    """A limit that a request would pass."""

    queue: str
    limit: int
    held: int
    model: str | None = None
    user: str = ""
    """Whose limit it is, where it binds one user only."""


def excess(quotas: Quotas, held: Held, queue: str, gpus: int, user: str = "") -> Excess | None:
    """The first limit on GPUs in all that *gpus* more would pass, from the queue upwards; those of
    the *user* after those of all.
    """
    if not gpus:
        return None
    for name, limit in quotas.limits(queue):
        used = held.total.get(name, 0)
        if used + gpus > limit:
            return Excess(name, limit, used)
    if user:
        for name, limit in quotas.user_limits(queue):
            used = held.by_user.get((name, user), 0)
            if used + gpus > limit:
                return Excess(name, limit, used, user=user)
    return None


def excess_by_model(quotas: Quotas, held: Held, queue: str, gpus: int) -> dict[str, Excess]:
    """For each GPU model of which the queue may not have *gpus* more: the limit in the way."""
    found: dict[str, Excess] = {}
    if not gpus:
        return found
    for name, model, limit in quotas.limits_by_model(queue):
        used = held.by_model.get((name, model), 0)
        if used + gpus > limit:
            found.setdefault(model, Excess(name, limit, used, model))
    return found


_Account = tuple[str, str | None, str]


class Accounts:
    """The queues, and what their placed gangs hold, kept as gangs and queues come and go."""

    def __init__(self) -> None:
        self.queues: dict[str, Queue] = {}
        self._own: dict[_Account, int] = {}
        self._quotas: Quotas | None = None
        self._held = Held()

    def set_queue(self, queue: Queue) -> bool:
        """Take in a queue; whether that changes anything."""
        if self.queues.get(queue.name) == queue:
            return False
        self.queues[queue.name] = queue
        self._quotas = None
        return True

    def drop_queue(self, name: str) -> bool:
        """Forget a queue; whether it was there."""
        if self.queues.pop(name, None) is None:
            return False
        self._quotas = None
        return True

    @property
    def are_users_limited(self) -> bool:
        """Whether any queue limits what one user holds."""
        return any(queue.per_user_limit is not None for queue in self.queues.values())

    def order_of(self, queue: str) -> Order:
        """In which order the jobs of a queue go."""
        known = self.queues.get(queue)
        return known.order if known else Order.FIFO

    def charge(self, queue: str, model: str | None, gpus: int, user: str = "") -> None:
        """Count GPUs, negative when they are given back, to a queue and a user."""
        if not gpus:
            return
        _add(self._own, (queue, model, user), gpus)
        if self._quotas is not None:
            self._held.add(self._quotas.lineage(queue), model, gpus, user)

    @property
    def quotas(self) -> Quotas:
        """The tree of queues; worked out again after a change, with what is held in it."""
        if self._quotas is None:
            self._quotas = Quotas(self.queues)
            self._held = Held()
            for (queue, model, user), gpus in self._own.items():
                self._held.add(self._quotas.lineage(queue), model, gpus, user)
        return self._quotas

    @property
    def held(self) -> Held:
        """What each queue holds, those below it included."""
        assert self.quotas is not None
        return self._held
