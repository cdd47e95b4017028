"""What queues hold, from the history of running placements."""

from typing import Any

from muster_api.cluster import Cluster
from muster_api.queues.schemas import QueueItem, QueueList
from muster_db.database import Database
from muster_db.holdings import HoldingRepository
from muster_db.records import QueueUse


async def listed(cluster: Cluster, database: Database) -> QueueList:
    """All queues by name, with their use.

    Weight, guarantee and borrowing are those of a queue that has none: the fair-share policy
    brings them. Without a guarantee the share is the usage over the weight.
    """
    queues = await cluster.queues()
    async with database.reading() as connection:
        use = await HoldingRepository(connection).queue_use()
    items = [_item(queue, use.get(queue["metadata"]["name"], QueueUse())) for queue in queues]
    return QueueList(items=sorted(items, key=lambda item: item.name))


def _item(queue: dict[str, Any], use: QueueUse) -> QueueItem:
    spec = queue.get("spec") or {}
    return QueueItem(
        name=queue["metadata"]["name"],
        parent=spec.get("parent"),
        weight=1,
        guaranteed=0,
        limit=spec.get("limit"),
        usage=use.held,
        share=float(use.held),
        pending_gpus=use.pending,
        borrowed=0,
        paused=bool(spec.get("paused")),
    )
