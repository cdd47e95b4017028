"""Watches the pods of a run and notes when each gang became whole."""

import asyncio
import time
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from muster import wire
from muster_kube import PODS, Kind, Kube, reflect
from muster_local.bench.shape import NAMESPACE, Shape


@dataclass(slots=True)
class Observer:
    """The clock of one run. Times are `time.perf_counter()` seconds."""

    shape: Shape
    submitted: dict[str, float] = field(default_factory=dict)
    """When each job's creation was sent."""
    whole: dict[str, float] = field(default_factory=dict)
    """When the last pod of each gang was seen bound."""
    pods: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Every bound pod by name, as first seen on its node."""
    last_bound: float = 0.0
    done: asyncio.Event = field(default_factory=asyncio.Event)
    synced: asyncio.Event = field(default_factory=asyncio.Event)
    _bound: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))

    async def watch(self, kube: Kube) -> None:
        """Follow the pods until every gang is whole."""
        async for change in reflect(kube, PODS.path(NAMESPACE)):
            if change.kind is Kind.SYNCED:
                self.synced.set()
            elif change.kind in {Kind.ADDED, Kind.MODIFIED}:
                self._see(change.object)
            if len(self.whole) == self.shape.gangs:
                self.done.set()
                return

    def _see(self, pod: dict[str, Any]) -> None:
        name = pod["metadata"]["name"]
        if name in self.pods or not pod["spec"].get("nodeName"):
            return
        self.pods[name] = pod
        self.last_bound = time.perf_counter()
        gang = pod["metadata"]["labels"][wire.LABEL_JOB]
        self._bound[gang] += 1
        if self._bound[gang] == self.shape.gang_size:
            self.whole[gang] = self.last_bound

    @property
    def partial(self) -> int:
        """Gangs with some of their pods bound, but not all."""
        return len(self._bound) - len(self.whole)

    def seconds(self) -> float:
        """From the first job's creation to the last pod bound."""
        return self.last_bound - min(self.submitted.values())

    def waits(self) -> list[float]:
        """From a job's creation until its gang was whole, ascending."""
        return sorted(at - self.submitted[gang] for gang, at in self.whole.items())
