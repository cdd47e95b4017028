"""A recorder in the test's own process, with the test as operator and kubelet."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry

from apis import job_manifest, job_pod
from muster import wire
from muster.times import text_of
from muster_api.clock import now_ms
from muster_api.recorder.metrics import RecorderMetrics
from muster_api.recorder.run import Recorder
from muster_db.database import Database, Transaction
from muster_kube import JOBS, NODES, PODS, Kube

Json = dict[str, Any]
_numbers = itertools.count(1)


class Killed(BaseException):
    """The process is gone: nothing after this runs."""


class Dying(Database):
    """A database whose user is killed around its *n*-th commit: before it, or right after it."""

    def __init__(self, url: str, commits: int, *, is_after: bool) -> None:
        super().__init__(url)
        self._left = commits
        self._is_after = is_after
        self.is_dead = False

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Transaction]:
        if self.is_dead:
            raise Killed
        self._left -= 1
        is_last = self._left <= 0
        async with super().writing() as transaction:
            yield transaction
            if is_last and not self._is_after:
                self.is_dead = True
                raise Killed
        if is_last:
            self.is_dead = True
            raise Killed


@asynccontextmanager
async def recording(database: Database, kube: Kube, **settings: int) -> AsyncIterator[Recorder]:
    """A recorder for as long as the block lasts."""
    recorder = Recorder(
        database,
        kube,
        now_ms,
        RecorderMetrics(CollectorRegistry()),
        **{"tell_every_ms": 100, "end_wait_ms": 20_000, **settings},
    )
    task = asyncio.create_task(recorder.run())
    try:
        yield recorder
    finally:
        task.cancel()
        outcome = (await asyncio.gather(task, return_exceptions=True))[0]
    if isinstance(outcome, Exception):
        raise outcome


@dataclass
class Scene:
    """Plays user, operator and kubelet in one namespace."""

    kube: Kube
    namespace: str
    node_names: list[str] = field(default_factory=list)

    async def add_node(self, *, model: str = "NVIDIA-H100-80GB-HBM3", spot: bool = False) -> str:
        """A node with simulated GPUs; nodes are the cluster's, so that its name is its own."""
        name = f"{self.namespace}-{next(_numbers)}"
        labels = {
            "nvidia.com/gpu.product": model,
            "karpenter.sh/capacity-type": "spot" if spot else "on-demand",
            wire.LABEL_SIMULATED: "true",
        }
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
        await self.kube.create(NODES.path(), node)
        self.node_names.append(name)
        return name

    async def remove_nodes(self) -> None:
        for name in self.node_names:
            await self.kube.delete(NODES.path(name=name))

    async def submit(self, name: str = "digits", **spec: Any) -> Json:
        spec = {"replicas": 1, "gpusPerReplica": 2, **spec}
        return await self.kube.create(JOBS.path(self.namespace), job_manifest(name, **spec))

    async def decide(self, job: Json, *nodes: str, attempt: int = 1, at_ms: int) -> list[Json]:
        """What the operator does for an attempt: status, finalizer, pods. Gives the pods."""
        entry = {
            "attempt": attempt,
            "decidedAt": text_of(at_ms),
            "nodes": list(nodes),
            "replicas": len(nodes),
        }
        await self.set_status(
            job, phase="Starting", attempt=attempt, placement=entry, attempts=[entry]
        )
        await self.kube.patch(
            JOBS.path(self.namespace, job["metadata"]["name"]),
            {"metadata": {"finalizers": [wire.RECORDER_FINALIZER]}},
        )
        pods = []
        for replica, node in enumerate(nodes):
            pod = job_pod(job, attempt=attempt, replica=replica)
            pod["spec"]["nodeName"] = node
            pods.append(await self.kube.create(PODS.path(self.namespace), pod))
        return pods

    async def set_status(self, job: Json, **status: Any) -> None:
        await self.kube.patch(
            JOBS.path(self.namespace, job["metadata"]["name"], "status"), {"status": status}
        )

    async def end_attempt(self, job: Json, entry: Json, phase: str, *, at_ms: int) -> None:
        ended = {**entry, "endedAt": text_of(at_ms), "outcome": phase}
        await self.set_status(
            job, phase=phase, attempts=[ended], placement=None, finishedAt=text_of(at_ms)
        )

    async def end_pod(self, pod: Json, *, at_ms: int, phase: str = "Succeeded") -> None:
        """What the kubelet writes when the processes have ended."""
        terminated = {"exitCode": 0, "finishedAt": text_of(at_ms)}
        state = {"name": "train", "image": "x", "imageID": "", "ready": False, "restartCount": 0}
        status = {
            "phase": phase,
            "containerStatuses": [{**state, "state": {"terminated": terminated}}],
        }
        await self.kube.patch(
            PODS.path(self.namespace, pod["metadata"]["name"], "status"), {"status": status}
        )

    async def delete_job(self, job: Json) -> None:
        await self.kube.delete(JOBS.path(self.namespace, job["metadata"]["name"]))

    async def delete_pod(self, pod: Json) -> None:
        await self.kube.delete(PODS.path(self.namespace, pod["metadata"]["name"]), grace_seconds=0)
