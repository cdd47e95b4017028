"""One process node: its registration, its heartbeat, and a worker for each of its pods.

Each node watches its own pods, as a kubelet does, so that the pods of other nodes, thousands of
simulated ones in a benchmark, never reach this process.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from muster_kube import NODES, PODS, AlreadyExists, ApiError, ApiNotFound, Kind, reflect
from muster_local.nodes.admission import Refusal
from muster_local.nodes.context import Context
from muster_local.nodes.devices import Holdings
from muster_local.nodes.leftovers import discard
from muster_local.nodes.registration import (
    LEASE_NAMESPACE,
    lease_of,
    metadata_of,
    micro_time_of,
    node_status,
)
from muster_local.nodes.stopping import Stop
from muster_local.nodes.table import NodeEntry
from muster_local.nodes.worker import Worker

_log = logging.getLogger(__name__)

Raw = Mapping[str, Any]

_LEASES: Final = f"/apis/coordination.k8s.io/v1/namespaces/{LEASE_NAMESPACE}/leases"
_STATUS_SECONDS: Final = 300.0
"""How often the status is written though nothing changed, as the kubelet does."""
_RETRY_SECONDS: Final = 1.0
_REPORT_SECONDS: Final = 2.0
"""How long the last reports may take when a node goes: the API server may be gone already."""
_TERMINATED: Final = Refusal(
    "Terminated", "Pod was terminated in response to imminent node shutdown."
)


class ProcessNode:
    """A node that is up, from `start` to `die`, `retire` or `shut_down`."""

    def __init__(self, entry: NodeEntry, context: Context, *, port: int, version: str) -> None:
        self.entry = entry
        self._context = context
        self._port = port
        self._version = version
        self._holdings = Holdings()
        self._workers: dict[str, tuple[Worker, asyncio.Task[None]]] = {}
        self._first: list[Raw] | None = []
        """Pods of the first list, until it is complete."""
        self._ready_since = time.time()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Register, and run pods."""
        self._tasks = [asyncio.create_task(self._beat()), asyncio.create_task(self._watch())]

    def change(self, entry: NodeEntry) -> None:
        """Become what the table says now; pods that run stay."""
        self.entry = entry
        self._tasks.append(asyncio.create_task(self._until_done(self._register)))

    async def die(self) -> None:
        """Be dead at once: nothing runs, and nothing is reported any more."""
        await self._close(Stop(0.0, is_silent=True))
        _log.info("node died node=%s", self.entry.name)

    async def shut_down(self) -> None:
        """End all pods, and say so in their status, as far as the API server still answers."""
        grace = self._context.settings.shutdown_grace_seconds
        try:
            async with asyncio.timeout(grace + _REPORT_SECONDS):
                await self._close(Stop(grace, _TERMINATED))
        except TimeoutError:
            _log.warning("node %s went before all of its pods were told of", self.entry.name)

    async def retire(self) -> None:
        """Shut down, and leave the cluster."""
        await self.shut_down()
        try:
            await self._context.kube.delete(NODES.path(name=self.entry.name))
        except ApiError as error:
            _log.warning("node %s is not deleted: %s", self.entry.name, error)

    def worker(self, namespace: str, name: str) -> Worker | None:
        """The worker of a pod, if the pod is here."""
        for worker, _ in self._workers.values():
            metadata = worker.pod["metadata"]
            if (metadata["namespace"], metadata["name"]) == (namespace, name):
                return worker
        return None

    async def _close(self, stop: Stop) -> None:
        for task in self._tasks:
            task.cancel()
        workers = list(self._workers.values())
        for worker, _ in workers:
            # Each its own: a pod may be told to hurry for a reason of its own.
            worker.stop(Stop(stop.grace_seconds, stop.verdict, is_silent=stop.is_silent))
        await asyncio.gather(*(worker.over.wait() for worker, _ in workers))
        for _, task in workers:
            task.cancel()

    async def _watch(self) -> None:
        query = {"fieldSelector": f"spec.nodeName={self.entry.name}"}
        async for change in reflect(self._context.kube, PODS.path(), query=query):
            if change.kind is Kind.SYNCED:
                await self._begin()
            elif change.kind is Kind.DELETED:
                self._forget(change.object)
            elif change.kind is not Kind.BOOKMARK:
                if self._first is not None:
                    self._first.append(change.object)
                else:
                    self._see(change.object)

    async def _begin(self) -> None:
        """The first list is complete: take up the pods, first those that ran here before."""
        if self._first is None:
            return
        pods, self._first = self._first, None
        storage = self._context.storage

        def turn(pod: Raw) -> tuple[bool, str, str]:
            metadata = pod["metadata"]
            is_new = storage.pod(metadata["uid"]).read() is None
            return is_new, metadata["creationTimestamp"], metadata["uid"]

        for pod in sorted(pods, key=turn):
            self._see(pod)
        for uid, files in list(storage.pods()):
            record = files.read()
            if uid not in self._workers and record and record.node == self.entry.name:
                await discard(files)

    def _see(self, pod: Raw) -> None:
        uid = pod["metadata"]["uid"]
        if uid not in self._workers:
            worker = Worker(pod, self._context, self.entry, self._holdings)
            task = asyncio.create_task(worker.run())
            task.add_done_callback(lambda done: self._finished(uid, done))
            self._workers[uid] = worker, task
        self._workers[uid][0].update(pod)

    def _forget(self, pod: Raw) -> None:
        if found := self._workers.get(pod["metadata"]["uid"]):
            found[0].gone()

    def _finished(self, uid: str, task: asyncio.Task[None]) -> None:
        self._workers.pop(uid, None)
        self._holdings.give_back(uid)
        if not task.cancelled() and (error := task.exception()):
            _log.error("the worker of pod %s failed", uid, exc_info=error)

    async def _beat(self) -> None:
        """Register, then renew the lease for ever, and the status now and then."""
        await self._until_done(self._register)
        written = time.monotonic()
        while True:
            await asyncio.sleep(self._context.settings.lease_seconds / 4)
            if time.monotonic() - written > _STATUS_SECONDS:
                await self._until_done(self._register)
                written = time.monotonic()
            await self._until_done(self._renew)

    async def _until_done(self, deed: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await deed()
                return
            except ApiError as error:
                _log.warning("node %s: %s; trying again", self.entry.name, error)
                await asyncio.sleep(_RETRY_SECONDS)

    async def _register(self) -> None:
        """Create or correct the Node object, its status and its lease. Raises an `ApiError`."""
        kube, path = self._context.kube, NODES.path(name=self.entry.name)
        metadata = metadata_of(self.entry)
        try:
            node = await kube.create(
                NODES.path(), {"apiVersion": "v1", "kind": "Node", "metadata": metadata}
            )
        except AlreadyExists:
            node = await kube.patch(path, {"metadata": metadata})
        status = node_status(
            self.entry,
            port=self._port,
            version=self._version,
            now=time.time(),
            ready_since=self._ready_since,
        )
        await kube.patch(f"{path}/status", {"status": status})
        lease = lease_of(node, seconds=self._context.settings.lease_seconds, now=time.time())
        try:
            await kube.create(_LEASES, lease)
        except AlreadyExists:
            await kube.patch(f"{_LEASES}/{self.entry.name}", lease)

    async def _renew(self) -> None:
        """Renew the lease; one that is gone went with the node, which registers anew."""
        renewed = {"renewTime": micro_time_of(time.time())}
        try:
            await self._context.kube.patch(f"{_LEASES}/{self.entry.name}", {"spec": renewed})
        except ApiNotFound:
            await self._register()
