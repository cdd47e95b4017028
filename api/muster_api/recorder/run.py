"""The recorder as a whole: a watch and a writer a collection, and what follows from the rows."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from functools import partial
from typing import Final

from muster.errors import Unavailable
from muster_api.recorder.endings import Endings
from muster_api.recorder.history import History
from muster_api.recorder.metrics import RecorderMetrics
from muster_api.recorder.streams import SOURCES, Collection, batches
from muster_api.recorder.telling import Telling
from muster_db.database import Database
from muster_db.locks import Lock
from muster_kube import NAMESPACES, ApiError, Kube

_log = logging.getLogger(__name__)
_RETRY_SECONDS: Final = 1.0
_TICK_SECONDS: Final = 1.0
_REST_SECONDS: Final = 0.2
"""The least time between two looks at what follows from the rows."""


class Recorder:
    """Runs until it is cancelled, or until another recorder writes to the same database."""

    def __init__(
        self,
        database: Database,
        kube: Kube,
        clock: Callable[[], int],
        metrics: RecorderMetrics,
        *,
        tell_every_ms: int = 10_000,
        end_wait_ms: int = 20_000,
        most_in_a_batch: int = 500,
    ) -> None:
        self._database = database
        self._kube = kube
        self._clock = clock
        self._metrics = metrics
        self._most_in_a_batch = most_in_a_batch
        self._history: History | None = None
        self._news = asyncio.Event()
        self._endings = Endings(database, kube, clock, metrics, wait_ms=end_wait_ms)
        self._telling = Telling(database, kube, clock, metrics, every_ms=tell_every_ms)

    async def check_synced(self) -> None:
        """Raise `Unavailable` unless all collections are as new as the API server's."""
        if self._history is None or self._history.synced != set(Collection):
            raise Unavailable("the recorder stands by, or has not read all collections yet")

    async def run(self, lock: Lock | None = None) -> None:
        """Record. Raises `Conflict` when this is not the only recorder any more."""
        cluster = await self._cluster()
        self._history = History(self._database, cluster, self._clock, self._metrics)
        self._metrics.active.set(1)
        try:
            async with asyncio.TaskGroup() as group:
                for collection in SOURCES:
                    group.create_task(self._record(self._history, collection))
                group.create_task(self._follow(lock))
        finally:
            self._metrics.active.set(0)

    async def _cluster(self) -> str:
        """What tells this cluster from others."""
        while True:
            try:
                system = await self._kube.get(NAMESPACES.path(name="kube-system"))
                return str(system["metadata"]["uid"])
            except ApiError as error:
                _log.warning("the cluster can't be told, trying again: %s", error)
                await asyncio.sleep(_RETRY_SECONDS)

    async def _record(self, history: History, collection: Collection) -> None:
        version = await history.open(collection)
        source, most = SOURCES[collection], self._most_in_a_batch
        async with aclosing(batches(self._kube, source, version, most=most)) as stream:
            async for batch in stream:
                write = partial(history.write, collection, batch)
                while True:
                    if await self._survives("write", write):
                        break
                    await asyncio.sleep(_RETRY_SECONDS)
                self._news.set()

    async def _follow(self, lock: Lock | None) -> None:
        """Do what follows from the rows, whenever they changed and from time to time."""
        while True:
            self._news.clear()
            if lock is not None:
                await lock.check()
            await self._survives("release", self._endings.release)
            await self._survives("tell", self._telling.tell)
            await asyncio.sleep(_REST_SECONDS)
            try:
                async with asyncio.timeout(_TICK_SECONDS):
                    await self._news.wait()
            except TimeoutError:
                pass  # Deadlines pass without news.

    async def _survives(self, what: str, deed: Callable[[], Awaitable[None]]) -> bool:
        """Whether *deed* was done; a database or API server that is away is waited for."""
        try:
            await deed()
        except (Unavailable, ApiError) as error:
            _log.warning("%s failed: %s", what, error)
            self._metrics.errors.labels(what).inc()
            return False
        return True
