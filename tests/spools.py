"""A spool of decisions that runs in a test, and decisions to put into it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from eventually import eventually
from muster.scheduling.archive import Inputs
from muster.scheduling.cluster import Objects
from muster.scheduling.plan import Admit, Plan
from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import Gang, Needs, Node
from muster_operator.metrics import Metrics
from muster_operator.spool import Limits, Spool

MUCH = Limits(1000, 1 << 20)
PLAN = Plan((Admit("team/g0", ("n0",), "1 GPU on 1 node"),))


def inputs(number: int, *, more: int = 0) -> Inputs:
    """What the cycle with this number saw: one gang more each time."""
    gangs = tuple(
        Gang(f"team/g{each:04}", 1, 1, Needs(1), 0.0, user="u" * more) for each in range(number)
    )
    return Inputs(Objects(nodes=(Node("n0", 8),), gangs=gangs), Policy(), 1000.0 + number)


@asynccontextmanager
async def spooling(
    folder: Path | None, limits: Limits = MUCH, metrics: Metrics | None = None
) -> AsyncIterator[Spool]:
    spool = Spool(folder, limits, metrics or Metrics())
    task = asyncio.create_task(spool.run())
    try:
        yield spool
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def filled(spool: Spool, count: int) -> list[str]:
    """*count* decisions, all of them written."""
    ids = [spool.put(inputs(number), PLAN) for number in range(count)]
    await eventually(lambda: spool.entries() and ids[-1] == spool.entries()[0].id)
    return ids
