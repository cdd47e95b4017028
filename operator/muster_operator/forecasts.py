"""When waiting jobs will start, worked out now and then beside the cycles.

A forecast drives the core over the future of a copy, which takes many cycles: it runs in a thread,
seldom, and never takes more than a small part of the time. What it said holds until the next one.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Final

from muster.scheduling.cluster import Cluster, Objects
from muster.scheduling.plan import Wait
from muster.scheduling.policy import Policy
from muster.simulation.forecast import UNFORESEEN, Forecast, forecast
from muster_operator.cache import Cache
from muster_operator.metrics import Metrics
from muster_operator.telling import line

_log = logging.getLogger(__name__)
_REST: Final = 20.0
"""So many times as long as a forecast took there is none."""


class Forecasts:
    """The latest forecast."""

    def __init__(
        self, cache: Cache, metrics: Metrics, every: float, on_news: Callable[[], None]
    ) -> None:
        """At most one in *every* seconds; with 0 there is none."""
        self._cache = cache
        self._metrics = metrics
        self._every = every
        self._on_news = on_news
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._found: Mapping[str, Forecast] = {}
        self._due = 0.0
        self._version = -1

    def of(self, wait: Wait) -> Forecast:
        """What is known of a gang that waits."""
        if wait.predicted_start is not None:
            return Forecast(wait.predicted_start, wait.waits_for)
        return self._found.get(wait.gang, UNFORESEEN)

    def renew(self, policy: Policy, now: float) -> None:
        """Begin to work it out anew, at once or when it is time to; *on_news* is called then."""
        snapshot = self._cache.cluster.snapshot()
        is_same = snapshot.version == self._version
        is_busy = self._task is not None and not self._task.done()
        if not self._every or is_busy or is_same or not snapshot.pending:
            return
        early = self._due - time.monotonic()
        if early > 0:
            if self._timer is None or self._timer.when() < asyncio.get_running_loop().time():
                self._timer = asyncio.get_running_loop().call_later(early, self._on_news)
            return
        self._version = snapshot.version
        objects, after = self._cache.cluster.objects(), self._cache.predecessors()
        self._task = asyncio.create_task(self._work(objects, policy, now, after))

    async def close(self) -> None:
        """Wait for nothing any more."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _work(
        self, objects: Objects, policy: Policy, now: float, after: Mapping[str, str]
    ) -> None:
        began, before = time.monotonic(), self._found
        try:
            self._found = await asyncio.to_thread(_foreseen, objects, policy, now, after)
        except Exception:
            # Nothing depends on a prediction: a mistake in one is told and counted, and nothing is
            # predicted.
            _log.exception("forecast-failed")
            self._metrics.errors.labels("forecast").inc()
            self._found = {}
        spent = time.monotonic() - began
        self._due = time.monotonic() + max(self._every, _REST * spent)
        _log.debug(line("foreseen", jobs=len(self._found), seconds=spent))
        if before != self._found:
            self._on_news()


def _foreseen(
    objects: Objects, policy: Policy, now: float, after: Mapping[str, str]
) -> Mapping[str, Forecast]:
    return forecast(Cluster.restored(objects), policy, now, after=after)
