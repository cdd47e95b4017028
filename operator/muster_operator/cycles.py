"""The one scheduling loop: a snapshot, a plan, and what it decided handed on.

Triggers are batched: a cycle starts when nothing has changed for a moment, or when changes have
kept coming for long enough. It never takes more than half of the time.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from itertools import count
from typing import Final, Protocol

from muster.scheduling.archive import Inputs
from muster.scheduling.cycle import plan_cycle
from muster.scheduling.plan import Plan, Wait
from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import Snapshot
from muster_operator.cache import Cache
from muster_operator.deeds import Deeds
from muster_operator.forecasts import Forecasts
from muster_operator.metrics import Metrics
from muster_operator.records import Words
from muster_operator.settings import Settings
from muster_operator.telling import line

_log = logging.getLogger(__name__)
_FAILED_SECONDS: Final = 1.0
_SOONEST_SECONDS: Final = 0.05
_AGAIN_SECONDS: Final = 0.5
_LEAST_ROUNDS: Final = 5
_MOST_ROUNDS: Final = 50
_MOST_SECONDS: Final = 1.0


class Marker(Protocol):
    """Where jobs are marked to be looked at."""

    def mark(self, key: str, *, is_urgent: bool = True) -> None:
        """Have *key* looked at soon."""


class Cycles:
    """Plans whenever it was asked to, with everything that is known then."""

    def __init__(
        self,
        settings: Settings,
        cache: Cache,
        queue: Marker,
        metrics: Metrics,
        clock: Callable[[], float],
        plan: Callable[[Snapshot, Policy, float], Plan] = plan_cycle,
        record: Callable[[Inputs, Plan], object] = lambda inputs, plan: None,
    ) -> None:
        self._settings = settings
        self._cache = cache
        self._queue = queue
        self._metrics = metrics
        self._clock = clock
        self._plan = plan
        self._record = record
        self._deeds = Deeds(cache, metrics, queue.mark)
        self._forecasts = Forecasts(cache, metrics, settings.forecast_every, self.trigger)
        self._wanted = asyncio.Event()
        self._last_trigger = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def trigger(self) -> None:
        """Something changed that a plan may depend on."""
        self._last_trigger = time.monotonic()
        self._wanted.set()

    async def run(self) -> None:
        """Plan for ever. Start it once every cache has synced."""
        try:
            while True:
                await self._wanted.wait()
                await self._quiet()
                self._wanted.clear()
                await self._try()
                self._forecasts.renew(self._settings.policy, self._clock())
        finally:
            await self._forecasts.close()

    async def _try(self) -> None:
        """One cycle, and as much rest as it took."""
        began = time.monotonic()
        try:
            self.cycle()
        except Exception:
            # A mistake in a plan must not stop the jobs that run: told, counted, tried again.
            _log.exception("cycle-failed")
            self._metrics.errors.labels("cycle").inc()
            self._wanted.set()
            await asyncio.sleep(_FAILED_SECONDS)
        spent = time.monotonic() - began
        self._metrics.cycle_seconds.observe(spent)
        await asyncio.sleep(spent)

    async def _quiet(self) -> None:
        """Wait for a quiet moment, but not for ever."""
        latest = time.monotonic() + self._settings.patience
        while True:
            now = time.monotonic()
            due = min(self._last_trigger + self._settings.quiet, latest)
            if now >= due:
                return
            await asyncio.sleep(due - now)

    def cycle(self) -> Plan:
        """One cycle. What it admits counts as placed at once."""
        cluster, policy, now = self._cache.cluster, self._settings.policy, self._clock()
        self._cache.account.pass_time()
        done, latest = 0, time.monotonic() + _MOST_SECONDS
        # Within one instant, until nothing changes: only the result is carried out.
        for round_ in count(1):
            plan = self._plan(cluster.snapshot(), policy, now)
            if plan.deeds:
                # Before any of it is carried out: the record holds what the plan followed from.
                self._record(Inputs(cluster.objects(), policy, now), plan)
            taken = sum(self._deeds.take(deed, now, policy.notice) for deed in plan.deeds)
            done += taken
            if not taken:
                break
            is_long = round_ >= _LEAST_ROUNDS and time.monotonic() > latest
            if is_long or round_ == _MOST_ROUNDS:
                # What is decided so far is carried out, and the rest in the next instant.
                _log.warning(line("undecided", rounds=round_, last=plan.deeds))
                self._metrics.errors.labels("undecided").inc()
                break
        waiting = sum(self._wait(decision) for decision in plan.waiting)
        if done or waiting:
            _log.info(line("planned", deeds=done, waiting=waiting))
        # Deeds that could not be taken have to wait for a write that is under way.
        self._wake(now + _AGAIN_SECONDS if plan.deeds else plan.wake_at, now)
        return plan

    def _wake(self, at: float | None, now: float) -> None:
        """Plan again at that time, when it alone may change the decisions."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if at is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(at - now, _SOONEST_SECONDS), self.trigger)

    def _wait(self, decision: Wait) -> int:
        """Note why the gang waits; 1 where the reason is a new one."""
        record = self._cache.by_key(decision.gang)
        if record is None:
            return 0
        foreseen = self._forecasts.of(decision)
        words = Words(
            decision.reason.value,
            decision.message,
            decision.position,
            foreseen.starts,
            foreseen.waits_for,
        )
        if words == record.words:
            return 0
        is_new = record.words is None or record.words.reason != words.reason
        record.words = words
        if is_new:
            self._metrics.decisions.labels("wait", words.reason).inc()
        self._queue.mark(record.uid, is_urgent=False)
        return int(is_new)
