"""What the operator's integration tests do: run it, make nodes and jobs, and play the kubelet."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from eventually import eventually
from muster import wire
from muster_kube import EVENTS, JOBS, NODES, PODS, ApiError, ApiNotFound, Kube
from muster_operator.run import run
from muster_operator.settings import Settings

Raw = dict[str, Any]
_HEARTBEAT_SECONDS = 10.0


def operator_settings(kubeconfig: Path, **changes: Any) -> Settings:
    """Settings for a test: a free port, and short pauses."""
    given: dict[str, Any] = {
        "kubeconfig": kubeconfig,
        "http_host": "127.0.0.1",
        "http_port": 0,
        "retry_first": 0.2,
        "retry_most": 1.0,
        "recorder_wait": 0.5,
        "message_refresh": 0.2,
        "whole_within": 2.0,
        "preemption_notice": 0.5,
        "forecast_every": 0.5,
        "queue_status_every": 0.5,
    }
    return Settings(**(given | changes))


@asynccontextmanager
async def operating(settings: Settings, kube: Kube | None = None) -> AsyncIterator[int]:
    """An operator in this process, for as long as the context lasts; gives its port."""
    stop = asyncio.Event()
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(run(settings, stop=stop, ready=port.set_result, kube=kube))
    try:
        await asyncio.wait((task, port), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            await task
        yield await port
    finally:
        stop.set()
        await asyncio.wait({task}, timeout=10)
        # Not cancelled: whatever hangs would then hang the test as well.
        assert task.done(), f"the operator does not stop: {task.get_stack()}"
        await task


@dataclass
class Stage:
    """A namespace with nodes of its own, on which only this test's jobs run."""

    kube: Kube
    namespace: str
    nodes: list[str]

    async def add_nodes(self, count: int, *, gpus: int = 8, **labels: str) -> list[str]:
        """Create ready nodes, each in rack `r0` unless told otherwise."""
        first = len(self.nodes)
        names = [f"{self.namespace}-n{first + index}" for index in range(count)]
        for name in names:
            await self.kube.create(NODES.path(), _node(name, self.namespace, labels))
            await self.kube.patch(NODES.path(name=name, subresource="status"), _ready(gpus))
        self.nodes += names
        return names

    async def beat(self) -> None:
        """Say that the nodes are alive; without it they are unreachable after 40 seconds."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        ready = {"type": "Ready", "status": "True", "reason": "Test", "lastHeartbeatTime": now}
        for name in self.nodes:
            path = NODES.path(name=name, subresource="status")
            await self.kube.patch(path, {"status": {"conditions": [ready]}})

    async def remove_node(self, name: str) -> None:
        """Delete a node."""
        self.nodes.remove(name)
        await self.kube.delete(NODES.path(name=name))

    async def create_job(self, name: str = "train", **spec: Any) -> Raw:
        """Create a job that can only run on our nodes."""
        return await self.kube.create(
            JOBS.path(self.namespace), job_manifest(self.namespace, name, **spec)
        )

    async def job(self, name: str = "train") -> Raw:
        """The job as it is."""
        return await self.kube.get(JOBS.path(self.namespace, name))

    async def status(self, name: str = "train") -> Raw:
        """The status of the job."""
        return dict((await self.job(name)).get("status") or {})

    async def patch_job(self, name: str = "train", **spec: Any) -> Raw:
        """Change the spec of a job."""
        return await self.kube.patch(JOBS.path(self.namespace, name), {"spec": spec})

    async def pods(self, name: str = "train") -> list[Raw]:
        """The pods of the job, by name."""
        query = {"labelSelector": f"{wire.LABEL_JOB}={name}"}
        items, _ = await self.kube.list(PODS.path(self.namespace), query=query)
        return sorted(items, key=lambda pod: str(pod["metadata"]["name"]))

    async def events(self, name: str = "train") -> list[str]:
        """The reasons of the job's events, in order."""
        items, _ = await self.kube.list(EVENTS.path(self.namespace))
        ours = [e for e in items if e["involvedObject"]["name"] == name]
        return [e["reason"] for e in sorted(ours, key=lambda e: str(e["metadata"]["name"]))]

    async def becomes(self, phase: str, name: str = "train", **wanted: Any) -> Raw:
        """Wait until the job is in *phase*, with the other fields of status as given."""

        async def probe() -> Raw | None:
            status = await self.status(name)
            seen = {key: status.get(key) for key in ("phase", *wanted)}
            assert {"phase": phase, **wanted} == seen, f"{seen}: {status.get('message')}"
            return status

        status = await eventually(probe)
        assert status is not None
        return status

    async def has_pods(self, count: int, name: str = "train") -> list[Raw]:
        """Wait until the job has exactly *count* pods."""

        pods: list[Raw] = []

        async def probe() -> bool:
            pods[:] = await self.pods(name)
            assert count == len(pods), [p["metadata"]["name"] for p in pods]
            return True

        await eventually(probe)
        return pods

    async def told(self, *reasons: str, name: str = "train") -> list[str]:
        """Wait until the job's events have *reasons* among them, in this order."""

        async def probe() -> list[str]:
            events = await self.events(name)
            rest = iter(events)
            assert all(reason in rest for reason in reasons), events
            return events

        return await eventually(probe)

    async def set_pods(self, phase: str, name: str = "train", **status: Any) -> None:
        """As the kubelet does: all pods of the job are in *phase*."""
        for pod in await self.pods(name):
            await self.set_pod(pod, phase, **status)

    async def set_pod(self, pod: Raw, phase: str, *, code: int = 0, message: str = "") -> None:
        """As the kubelet does: this pod is in *phase*."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        container = pod["spec"]["containers"][0]["name"]
        states: dict[str, Raw] = {
            "Running": {"running": {"startedAt": now}},
            "Succeeded": _terminated(0, now, ""),
            "Failed": _terminated(code or 1, now, message),
        }
        statuses = [
            {
                "name": container,
                "image": "i",
                "imageID": "",
                "ready": phase == "Running",
                "restartCount": 0,
                "state": states[phase],
            }
        ]
        await self.set_pod_status(pod, {"phase": phase, "containerStatuses": statuses})

    async def set_pod_status(self, pod: Raw, status: Raw) -> None:
        """Patch the status of a pod."""
        path = PODS.path(self.namespace, pod["metadata"]["name"], "status")
        await self.kube.patch(path, {"status": status})

    async def delete_pod(self, pod: Raw, *, grace: int | None = 0) -> None:
        """Delete a pod, at once unless told otherwise."""
        await self.kube.delete(
            PODS.path(self.namespace, pod["metadata"]["name"]), grace_seconds=grace
        )


@asynccontextmanager
async def staged(kubeconfig: Path, namespace: str) -> AsyncIterator[Stage]:
    """A stage, cleared afterwards: nodes and jobs go, pods and finalizers with them."""
    async with await Kube.connect(kubeconfig) as kube:
        stage = Stage(kube, namespace, [])
        try:
            yield stage
        finally:
            await _clear(stage)


@asynccontextmanager
async def kubelet(stage: Stage) -> AsyncIterator[None]:
    """Plays the kubelets: pods whose deletion was asked for end, and nodes tell that they live."""

    async def work() -> None:
        told = time.monotonic()
        while True:
            if time.monotonic() - told > _HEARTBEAT_SECONDS:
                told = time.monotonic()
                await stage.beat()
            with suppress(ApiError):
                items, _ = await stage.kube.list(PODS.path(stage.namespace))
                for pod in items:
                    if "deletionTimestamp" in pod["metadata"]:
                        await stage.delete_pod(pod)
            await asyncio.sleep(0.05)

    task = asyncio.create_task(work())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def job_manifest(namespace: str, name: str, **spec: Any) -> Raw:
    """A job that can only run on the nodes of its namespace's stage."""
    pod_spec = {
        "nodeSelector": {"test": namespace},
        "containers": [{"name": "main", "image": "train", "command": ["python"]}],
        "terminationGracePeriodSeconds": 5,
    }
    pod_spec |= spec.pop("pod_spec", {})
    return {
        "apiVersion": wire.API_VERSION,
        "kind": "TrainingJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": 2, "gpusPerReplica": 4, "template": {"spec": pod_spec}, **spec},
    }


def _node(name: str, namespace: str, labels: dict[str, str]) -> Raw:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "test": namespace,
                "kubernetes.io/hostname": name,
                "muster.dev/block": "b0",
                "muster.dev/rack": "r0",
                "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
                **{f"muster.dev/{key}": value for key, value in labels.items()},
            },
        },
    }


def _ready(gpus: int) -> Raw:
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
    ready = {"type": "Ready", "status": "True", "reason": "Test", "message": ""}
    return {"status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}}


def _terminated(code: int, now: str, message: str) -> Raw:
    state = {"exitCode": code, "startedAt": now, "finishedAt": now, "message": message}
    return {"terminated": state | {"reason": "Completed" if code == 0 else "Error"}}


async def _clear(stage: Stage) -> None:
    """Leave nothing behind that the next operator would look after."""
    items, _ = await stage.kube.list(JOBS.path(stage.namespace))
    for job in items:
        path = JOBS.path(stage.namespace, job["metadata"]["name"])
        await _quietly(stage.kube.patch(path, {"metadata": {"finalizers": []}}))
        await _quietly(stage.kube.delete(path))
    pods, _ = await stage.kube.list(PODS.path(stage.namespace))
    for pod in pods:
        await _quietly(stage.delete_pod(pod))
    for name in stage.nodes:
        await _quietly(stage.kube.delete(NODES.path(name=name)))


async def _quietly(request: Awaitable[object]) -> None:
    with suppress(ApiNotFound):
        await request
