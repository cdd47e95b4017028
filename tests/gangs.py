"""Gangs without processes: the ranks of one are threads that meet as real ones would."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


class _Meeting:
    def __init__(self, size: int) -> None:
        self.barrier = threading.Barrier(size, timeout=20)
        self.values: list[Any] = [None] * size


class Together:
    """One rank of a gang of threads; implements `muster_sdk.ranks.Ranks`."""

    def __init__(self, rank: int, size: int, meeting: _Meeting) -> None:
        self.rank = rank
        self.size = size
        self._meeting = meeting

    def gather(self, value: Any) -> list[Any]:
        self._meeting.values[self.rank] = value
        self._meeting.barrier.wait()
        values = list(self._meeting.values)
        self._meeting.barrier.wait()
        return values

    def from_first(self, value: Any) -> Any:
        return self.gather(value)[0]


def on_every_rank(size: int, work: Callable[[Together], T]) -> list[T | Exception]:
    """What *work* gives, or raises, on each rank of a gang of *size*."""
    meeting = _Meeting(size)

    def outcome(rank: int) -> T | Exception:
        try:
            return work(Together(rank, size, meeting))
        except Exception as error:
            return error

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(outcome, range(size)))
