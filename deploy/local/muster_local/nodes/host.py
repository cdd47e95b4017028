"""All process nodes of a cluster: follows the table, and answers for the logs."""

import asyncio
import fcntl
import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from muster.errors import MusterError, NotFound, Unavailable
from muster_kube import Kube
from muster_local.nodes.context import Context
from muster_local.nodes.endpoint import Endpoint
from muster_local.nodes.environment import machine_environment
from muster_local.nodes.events import Events
from muster_local.nodes.hosts import HostsFiles
from muster_local.nodes.isolation import refused_because
from muster_local.nodes.leftovers import discard, end
from muster_local.nodes.node import ProcessNode
from muster_local.nodes.settings import Settings
from muster_local.nodes.storage import Storage
from muster_local.nodes.table import FILE_NAME, NodeEntry, read_nodes

_log = logging.getLogger(__name__)

_TABLE_SECONDS: Final = 0.25
"""How often the table is looked at: one `stat`."""
_CONNECTIONS: Final = 4096
"""More than nodes and pods can use: a watch must never wait for a connection."""


async def run(settings: Settings) -> None:
    """Play all nodes of the table until SIGTERM or SIGINT. Raises a `MusterError`."""
    ending = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ending.set)
    async with AsyncExitStack() as stack:
        stack.enter_context(_only_one(settings.directory))
        entries = read_nodes(settings.directory)
        kube = await stack.enter_async_context(
            await Kube.connect(settings.kubeconfig, connections=_CONNECTIONS)
        )
        context = await _context(settings, kube)
        host = Host(context)
        if settings.tls is not None:
            endpoint = Endpoint(host.runs, settings.tls)
            stack.push_async_callback(endpoint.close)
            host.port = await endpoint.start(settings.port)
        host.version = await _version(kube)
        await host.end_strangers(entries)
        telling = asyncio.create_task(context.events.run())
        await host.follow(ending)
        await host.shut_down()
        telling.cancel()


class Host:
    """Holds the nodes and keeps them as the table says."""

    def __init__(self, context: Context) -> None:
        self.port = 0
        self.version = "unknown"
        self._context = context
        self._nodes: dict[str, ProcessNode] = {}
        self._entries: dict[str, NodeEntry] = {}

    async def follow(self, ending: asyncio.Event) -> None:
        """Carry out the table, again whenever it changes, until *ending*."""
        seen: object = None
        while not ending.is_set():
            mark = _mark(self._context.settings.directory / FILE_NAME)
            if mark != seen:
                seen = mark
                try:
                    await self._carry_out(read_nodes(self._context.settings.directory))
                except MusterError as error:
                    _log.error("the table of nodes is not carried out: %s", error)
            with suppress(TimeoutError):
                async with asyncio.timeout(_TABLE_SECONDS):
                    await ending.wait()

    def runs(self, namespace: str, pod: str, container: str) -> list[Path]:
        """The runs of a container, oldest first. Raises `NotFound`."""
        for node in self._nodes.values():
            if worker := node.worker(namespace, pod):
                uid = worker.pod["metadata"]["uid"]
                return self._context.storage.pod(uid).runs(container)
        raise NotFound(f"pod {pod} is not on this node")

    async def end_strangers(self, entries: tuple[NodeEntry, ...]) -> None:
        """End what runs of nodes that died or left the table while nobody looked."""
        downs = {entry.name: entry.down for entry in entries}
        for uid, files in list(self._context.storage.pods()):
            record = files.read()
            node = record.node if record else None
            if node not in downs:
                _log.info("removing what is left of pod uid=%s", uid)
                await discard(files)
            elif downs[node]:
                await end(files)

    async def shut_down(self) -> None:
        """End all pods of all nodes."""
        await asyncio.gather(*(node.shut_down() for node in self._nodes.values()))

    async def _carry_out(self, entries: tuple[NodeEntry, ...]) -> None:
        wanted = {entry.name: entry for entry in entries}
        gone = [
            self._removed(entry) for entry in self._entries.values() if entry.name not in wanted
        ]
        await asyncio.gather(*(node.retire() for node in gone))
        for name, entry in wanted.items():
            if self._entries.get(name) != entry:
                await self._become(entry)
        self._entries = wanted
        _log.info("nodes: %s", ", ".join(sorted(self._nodes)) or "none")

    def _removed(self, entry: NodeEntry) -> ProcessNode:
        """The node of *entry*, no longer ours; one that is down has an object to delete, too."""
        return self._nodes.pop(entry.name, None) or self._new(entry)

    def _new(self, entry: NodeEntry) -> ProcessNode:
        return ProcessNode(entry, self._context, port=self.port, version=self.version)

    async def _become(self, entry: NodeEntry) -> None:
        """Start, change or kill one node."""
        node = self._nodes.get(entry.name)
        if entry.down:
            if node is not None:
                del self._nodes[entry.name]
                await node.die()
        elif node is not None:
            node.change(entry)
        else:
            self._nodes[entry.name] = self._new(entry)
            self._nodes[entry.name].start()


async def _context(settings: Settings, kube: Kube) -> Context:
    programs = str(Path(sys.executable).parent)
    reason = "--no-namespaces was given"
    if settings.may_use_namespaces:
        reason = await refused_because()
    if reason:
        _log.warning("paths are substituted, since mount namespaces are refused: %s", reason)
    server = urlsplit(kube.server)
    port = str(server.port or 443)
    return Context(
        kube,
        settings,
        Storage(settings.directory),
        Events(kube),
        HostsFiles(Storage(settings.directory).hosts),
        platform={
            **machine_environment(os.environ, programs),
            # As images for training set it: what a script prints is in its log at once.
            "PYTHONUNBUFFERED": "1",
            "KUBERNETES_SERVICE_HOST": server.hostname or "",
            "KUBERNETES_SERVICE_PORT": port,
            "KUBERNETES_SERVICE_PORT_HTTPS": port,
        },
        programs=programs,
        refused_because=reason,
    )


async def _version(kube: Kube) -> str:
    """The version that our nodes show: the API server's, since they follow it."""
    answer = await kube.get("/version")
    return str(answer.get("gitVersion") or "unknown")


@contextmanager
def _only_one(directory: Path) -> Iterator[None]:
    """Hold the directory: two processes would start every pod twice."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Unavailable(f"another process plays the nodes of {directory}") from error
        yield


def _mark(file: Path) -> object:
    """Something that is another one when *file* was replaced."""
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
