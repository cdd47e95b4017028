"""Kopf's part: it watches our own objects and nodes, and the handlers feed the cache.

Only raw event handlers are used. They are level-triggered, keep no progress in annotations, need
no finalizer, are never retried with Kopf's delay of a minute, and make Kopf write nothing at all:
a failure of ours must never travel through a queue that waits. What Kopf cannot tell, such as
what vanished while a watch was broken, `sources` finds by listing.
"""

import asyncio
import logging
import signal
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any, Final, Protocol

import kopf

from muster import wire
from muster_kube import JOBS, NODES, QUEUES, TOPOLOGIES, Kube
from muster_operator.telling import line

_log = logging.getLogger(__name__)
_CANCEL_AGAIN_SECONDS: Final = 1.0


class Sink(Protocol):
    """Takes in what the handlers see."""

    def take(self, plural: str, event: Any) -> None:
        """One raw event of Kopf: its type is `None` for what a list had, else as Kubernetes'."""


def registry_of(kube: Kube, sink: Sink) -> kopf.OperatorRegistry:
    """The handlers, in a registry of their own: nothing global, so that two can run in a test."""
    registry = kopf.OperatorRegistry()

    @kopf.on.login(registry=registry, retries=3, backoff=1.0)
    async def login(**_: Any) -> kopf.AiohttpSession:
        return kopf.AiohttpSession(server=kube.server, aiohttp_session=await kube.session())

    @kopf.on.event(wire.GROUP, wire.VERSION, JOBS.plural, registry=registry)
    async def job(event: Any, **_: Any) -> None:
        sink.take(JOBS.plural, event)

    @kopf.on.event(wire.GROUP, wire.VERSION, QUEUES.plural, registry=registry)
    async def queue(event: Any, **_: Any) -> None:
        sink.take(QUEUES.plural, event)

    @kopf.on.event(wire.GROUP, wire.VERSION, TOPOLOGIES.plural, registry=registry)
    async def topology(event: Any, **_: Any) -> None:
        sink.take(TOPOLOGIES.plural, event)

    @kopf.on.event("", NODES.version, NODES.plural, registry=registry)
    async def node(event: Any, **_: Any) -> None:
        sink.take(NODES.plural, event)

    return registry


def kopf_settings() -> kopf.OperatorSettings:
    """Kopf, watching and nothing else."""
    settings = kopf.OperatorSettings()
    settings.peering.standalone = True  # two peers of equal priority would both freeze
    settings.posting.enabled = False
    settings.scanning.disabled = True  # our kinds are there before Kopf is started
    settings.process.ultimate_exiting_timeout = None  # never SIGKILL whom it is embedded in
    settings.persistence.diffbase_storage = _NoDiffs()
    settings.persistence.progress_storage = _NoProgress()
    settings.queueing.exit_timeout = 0.5
    # A server ends a watch after this long; a connection that is silent for longer than it sends
    # bookmarks (a minute) is dead.
    settings.watching.server_timeout = 300
    settings.watching.connect_timeout = 10.0
    settings.watching.inactivity_timeout = 75.0
    settings.watching.reconnect_backoff = 0.1
    settings.networking.request_timeout = 60.0
    settings.networking.error_backoffs = (0.1, 0.2, 0.5, 1, 2, 5, 5, 5)
    return settings


async def watch(registry: kopf.OperatorRegistry) -> None:
    """Run Kopf until cancelled. Should it give up, as after a long absence of the API server, it
    is started afresh."""
    while True:
        with _signals_kept():
            tasks = await kopf.spawn_tasks(
                registry=registry, settings=kopf_settings(), clusterwide=True
            )
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            problem = next((task.exception() for task in done if not task.cancelled()), None)
            _log.error(line("kopf-ended", problem=problem))
        finally:
            await _cancelled(tasks)
        await asyncio.sleep(1.0)


async def _cancelled(tasks: Collection["asyncio.Task[Any]"]) -> None:
    """Cancel until all are over: once may be lost in Kopf's `wait_for` (python/cpython#86296)."""
    while pending := [task for task in tasks if not task.done()]:
        for task in pending:
            task.cancel()
        await asyncio.wait(pending, timeout=_CANCEL_AGAIN_SECONDS)
    await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Kopf takes SIGTERM and SIGINT to stop itself; whoever runs us decides when we stop."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        loop.remove_signal_handler(number)
        signal.signal(number, handler)


class _NoDiffs(kopf.DiffBaseStorage):
    """Nothing is compared with what was handled last, and nothing is copied for it."""

    def build(self, *, body: Any, extra_fields: Any = None) -> Any:
        return kopf.BodyEssence()

    def fetch(self, *, body: Any) -> Any:
        return None

    def store(self, *, body: Any, patch: Any, essence: Any) -> None:
        """Nothing is stored."""


class _NoProgress(kopf.ProgressStorage):
    """No handler has progress that would have to outlive us."""

    def fetch(self, *, key: Any, body: Any) -> Any:
        return None

    def store(self, *, key: Any, record: Any, body: Any, patch: Any) -> None:
        """Nothing is stored."""

    def purge(self, *, key: Any, body: Any, patch: Any) -> None:
        """Nothing is there."""

    def touch(self, *, body: Any, patch: Any, value: Any) -> None:
        """Nothing is touched."""

    def clear(self, *, essence: Any) -> Any:
        return essence
