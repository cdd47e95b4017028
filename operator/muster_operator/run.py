"""The operator put together: `run` works until it is told to stop."""

import asyncio
import logging
import time
from collections.abc import Callable

from muster.job_status import Phase
from muster_kube import Kube
from muster_operator.admission import Admission
from muster_operator.cache import Cache
from muster_operator.carry_out import CarryOut
from muster_operator.cycles import Cycles
from muster_operator.evidence import Evidence, Guard
from muster_operator.http import served
from muster_operator.metrics import Metrics
from muster_operator.queue_status import QueueStatus
from muster_operator.reconcile import Reconciler
from muster_operator.settings import Settings
from muster_operator.sources import Sources
from muster_operator.spool import spool_of
from muster_operator.status_writer import StatusWriter
from muster_operator.stories import Stories
from muster_operator.telling import line

_log = logging.getLogger(__name__)
# For the watches, and for writes of status, finalizers and events beside those of pods.
_OTHER_CONNECTIONS = 32


async def run(
    settings: Settings,
    *,
    stop: asyncio.Event,
    ready: Callable[[int], None] | None = None,
    kube: Kube | None = None,
) -> None:
    """Operate the cluster until *stop* is set; *ready* gets the port of health once synced.

    With *kube* that client is used, and left open. Raises a `MusterError` where something that is
    needed cannot be had: a port in use, no kubeconfig.
    """
    if kube is not None:
        await _run(settings, kube, stop, ready)
        return
    connections = settings.writes + _OTHER_CONNECTIONS
    async with await Kube.connect(settings.kubeconfig, connections=connections) as own:
        await _run(settings, own, stop, ready)


async def _run(
    settings: Settings, kube: Kube, stop: asyncio.Event, ready: Callable[[int], None] | None
) -> None:
    operator = Operator(settings, kube)
    async with served(
        settings.http_host,
        settings.http_port,
        operator.metrics,
        operator.sources.synced.is_set,
        operator.evidence.routes(),
    ) as port:
        _log.info(line("started", server=kube.server, port=port))
        working = asyncio.create_task(operator.work())
        stopping = asyncio.create_task(stop.wait())
        synced = asyncio.create_task(operator.sources.synced.wait())
        try:
            await asyncio.wait((working, stopping, synced), return_when=asyncio.FIRST_COMPLETED)
            if ready is not None and synced.done():
                ready(port)
            await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                await working  # it never ends by itself: this raises what ended it
        finally:
            for task in (working, stopping, synced):
                task.cancel()
            await asyncio.gather(working, stopping, synced, return_exceptions=True)
    _log.info(line("stopped"))


class Operator:
    """All parts of one operator, and how they call each other."""

    def __init__(self, settings: Settings, kube: Kube) -> None:
        self.metrics = Metrics()
        self.cache = Cache(
            has_scheduler=settings.has_scheduler,
            on_job=self._on_job,
            on_capacity=self._on_capacity,
            clock=time.time,
            half_life=settings.usage_half_life,
        )
        self.sources = Sources(kube, self.cache, settings, self.metrics)
        self._stories = Stories(
            kube, self.metrics, settings.events_per_second, lambda: self._queue.is_pressed
        )
        self._reconciler = Reconciler(
            settings,
            self.cache,
            StatusWriter(kube, self.cache, time.time),
            Admission(kube, self.cache.around),
            CarryOut(kube, self.cache, settings, self.metrics),
            self._stories,
            self.metrics,
            time.time,
        )
        self._queue = self._reconciler.queue
        self.spool = spool_of(settings, self.metrics)
        self.cycles = Cycles(
            settings,
            self.cache,
            self._queue,
            self.metrics,
            time.time,
            record=self.spool.put,
        )
        self.evidence = Evidence(
            Guard(kube, time.time),
            self.cache.cluster,
            lambda: settings.policy,
            self.spool,
            time.time,
        )
        self._queue_status = QueueStatus(
            kube, self.cache, self.metrics, time.time, settings.queue_status_every
        )
        for phase in Phase:
            self.metrics.jobs.labels(phase.value).set_function(self._counter_of(phase))

    async def work(self) -> None:
        """Work until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.sources.run())
                tasks.create_task(self._stories.run())
                tasks.create_task(self.spool.run())
                await self.sources.synced.wait()
                self.cache.account.load_usage(self.cache.around.raw_of("queues"))
                self._queue.open()
                self.cycles.trigger()
                tasks.create_task(self._queue_status.run())
                tasks.create_task(self.cycles.run())
        finally:
            await self._queue.close()

    def _on_job(self, uid: str, *, is_urgent: bool = True) -> None:
        self._queue.mark(uid, is_urgent=is_urgent)

    def _on_capacity(self) -> None:
        self.cycles.trigger()

    def _counter_of(self, phase: Phase) -> Callable[[], float]:
        jobs = self.cache.jobs
        return lambda: sum((r.status.phase or Phase.PENDING) is phase for r in jobs.values())
