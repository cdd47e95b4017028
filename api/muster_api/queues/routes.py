"""`/api/v1/queues`."""

from fastapi import APIRouter

from muster_api.auth import Access, Caller, GateOf
from muster_api.errors import problems
from muster_api.parts import PartsOf
from muster_api.queues import service
from muster_api.queues.schemas import QueueList

router = APIRouter(prefix="/api/v1", tags=["queues"])


@router.get("/queues", summary="List the queues", responses=problems(401, 403))
async def list_queues(parts: PartsOf, gate: GateOf, caller: Caller) -> QueueList:
    """All queues with their limits, what their jobs hold and what they wait for."""
    await gate.require(caller, Access("list", "queues"))
    return await service.listed(parts.cluster, parts.database)
