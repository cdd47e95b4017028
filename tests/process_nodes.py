"""A process that plays nodes for tests, and pods to run on them."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

from clusters import RunningCluster, blocking
from eventually import eventually
from muster_kube import EVENTS, NODES, PODS, ApiError, ApiNotFound, Kube
from muster_local import apply
from muster_local.certificates import API_SERVER_TO_NODES
from muster_local.certificates import NODES as NODES_USER
from muster_local.nodes.leftovers import end_all
from muster_local.nodes.table import NodeEntry, write_nodes

NODE = "process-a"
OTHER = "process-b"
ROLES = Path(apply.__file__).parent / "manifests" / "roles.yaml"


class NodeProcess:
    """`python -m muster_local.nodes` with a directory of its own."""

    def __init__(self, cluster: RunningCluster, directory: Path, *flags: str) -> None:
        self.cluster = cluster
        self.directory = directory
        self._flags = flags
        self._process: subprocess.Popen[bytes] | None = None
        self.log = directory / "nodes.log"

    def start(self) -> None:
        """Start it; it stays until `stop` or `kill`."""
        pki = self.cluster.directory / "pki"
        kubeconfig = self.cluster.control_plane.kubeconfig_of(NODES_USER)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-m", "muster_local.nodes"),
                    *("--directory", str(self.directory), "--kubeconfig", str(kubeconfig)),
                    *("--tls-cert", str(pki / "kubelet.crt")),
                    *("--tls-key", str(pki / "kubelet.key")),
                    *("--client-ca", str(pki / "ca.crt")),
                    *("--client-name", API_SERVER_TO_NODES.user),
                    *self._flags,
                ],
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def kill(self) -> None:
        """End it without a word, as a crash does."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        self._process = None

    def stop(self) -> None:
        """End it as `muster local down` does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(timeout=20)
            self._process = None


@contextmanager
def node_process(
    cluster: RunningCluster, directory: Path, *entries: NodeEntry, flags: tuple[str, ...] = ()
) -> Iterator[NodeProcess]:
    """A process with *entries* as its nodes, all of them ready; nothing is left of it after."""
    write_nodes(directory, entries)
    blocking(_allow(cluster))
    process = NodeProcess(cluster, directory, *flags)
    process.start()
    try:
        blocking(_ready(cluster, entries))
        yield process
    finally:
        process.stop()
        end_all(directory)
        blocking(_remove(cluster, entries))


@contextmanager
def two_nodes(cluster: RunningCluster, directory: Path) -> Iterator[None]:
    """`NODE`, which claims to have GPUs, and `OTHER`, which has none; they may not fail."""
    entries = (NodeEntry(NODE, gpus=4, labels={"muster.dev/rack": "r1"}), NodeEntry(OTHER, gpus=0))
    with node_process(cluster, directory, *entries, flags=("--restart-seconds", "0.2")) as process:
        yield
        assert "Traceback" not in process.log.read_text()


async def _allow(cluster: RunningCluster) -> None:
    async with await Kube.connect(cluster.bootstrap_kubeconfig) as kube:
        await apply.apply(kube, apply.read(ROLES))


async def _ready(cluster: RunningCluster, entries: tuple[NodeEntry, ...]) -> None:
    async with await Kube.connect(cluster.bootstrap_kubeconfig) as kube:
        for entry in entries:
            await eventually(lambda name=entry.name: is_ready(kube, name), within=20)


async def _remove(cluster: RunningCluster, entries: tuple[NodeEntry, ...]) -> None:
    async with await Kube.connect(cluster.bootstrap_kubeconfig) as kube:
        for entry in entries:
            try:
                await kube.delete(NODES.path(name=entry.name))
            except ApiNotFound:
                continue


async def is_ready(kube: Kube, name: str) -> bool:
    """Whether the node takes pods: ready, and without the taint that it is born with."""
    try:
        node = await kube.get(NODES.path(name=name))
    except ApiNotFound:
        return False
    conditions = {c["type"]: c["status"] for c in node["status"].get("conditions", ())}
    return conditions.get("Ready") == "True" and not node["spec"].get("taints")


def pod(name: str, node: str, *containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """A pod that is bound to *node* and does not restart, unless *spec* says otherwise."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **spec.pop("metadata", {})},
        "spec": {
            "nodeName": node,
            "restartPolicy": "Never",
            "enableServiceLinks": False,
            "containers": list(containers),
            **spec,
        },
    }


def shell(script: str, name: str = "main", **container: Any) -> dict[str, Any]:
    """A container that runs a shell script."""
    return {"name": name, "image": "example/any", "command": ["/bin/sh", "-c", script]} | container


def python(script: str, name: str = "main", **container: Any) -> dict[str, Any]:
    """A container that runs a Python script."""
    return {"name": name, "image": "example/any", "command": ["python", "-c", script]} | container


class Namespace:
    """What tests do in their namespace."""

    def __init__(self, kube: Kube, name: str) -> None:
        self.kube = kube
        self.name = name

    async def create(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """Create a pod, a config map or a secret."""
        plural = {"Pod": "pods", "ConfigMap": "configmaps", "Secret": "secrets"}[manifest["kind"]]
        return await self.kube.create(f"/api/v1/namespaces/{self.name}/{plural}", manifest)

    async def pod(self, name: str) -> dict[str, Any]:
        """The pod as it is."""
        return await self.kube.get(PODS.path(self.name, name))

    async def exists(self, name: str) -> bool:
        """Whether there is such a pod."""
        try:
            await self.pod(name)
        except ApiNotFound:
            return False
        return True

    async def in_phase(self, name: str, *phases: str, within: float = 20.0) -> dict[str, Any]:
        """The pod, once it is in one of *phases*."""

        async def arrived() -> dict[str, Any]:
            found = await self.pod(name)
            assert found["status"]["phase"] in phases, found["status"]
            return found

        return await eventually(arrived, within=within)

    async def run(self, manifest: dict[str, Any], within: float = 20.0) -> dict[str, Any]:
        """Create a pod and give it back when it is over."""
        await self.create(manifest)
        return await self.in_phase(
            manifest["metadata"]["name"], "Succeeded", "Failed", within=within
        )

    async def log(self, name: str, **query: str) -> str:
        """What kubectl logs shows."""
        lines = [
            line async for line in self.kube.stream(PODS.path(self.name, name, "log"), **query)
        ]
        return "\n".join(line.decode() for line in lines)

    async def output(self, manifest: dict[str, Any]) -> str:
        """What a pod that succeeds writes."""
        found = await self.run(manifest)
        text = await self.log(manifest["metadata"]["name"])
        assert found["status"]["phase"] == "Succeeded", (found["status"], text)
        return text

    async def events(self, name: str) -> dict[str, str]:
        """The messages of a pod's events by reason."""
        items, _ = await self.kube.list(
            EVENTS.path(self.name), query={"fieldSelector": f"involvedObject.name={name}"}
        )
        return {item["reason"]: item["message"] for item in items}


@asynccontextmanager
async def namespace_of(cluster: RunningCluster, name: str) -> Any:
    """A test's namespace through a client of its own."""
    async with await Kube.connect(cluster.bootstrap_kubeconfig) as kube:
        yield Namespace(kube, name)


def terminated(pod: dict[str, Any], container: int = 0) -> dict[str, Any]:
    """How a container ended."""
    ended: dict[str, Any] = pod["status"]["containerStatuses"][container]["state"]["terminated"]
    return ended


def entries(prefix: str, count: int = 1, **fields: Any) -> list[NodeEntry]:
    """Nodes with names that no other test has."""
    return [replace(NodeEntry(f"{prefix}-{i}"), **fields) for i in range(count)]


def is_alive(process: int) -> bool:
    """Whether a process runs; one that only waits for its parent to notice its end does not."""
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def create_sources(here: Namespace) -> None:
    """A config map and a secret, for pods that refer to them."""
    await here.create(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "settings"},
            "data": {"rate": "0.1"},
        }
    )
    await here.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "hidden"},
            "stringData": {"word": "open"},
        }
    )


async def has_logged(here: Namespace, name: str, words: str) -> bool:
    """Whether the pod has written *words*."""
    try:
        text = await here.log(name)
    except ApiError:
        return False
    return bool(text) and words in text


async def is_gone(here: Namespace, name: str) -> bool:
    """Whether there is no such pod."""
    return not await here.exists(name)
