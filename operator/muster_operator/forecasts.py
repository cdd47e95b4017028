"""When waiting jobs will start, worked out now and then beside the cycles.

A forecast drives the core over the future of a copy, which takes many cycles: it runs in a thread,
seldom, and never takes more than a small part of the time. What it said holds until the next one.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Final

from muster.scheduling.cluster import Cluster, Objects
from muster.scheduling.plan import Wait
from muster.scheduling.policy import Policy
from muster.simulation.forecast import UNFORESEEN, Forecast, forecast
from muster_operator.cache import Cache
from muster_operator.telling import line

_log = logging.getLogger(__name__)
_REST: Final = 20.0
"""So many times as long as a forecast took there is none."""


class Forecasts:
    """The latest forecast."""

    def __init__(self, cache: Cache, every: float) -> None:
        """At most one in *every* seconds; with 0 there is none."""
        self._cache = cache
        self._every = every
        self._found: Mapping[str, Forecast] = {}
        self._due = 0.0
        self._version = -1

    def of(self, wait: Wait) -> Forecast:
        """What is known of a gang that waits."""
        if wait.predicted_start is not None:
            return Forecast(wait.predicted_start, wait.waits_for)
        return self._found.get(wait.gang, UNFORESEEN)

    async def renew(self, policy: Policy, now: float) -> bool:
        """Work it out anew if it is time to; whether it says something else now."""
        began = time.monotonic()
        snapshot = self._cache.cluster.snapshot()
        is_same = snapshot.version == self._version
        if not self._every or began < self._due or is_same or not snapshot.pending:
            return False
        self._version, before = snapshot.version, self._found
        objects, after = self._cache.cluster.objects(), self._cache.predecessors()
        try:
            self._found = await asyncio.to_thread(_foreseen, objects, policy, now, after)
        except Exception:
            # Nothing depends on a prediction; a mistake in one is told and nothing is predicted.
            _log.exception("forecast-failed")
            self._found = {}
        spent = time.monotonic() - began
        self._due = time.monotonic() + max(self._every, _REST * spent)
        _log.debug(line("foreseen", jobs=len(self._found), seconds=spent))
        return before != self._found


def _foreseen(
    objects: Objects, policy: Policy, now: float, after: Mapping[str, str]
) -> Mapping[str, Forecast]:
    return forecast(Cluster.restored(objects), policy, now, after=after)
