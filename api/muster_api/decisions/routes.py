"""`/api/v1/snapshot` and `/api/v1/decisions`."""

from typing import Any

from fastapi import APIRouter, Response

from muster import wire
from muster_api.auth import Access, Caller, GateOf
from muster_api.decisions.schemas import DecisionList
from muster_api.errors import problems
from muster_api.thinking import ThinkerOf

router = APIRouter(prefix="/api/v1", tags=["decisions"])

_FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "A file for `muster replay`, and for `--snapshot`",
        "content": {
            "application/json": {
                "schema": {"type": "object"},
                "example": {"muster": "snapshot", "version": 1, "defaults": {}, "snapshot": {}},
            }
        },
    }
}


@router.get(
    "/snapshot",
    summary="What the scheduler sees",
    response_class=Response,
    responses={**_FILE, **problems(401, 403)},
)
async def read_snapshot(thinker: ThinkerOf, gate: GateOf, caller: Caller) -> Response:
    """All nodes, queues and jobs as the next cycle would see them. For who may `get snapshots`:
    administrators, unless a role says otherwise.
    """
    await gate.require(caller, Access("get", wire.SNAPSHOTS))
    return Response(await thinker.scheduler.snapshot(), media_type="application/json")


@router.get("/decisions", summary="List the decisions", responses=problems(401, 403))
async def list_decisions(thinker: ThinkerOf, gate: GateOf, caller: Caller) -> DecisionList:
    """The newest decisions, with the deeds of each. For who may `get decisions`."""
    await gate.require(caller, Access("get", wire.DECISIONS))
    return DecisionList(**await thinker.scheduler.decisions())


@router.get(
    "/decisions/{decision_id}",
    summary="Read a decision",
    response_class=Response,
    responses={**_FILE, **problems(401, 403, 404)},
)
async def read_decision(
    decision_id: str, thinker: ThinkerOf, gate: GateOf, caller: Caller
) -> Response:
    """A decision with all that it followed from. For who may `get decisions`."""
    await gate.require(caller, Access("get", wire.DECISIONS))
    return Response(await thinker.scheduler.decision(decision_id), media_type="application/json")
