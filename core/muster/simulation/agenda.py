"""What is due when, in the order in which it is handled at one instant."""

import heapq
from collections.abc import Callable
from enum import IntEnum
from math import inf
from typing import NamedTuple


class Phase(IntEnum):
    """The order of things at one instant; scheduling follows."""

    CHANGE = 0
    """Nodes and queues."""
    COMPLETION = 1
    TIMER = 2
    """The end of a notice, or of the time for a replacement."""
    WISH = 3
    """A job is suspended, or not any more."""
    SUBMISSION = 4


class Item(NamedTuple):
    """Something due. Items of one time and phase are handled by *order*, then by *number*."""

    at: float
    phase: Phase
    order: int
    number: int
    key: str
    ticket: int
    """For things that a job's state brings about: void once the job has another ticket."""
    act: Callable[[], None] | None


class Agenda:
    """A heap of items; those that became void are dropped when they come up."""

    def __init__(self, is_void: Callable[[Item], bool]) -> None:
        self._heap: list[Item] = []
        self._is_void = is_void
        self._number = 0

    def add(
        self,
        at: float,
        phase: Phase,
        *,
        order: int = 0,
        key: str = "",
        ticket: int = 0,
        act: Callable[[], None] | None = None,
    ) -> None:
        """Note that something is due at *at*; never, if that is infinite."""
        if at < inf:
            self._number += 1
            heapq.heappush(self._heap, Item(at, phase, order, self._number, key, ticket, act))

    def next_time(self) -> float:
        """When the next item is due; infinity if there is none."""
        self._drop_void()
        return self._heap[0].at if self._heap else inf

    def take(self, now: float) -> list[Item]:
        """All that is due by *now*, in order; what is added meanwhile comes with the next call."""
        due = []
        while self._heap and self._heap[0].at <= now:
            item = heapq.heappop(self._heap)
            if not self._is_void(item):
                due.append(item)
        return due

    def _drop_void(self) -> None:
        while self._heap and self._is_void(self._heap[0]):
            heapq.heappop(self._heap)
