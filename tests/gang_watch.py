"""Watches every event of jobs and pods, and says where a gang was not whole.

Whole means: in `status.placement` at every moment; in pods within 5 s of that write, or gone
again.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from muster import wire
from muster.moments import seconds_of
from muster_kube import JOBS, PODS, Kind, Kube, reflect

Raw = Mapping[str, Any]
_WHOLE_SECONDS = 5.0
Attempt = tuple[str, int]


@dataclass
class GangWatch:
    """What was seen, and what was wrong about it."""

    gpus_of_node: int
    violations: list[str] = field(default_factory=list)
    phases: dict[str, str] = field(default_factory=dict)
    placed: dict[Attempt, tuple[float, int]] = field(default_factory=dict)
    """When a placement was seen first, and its version."""
    started: dict[str, list[float]] = field(default_factory=dict)
    """When each attempt of a job was decided."""
    asked: dict[tuple[Attempt, str], float] = field(default_factory=dict)
    """When an attempt was asked to leave, by the job that asked."""
    evicted: dict[Attempt, str] = field(default_factory=dict)
    """For whom an attempt ended."""
    rights: set[str] = field(default_factory=set)
    grown: set[Attempt] = field(default_factory=set)
    """Attempts that were given replicas later."""
    outcomes: dict[Attempt, str] = field(default_factory=dict)
    _held: dict[str, tuple[str, int]] = field(default_factory=dict)
    _on_node: dict[str, int] = field(default_factory=dict)
    _living: dict[tuple[str, str], str] = field(default_factory=dict)
    _pods: dict[Attempt, dict[str, float]] = field(default_factory=dict)
    _sizes: dict[Attempt, int] = field(default_factory=dict)

    def job(self, job: Raw, *, is_gone: bool) -> None:
        """One event of a job."""
        name, status = job["metadata"]["name"], job.get("status") or {}
        placement = {} if is_gone else status.get("placement") or {}
        self.phases[name] = status.get("phase", "")
        for ask in (status.get("claim") or {}).get("asks", ()):
            for victim in ask["victims"]:
                self.rights.add(victim["right"])
                key = (victim["job"].partition("/")[2], victim["attempt"])
                self.asked.setdefault((key, name), seconds_of(ask["at"]) or 0.0)
        if placement:
            self._placement(name, job, placement)
        for attempt in status.get("attempts") or ():
            key = (name, attempt["attempt"])
            if "outcome" in attempt:
                self.outcomes[key] = attempt["outcome"]
            if attempt.get("outcome") == "Preempted" and key not in self.evicted:
                by = (status.get("displaced") or {}).get("by", "").partition("/")[2]
                if by:
                    self.evicted[key] = by

    def _placement(self, name: str, job: Raw, placement: Raw) -> None:
        key = (name, placement["attempt"])
        most = job["spec"]["replicas"]
        least = job["spec"].get("minReplicas", most)
        if not least <= len(placement["nodes"]) <= most:
            self.violations.append(f"{key}: {len(placement['nodes'])} of {least} to {most}")
        if key not in self.placed:
            version = int(job["metadata"]["resourceVersion"])
            self.placed[key] = (time.monotonic(), version)
            decided = seconds_of(placement["decidedAt"])
            assert decided is not None
            self.started.setdefault(name, []).append(decided)
        self._sizes[key] = len(placement["nodes"])
        if placement.get("grown"):
            self.grown.add(key)

    def _bind(self, pod: Raw) -> None:
        """Count the GPUs of a pod that runs, starts or ends on its node."""
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName", "")
        if uid in self._held:
            return
        limits = pod["spec"]["containers"][0].get("resources", {}).get("limits", {})
        gpus = int(limits.get(wire.GPU_RESOURCE, 0))
        self._held[uid] = (node, gpus)
        self._on_node[node] = self._on_node.get(node, 0) + gpus
        if self._on_node[node] > self.gpus_of_node:
            name = pod["metadata"]["name"]
            self.violations.append(f"{node} holds {self._on_node[node]} GPUs with {name}")

    def pod(self, pod: Raw, *, is_gone: bool) -> None:
        """One event of a pod."""
        metadata, labels = pod["metadata"], pod["metadata"].get("labels") or {}
        name, rank = labels.get(wire.LABEL_JOB), labels.get(wire.LABEL_REPLICA)
        if name is None or rank is None:
            return
        uid, is_over = metadata["uid"], pod["status"].get("phase") in ("Succeeded", "Failed")
        before = self._living.get((name, rank))
        if is_gone or is_over:
            if before == uid:
                del self._living[name, rank]
            node, gpus = self._held.pop(uid, ("", 0))
            self._on_node[node] = self._on_node.get(node, 0) - gpus
            return
        if before not in (None, uid):
            self.violations.append(f"{name}: rank {rank} has two pods")
        self._living[name, rank] = uid
        self._bind(pod)
        key = (name, int(labels[wire.LABEL_ATTEMPT]))
        self._pods.setdefault(key, {}).setdefault(rank, time.monotonic())

    def end(self) -> list[str]:
        """All that was wrong, with what only the end can tell."""
        found = list(self.violations)
        # Where more processes want the cores than there are, each gets so much less of them.
        bound = _WHOLE_SECONDS * max(1.0, os.getloadavg()[1] / (os.cpu_count() or 1))
        for key, (since, _) in self.placed.items():
            pods = self._pods.get(key, {})
            is_whole = len(pods) >= self._sizes[key]
            late = max((at - since for at in pods.values()), default=0.0)
            if not is_whole and self.outcomes.get(key) not in ("Preempted", "Lost", "Refused"):
                found.append(f"{key}: {len(pods)} of {self._sizes[key]} pods")
            # An elastic gang that grew got some of its pods later.
            if is_whole and late > bound and key not in self.grown:
                found.append(f"{key}: whole after {late:.1f} s")
        unplaced = sorted(self._pods.keys() - self.placed.keys())
        found += [f"{key}: pods without a placement" for key in unplaced]
        for key, by in self.evicted.items():
            at = self.asked.get((key, by))
            if at is None:
                found.append(f"{key} was evicted for {by}, which never claimed anything of it")
            elif not any(start >= at for start in self.started.get(by, ())):
                found.append(f"{key} was evicted for {by}, which did not start")
        return found


@asynccontextmanager
async def watching(kube: Kube, namespace: str, gpus_of_node: int) -> AsyncIterator[GangWatch]:
    """A watch of one namespace for as long as the context lasts."""
    watch = GangWatch(gpus_of_node)

    async def follow(path: str, take: Any) -> None:
        async for change in reflect(kube, path):
            if change.kind in (Kind.ADDED, Kind.MODIFIED, Kind.DELETED):
                take(change.object, is_gone=change.kind is Kind.DELETED)

    tasks = [
        asyncio.create_task(follow(JOBS.path(namespace), watch.job)),
        asyncio.create_task(follow(PODS.path(namespace), watch.pod)),
    ]
    try:
        yield watch
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    problems = [each for each in ended if isinstance(each, Exception)]
    assert not problems, problems
