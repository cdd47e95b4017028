"""`/api/v1/queues`."""

from fastapi import APIRouter

from muster_api.auth import Access, Caller, GateOf
from muster_api.errors import problems
from muster_api.parts import PartsOf
from muster_api.queues import service
from muster_api.queues.schemas import QueueList
from muster_api.thinking import ThinkerOf

router = APIRouter(prefix="/api/v1", tags=["queues"])


@router.get("/queues", summary="List the queues", responses=problems(401, 403))
async def list_queues(
    parts: PartsOf, thinker: ThinkerOf, gate: GateOf, caller: Caller
) -> QueueList:
    """All queues as a tree, each behind the one above it: guarantee, limit, use, share, what waits
    and what is borrowed. While the operator is away, the use of each alone, from the history.
    """
    await gate.require(caller, Access("list", "queues"))
    return await service.listed(parts, thinker)
