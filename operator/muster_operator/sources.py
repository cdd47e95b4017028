"""Where the cache gets its news: Kopf for our own objects and nodes, our own watches for pods and
quotas, and a full list now and then.

A list comes first, since nothing may be planned before everything is known, and Kopf does not say
when its own is complete. It comes again when Kopf lists anew and at long intervals, because Kopf
never tells of what was deleted while its watch was broken.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from muster_kube import (
    JOBS,
    NODES,
    PODS,
    QUEUES,
    TOPOLOGIES,
    ApiError,
    Kind,
    Kube,
    Resource,
    reflect,
)
from muster_operator.cache import Cache
from muster_operator.handlers import registry_of, watch
from muster_operator.metrics import Metrics
from muster_operator.settings import Settings
from muster_operator.telling import line

_log = logging.getLogger(__name__)
_QUOTAS: Final = Resource("", "v1", "resourcequotas", "ResourceQuota")
# What jobs refer to comes before them, so that nobody is told of an unknown queue in between.
_LISTED: Final = (TOPOLOGIES, QUEUES, NODES, JOBS)
_FIRST_RESYNC_SECONDS: Final = 2.0
_PAUSES: Final = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class Sources:
    """Feeds the cache; `synced` is set once everything has been there once."""

    def __init__(self, kube: Kube, cache: Cache, settings: Settings, metrics: Metrics) -> None:
        self._kube = kube
        self._cache = cache
        self._settings = settings
        self._metrics = metrics
        self._unsynced = {"objects", PODS.plural, _QUOTAS.plural}
        self._wanted = asyncio.Event()
        self.synced = asyncio.Event()

    def take(self, plural: str, event: Any) -> None:
        """One raw event of Kopf."""
        raw, kind = event["object"], event["type"]
        if kind is None and self.synced.is_set():
            self._wanted.set()
        self._take(plural, raw, is_gone=kind == "DELETED")

    async def run(self) -> None:
        """Feed the cache for ever."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._watch_pods())
            tasks.create_task(self._watch_quotas())
            await self._list()
            self._note("objects")
            # Only now are our kinds known to be there, which Kopf looks for once.
            tasks.create_task(watch(registry_of(self._kube, self)))
            tasks.create_task(self._resync())

    async def _watch_pods(self) -> None:
        async for change in reflect(self._kube, PODS.path()):
            if change.kind is Kind.SYNCED:
                self._note(PODS.plural)
            elif change.kind is Kind.DELETED:
                self._try(self._cache.pod_gone, change.object)
            elif change.kind is not Kind.BOOKMARK:
                self._try(self._cache.pod_changed, change.object)

    async def _watch_quotas(self) -> None:
        async for change in reflect(self._kube, _QUOTAS.path()):
            if change.kind is Kind.SYNCED:
                self._note(_QUOTAS.plural)
            elif change.kind is Kind.DELETED:
                self._try(self._cache.around.quota_gone, change.object)
            elif change.kind is not Kind.BOOKMARK:
                self._try(self._cache.around.quota_changed, change.object)

    async def _resync(self) -> None:
        """List again shortly after the start, when Kopf lists, and at long intervals."""
        pause = _FIRST_RESYNC_SECONDS
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wanted.wait()
            if self._wanted.is_set():
                # Kopf's own list comes one object at a time; one list of ours covers it.
                await asyncio.sleep(1.0)
            self._wanted.clear()
            await self._list()
            pause = self._settings.resync

    async def _list(self) -> None:
        """Take in all objects as they are, until that has worked."""
        failures = 0
        for resource in _LISTED:
            while True:
                try:
                    items, version = await self._kube.list(resource.path())
                    break
                except ApiError as error:
                    self._metrics.errors.labels("list").inc()
                    _log.warning(line("list-failed", kind=resource.plural, problem=error))
                    await asyncio.sleep(_PAUSES[min(failures, len(_PAUSES) - 1)])
                    failures += 1
            self._take_list(resource.plural, items, int(version))

    def _take_list(self, plural: str, items: list[dict[str, Any]], version: int) -> None:
        listed = {item["metadata"]["uid"]: item for item in items}
        if plural == JOBS.plural:
            for uid in self._cache.versions.missing_from(listed, version):
                self._cache.job_gone(uid)
        else:
            for name, uid in self._cache.around.missing(plural, listed, version):
                self._cache.around_gone(plural, name, uid)
        for item in items:
            self._try(lambda raw: self._take(plural, raw, is_gone=False), item)

    def _take(self, plural: str, raw: dict[str, Any], *, is_gone: bool) -> None:
        metadata = raw["metadata"]
        if plural == JOBS.plural:
            if is_gone:
                self._cache.job_gone(metadata["uid"])
            else:
                self._cache.job_changed(raw)
        elif is_gone:
            self._cache.around_gone(plural, metadata["name"], metadata["uid"])
        else:
            self._cache.around_changed(plural, raw)

    def _try(self, take: Callable[[dict[str, Any]], object], raw: dict[str, Any]) -> None:
        """Take in one object. One that nobody expected must not stop the others."""
        try:
            take(raw)
        except Exception:
            _log.exception("not-taken name=%s", raw.get("metadata", {}).get("name"))
            self._metrics.errors.labels("take").inc()

    def _note(self, what: str) -> None:
        self._unsynced.discard(what)
        if not self._unsynced and not self.synced.is_set():
            _log.info(line("synced", jobs=len(self._cache.jobs)))
            self._metrics.synced.set(1)
            self.synced.set()
