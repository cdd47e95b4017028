"""`/api/v1/nodes`."""

from fastapi import APIRouter

from muster_api.auth import Access, Caller, GateOf
from muster_api.errors import problems
from muster_api.nodes import service
from muster_api.nodes.schemas import NodeList
from muster_api.thinking import ThinkerOf

router = APIRouter(prefix="/api/v1", tags=["nodes"])


@router.get("/nodes", summary="List the nodes", responses=problems(401, 403))
async def list_nodes(thinker: ThinkerOf, gate: GateOf, caller: Caller) -> NodeList:
    """All nodes by topology, with free and held GPUs, and the free ones that nobody who waits can
    use. Jobs are named where the caller may list them.
    """
    await gate.require(caller, Access("list", "nodes", group=""))
    return await service.listed(thinker, gate, caller)
