"""Where queues stand: as the operator sees them, else from the history of running placements."""

import logging
from collections.abc import Iterator
from math import inf
from typing import Any

from muster.errors import InvalidSpec, Unavailable
from muster.parse import queue_of
from muster.scheduling.cluster import Cluster
from muster.scheduling.fair_share import share_of
from muster.scheduling.snapshot import Queue
from muster.whatif.views import queues_view
from muster_api.parts import Parts
from muster_api.queues.schemas import QueueItem, QueueList
from muster_api.scheduler import Thinker
from muster_db.holdings import HoldingRepository
from muster_db.records import QueueUse

_log = logging.getLogger(__name__)


async def listed(parts: Parts, thinker: Thinker) -> QueueList:
    """All queues, each behind the one above it."""
    try:
        inputs = await thinker.inputs()
    except Unavailable as error:
        _log.info("telling the queues from history: %s", error)
        return await _from_history(parts)

    def think() -> dict[str, Any]:
        snapshot = Cluster.restored(inputs.objects).snapshot()
        return queues_view(snapshot, inputs.policy, inputs.now)

    return QueueList(**await thinker.work(think, is_quick=True))


async def _from_history(parts: Parts) -> QueueList:
    """With their own use only: whatever the operator knows beside that is missing."""
    queues = {queue.name: queue for queue in map(_queue, await parts.cluster.queues())}
    async with parts.database.reading() as connection:
        use = await HoldingRepository(connection).queue_use()
    return QueueList(
        items=[
            _item(queues[name], depth, use.get(name, QueueUse()))
            for name, depth in _in_order(queues)
        ]
    )


def _queue(raw: dict[str, Any]) -> Queue:
    try:
        return queue_of(raw)
    except InvalidSpec:
        return Queue(raw["metadata"]["name"])  # the operator says what is wrong with it


def _in_order(queues: dict[str, Queue]) -> Iterator[tuple[str, int]]:
    """Every queue once, behind the one above it, with its depth."""
    seen: set[str] = set()

    def walk(name: str, depth: int) -> Iterator[tuple[str, int]]:
        if name not in seen:
            seen.add(name)
            yield name, depth
            for child in sorted(queues):
                if queues[child].parent == name:
                    yield from walk(child, depth + 1)

    for name in sorted(queues, key=lambda name: (queues[name].parent in queues, name)):
        yield from walk(name, 0)


def _item(queue: Queue, depth: int, use: QueueUse) -> QueueItem:
    share = share_of(use.held, queue.guaranteed, queue.weight)
    return QueueItem(
        name=queue.name,
        parent=queue.parent,
        depth=depth,
        weight=queue.weight,
        guaranteed=dict(queue.guaranteed_by_model) or queue.guaranteed,
        limit=dict(queue.limit_by_model) or queue.limit,
        usage=use.held,
        usage_by_model={},
        decayed_usage=None,
        share=None if share == inf else share,
        pending_gpus=use.pending,
        borrowed=max(0, use.held - queue.guaranteed),
        order=queue.order.value,
        paused=queue.is_paused,
    )
