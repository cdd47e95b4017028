"""What has been said and not yet acknowledged, within bounds.

Training must never wait for the API nor fill its memory while the API is away, so what matters
least is forgotten first: steps and metrics before epochs and checkpoints, the oldest before the
newest.
"""

from collections import deque
from typing import Final

from muster.reports import Heartbeat, Item, Metrics, Report, Step

ITEMS_PER_REPORT: Final = 200
_MINOR: Final = (Step, Metrics, Heartbeat)


class Outbox:
    """Items in order, and the one report that is on its way."""

    def __init__(
        self, *, attempt: int, replica: int, first_sequence: int, minor_limit: int, limit: int
    ) -> None:
        self._attempt = attempt
        self._replica = replica
        self._sequence = first_sequence
        self._minor_limit = minor_limit
        self._limit = limit
        self._items: dict[int, Item] = {}
        self._minor: deque[int] = deque()
        self._next_key = 0
        self._report: Report | None = None
        self.dropped = 0
        """Items forgotten for want of room."""

    def __len__(self) -> int:
        return len(self._items) + (len(self._report.items) if self._report else 0)

    def put(self, item: Item) -> None:
        """Keep *item*; beyond the bounds forget what matters least."""
        self._items[self._next_key] = item
        if isinstance(item, _MINOR):
            self._minor.append(self._next_key)
        self._next_key += 1
        if len(self._items) > self._minor_limit and self._minor:
            self._forget(self._minor.popleft())
        elif len(self._items) > self._limit:
            self._forget(next(iter(self._items)))

    def report(self) -> Report | None:
        """The report to send: the same one until it is settled, so that a repeat is harmless."""
        if self._report is None and self._items:
            keys = list(self._items)[:ITEMS_PER_REPORT]
            items = tuple(self._items.pop(key) for key in keys)
            while self._minor and self._minor[0] <= keys[-1]:
                self._minor.popleft()
            self._report = Report(self._attempt, self._replica, self._sequence, items)
        return self._report

    def settle(self) -> None:
        """The report has been taken, or never will be: the next one is another."""
        self._report = None
        self._sequence += 1

    def _forget(self, key: int) -> None:
        del self._items[key]
        self.dropped += 1
