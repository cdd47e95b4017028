"""The collections that the recorder watches, in batches of what happened meanwhile."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from muster import wire
from muster_kube import JOBS, NODES, PODS, Change, Kube, Resource, reflect

CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap")
PRICES: Final = "muster-prices"


class Collection(StrEnum):
    """What is watched. The names are stored with the positions."""

    JOBS = "trainingjobs"
    PODS = "pods"
    NODES = "nodes"
    PRICES = "prices"


@dataclass(frozen=True, slots=True)
class Source:
    """Where a collection is."""

    path: str
    query: Mapping[str, str] = field(default_factory=dict)


SOURCES: Final[Mapping[Collection, Source]] = {
    # Nodes first: what a job is placed on is better known before it.
    Collection.NODES: Source(NODES.path()),
    Collection.PRICES: Source(
        CONFIG_MAPS.path(wire.SYSTEM_NAMESPACE), {"fieldSelector": f"metadata.name={PRICES}"}
    ),
    Collection.JOBS: Source(JOBS.path()),
    Collection.PODS: Source(PODS.path(), {"labelSelector": wire.LABEL_JOB}),
}


async def batches(
    kube: Kube, source: Source, resource_version: str, *, most: int
) -> AsyncGenerator[Sequence[Change], None]:
    """The changes of a collection from *resource_version* on, for ever; those that came while the
    consumer was busy come together, up to *most*."""
    waiting: asyncio.Queue[Change] = asyncio.Queue(maxsize=2 * most)

    async def fill() -> None:
        changes = reflect(kube, source.path, resource_version=resource_version, query=source.query)
        async with aclosing(changes):  # type: ignore[type-var]  # it is a generator
            async for change in changes:
                await waiting.put(change)

    filling = asyncio.create_task(fill())
    getting: asyncio.Task[Change] | None = None
    try:
        while True:
            getting = asyncio.create_task(waiting.get())
            await asyncio.wait({getting, filling}, return_when=asyncio.FIRST_COMPLETED)
            if not getting.done():
                filling.result()
                raise RuntimeError(f"the watch of {source.path} ended")
            batch = [getting.result()]
            while len(batch) < most and not waiting.empty():
                batch.append(waiting.get_nowait())
            yield batch
    finally:
        tasks = [task for task in (filling, getting) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
