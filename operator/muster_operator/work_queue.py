"""Keys that want attention, each handled by one task at a time.

A key that is marked while it is handled is handled once more afterwards, so that no news is lost
and no two hands touch one job. Urgent keys go first; the others use a few places only.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable

from muster_operator.metrics import Metrics

_log = logging.getLogger(__name__)


class WorkQueue:
    """Calls *handle* for each marked key: at most *width* at once, *lazy_width* if not urgent."""

    def __init__(
        self,
        handle: Callable[[str], Awaitable[None]],
        metrics: Metrics,
        *,
        width: int = 48,
        lazy_width: int = 4,
    ) -> None:
        self._handle = handle
        self._metrics = metrics
        self._width = width
        self._lazy_width = lazy_width
        self._urgent: deque[str] = deque()
        self._lazy: deque[str] = deque()
        self._marked: dict[str, bool] = {}
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._lazy_busy = 0
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._is_open = False

    def open(self) -> None:
        """Begin to handle what has been marked."""
        self._is_open = True
        self._pump()

    async def close(self) -> None:
        """Stop at once; what was marked is found again by the next operator."""
        self._is_open = False
        for timer in self._timers.values():
            timer.cancel()
        tasks = tuple(self._busy.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def is_pressed(self) -> bool:
        """Whether urgent keys wait for their turn."""
        return bool(self._urgent)

    def mark(self, key: str, *, is_urgent: bool = True) -> None:
        """Have *key* looked at soon."""
        was = self._marked.get(key)
        if was is None or (is_urgent and not was):
            self._marked[key] = is_urgent
            if key not in self._busy:
                (self._urgent if is_urgent else self._lazy).append(key)
        if self._is_open:
            self._pump()

    def mark_in(self, key: str, seconds: float, *, is_urgent: bool = True) -> None:
        """Have *key* looked at after a while; the earliest such wish counts."""
        loop = asyncio.get_running_loop()
        due = loop.time() + max(seconds, 0.0)
        timer = self._timers.get(key)
        if timer is not None:
            if timer.when() <= due and not timer.cancelled():
                return
            timer.cancel()
        self._timers[key] = loop.call_at(due, self._due, key, is_urgent)

    def _due(self, key: str, is_urgent: bool) -> None:  # noqa: FBT001 -- called by the loop
        self._timers.pop(key, None)
        self.mark(key, is_urgent=is_urgent)

    def _pump(self) -> None:
        while len(self._busy) < self._width and (key := self._next()) is not None:
            is_urgent = self._marked.pop(key)
            self._lazy_busy += not is_urgent
            task = asyncio.get_running_loop().create_task(self._run(key, is_urgent))
            self._busy[key] = task

    def _next(self) -> str | None:
        """The next key. One that was moved from lazy to urgent is met twice, and skipped once."""
        if self._lazy_busy == 0 and (key := self._next_lazy()) is not None:
            return key  # urgent ones may never end, and the others must not wait for ever
        while self._urgent:
            key = self._urgent.popleft()
            if key in self._marked and key not in self._busy:
                return key
        return self._next_lazy()

    def _next_lazy(self) -> str | None:
        while self._lazy and self._lazy_busy < self._lazy_width:
            key = self._lazy.popleft()
            if key in self._marked and key not in self._busy:
                return key
        return None

    async def _run(self, key: str, is_urgent: bool) -> None:  # noqa: FBT001 -- ours alone
        try:
            await self._handle(key)
        except Exception:
            # A mistake of ours in one job must not stop the others: told, counted, tried again.
            _log.exception("step-failed key=%s", key)
            self._metrics.errors.labels("step").inc()
            self.mark_in(key, 5.0)
        finally:
            del self._busy[key]
            self._lazy_busy -= not is_urgent
            again = self._marked.get(key)
            if again is not None:
                (self._urgent if again else self._lazy).append(key)
            if self._is_open:
                self._pump()
