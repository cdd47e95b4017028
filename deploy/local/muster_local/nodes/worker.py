"""One pod from its admission to its removal.

    admitted -> runs -> over -> deleted -> files removed
         |        \\__ stopped by somebody
         refused

What runs is ended by a `Stop`, whoever asks for it. The pod's state is in the files of its
containers, so that the same steps go on after a restart of the process.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Any, Final

from muster_kube import PODS, ApiError, ApiNotFound, StaleVersion
from muster_local.nodes.admission import Refusal, refusal
from muster_local.nodes.context import Context
from muster_local.nodes.devices import Holdings
from muster_local.nodes.pod import PodRun
from muster_local.nodes.registration import allocatable_of
from muster_local.nodes.reporter import Reporter
from muster_local.nodes.status import ContainerView, status_of
from muster_local.nodes.stopping import Stop
from muster_local.nodes.storage import Record
from muster_local.nodes.table import NodeEntry

_log = logging.getLogger(__name__)

Raw = Mapping[str, Any]

_FORCED_GRACE_SECONDS: Final = 2.0
"""What a pod gets whose object somebody removed by force."""
_RETRY_SECONDS: Final = (0.1, 0.5, 1.0, 2.0, 5.0)
_OVER: Final = ("Succeeded", "Failed")


_DEADLINE: Final = Refusal(
    "DeadlineExceeded", "Pod was active on the node longer than the specified deadline"
)

_LOST: Final = Refusal(
    "ContainersLost", "the node no longer has the files of this pod's containers"
)


class Worker:
    """Runs one pod. `update` and `gone` tell it what the API says."""

    def __init__(self, pod: Raw, context: Context, node: NodeEntry, holdings: Holdings) -> None:
        self.pod = pod
        """As the API server last told it."""
        self.over = asyncio.Event()
        """Nothing of the pod runs any more, and its status says so."""
        self._context = context
        self._node = node
        self._holdings = holdings
        self._files = context.storage.pod(pod["metadata"]["uid"])
        self._stop: Stop | None = None
        self._stopped = asyncio.Event()
        self._unwanted = asyncio.Event()
        self._exists = True
        self._run: PodRun | None = None
        self._started_at = time.time()
        self._is_over = False
        self._verdict: Refusal | None = None

    def update(self, pod: Raw) -> None:
        """The pod's object is new or changed."""
        self.pod = pod
        if pod["metadata"].get("deletionTimestamp"):
            self._unwanted.set()
            self.stop(Stop(float(pod["metadata"].get("deletionGracePeriodSeconds") or 0)))

    def gone(self) -> None:
        """The pod's object does not exist any more."""
        self._exists = False
        self._unwanted.set()
        self.stop(Stop(_FORCED_GRACE_SECONDS, is_silent=True))

    def stop(self, stop: Stop) -> None:
        """End the pod; of several wishes the most urgent counts."""
        if self._stop is None:
            self._stop = stop
        else:
            self._stop.join(stop)
        self._stopped.set()

    async def run(self) -> None:
        """Go through all steps; returns when the pod is deleted."""
        phase = (self.pod.get("status") or {}).get("phase")
        is_known = self._files.read() is not None
        if phase not in _OVER and (is_known or not self._unwanted.is_set()):
            await self._carry_out()
        self.over.set()
        await self._unwanted.wait()
        if self._exists:
            await self._delete()
        self._files.remove()

    async def _carry_out(self) -> None:
        """Admit the pod, run it, and report until it is over."""
        reporter = Reporter(self._context.kube, self.pod, self._status)
        record = self._admitted()
        if isinstance(record, Refusal):
            self._verdict = record
            self._context.events.tell(self.pod, record.reason, record.message, is_warning=True)
            reporter.finish()
            await reporter.run()
            return
        self._started_at = record.started_at
        self._run = PodRun(
            self.pod,
            record,
            self._context,
            allocatable=allocatable_of(self._node),
            on_change=reporter.changed,
        )
        reporting = asyncio.create_task(reporter.run())
        try:
            stop = await self._live(self._run)
            if stop.is_silent:
                reporting.cancel()  # the end of its containers would be told before it is known
            await self._run.end(stop)
            self._is_over = True
            self._holdings.give_back(self.pod["metadata"]["uid"])
            if not stop.is_silent:
                reporter.finish()
                await reporting
        finally:
            reporting.cancel()
            self._run.leave()

    def _admitted(self) -> Record | Refusal:
        """What the pod may hold, or why it may not run; unchanged after a restart."""
        if (known := self._files.read()) is not None:
            self._holdings.restore(self.pod, known.grant)
            return known
        if (self.pod.get("status") or {}).get("phase") == "Running":
            # It must not run a second time because its files are gone.
            return _LOST
        if refused := refusal(self.pod):
            return refused
        grant = self._holdings.take(self.pod, self._node)
        if isinstance(grant, Refusal):
            return grant
        metadata = self.pod["metadata"]
        record = Record(
            self._node.name, metadata["namespace"], metadata["name"], time.time(), grant
        )
        self._files.write(record)
        return record

    async def _live(self, run: PodRun) -> Stop:
        """Let the pod run until it ends or is stopped; gives how to end what is left of it."""
        living = asyncio.create_task(run.live())
        stopped = asyncio.create_task(self._stopped.wait())
        try:
            await asyncio.wait(
                (living, stopped),
                timeout=self._seconds_left(),
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            stopped.cancel()
            has_ended = not living.cancel()
            await asyncio.wait((living,))
        if has_ended:
            self._verdict = _mishap(living)
        else:
            self._verdict = self._stop.verdict if self._stop else _DEADLINE
        if self._stop is None:
            self._stop = Stop(_grace_of(self.pod), self._verdict)
        return self._stop

    def _seconds_left(self) -> float | None:
        """Until the pod's active deadline, if it has one."""
        seconds = self.pod["spec"].get("activeDeadlineSeconds")
        if seconds is None:
            return None
        return max(0.0, self._started_at + float(seconds) - time.time())

    def _status(self) -> Raw:
        views: tuple[ContainerView, ...] = self._run.views if self._run else ()
        return status_of(
            self.pod,
            views,
            now=time.time(),
            started_at=self._started_at,
            is_over=self._is_over,
            refusal=self._verdict if self._is_over or not self._run else None,
        )

    async def _delete(self) -> None:
        """Remove the pod's object, and no other of its name."""
        metadata = self.pod["metadata"]
        path = PODS.path(metadata["namespace"], metadata["name"])
        failures = 0
        while self._exists:
            try:
                await self._context.kube.delete(path, uid=metadata["uid"], grace_seconds=0)
                return
            except (ApiNotFound, StaleVersion):
                return
            except ApiError as error:
                delay = _RETRY_SECONDS[min(failures, len(_RETRY_SECONDS) - 1)]
                failures += 1
                _log.warning("deleting %s failed, again in %.1f s: %s", path, delay, error)
                await asyncio.sleep(delay)


def _grace_of(pod: Raw) -> float:
    return float(pod["spec"].get("terminationGracePeriodSeconds") or 0)


def _mishap(living: asyncio.Task[None]) -> Refusal | None:
    """A failure of ours, as the pod's: it must neither run on unwatched nor stay for ever."""
    if living.cancelled() or (error := living.exception()) is None:
        return None
    _log.error("running a pod failed", exc_info=error)
    return Refusal("NodeError", f"the node process failed: {error}")
