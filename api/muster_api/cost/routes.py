"""`…/jobs/{name}/cost` and `…/jobs/{name}/epochs`."""

from typing import Annotated

from fastapi import APIRouter, Query

from muster_api.auth import Access, Caller, GateOf
from muster_api.cost import service
from muster_api.cost.schemas import By, Cost, EpochList
from muster_api.errors import problems
from muster_api.parts import PartsOf

router = APIRouter(prefix="/api/v1/namespaces/{namespace}/jobs/{name}", tags=["cost"])


@router.get("/cost", summary="What a job cost", responses=problems(401, 403, 404))
async def read_cost(
    namespace: str,
    name: str,
    parts: PartsOf,
    gate: GateOf,
    caller: Caller,
    by: Annotated[By, Query(description="What each line is for.")] = By.EPOCH,
) -> Cost:
    """What the job cost until now, start-up and restarts apart; the lines add up exactly."""
    await gate.require(caller, Access("get", "trainingjobs", namespace, name))
    return await service.cost_of(parts, namespace, name, is_by_attempt=by is By.ATTEMPT)


@router.get("/epochs", summary="The epochs of a job", responses=problems(401, 403, 404))
async def read_epochs(
    namespace: str, name: str, parts: PartsOf, gate: GateOf, caller: Caller
) -> EpochList:
    """Each epoch with its time, its cost over all attempts, and its last metrics."""
    await gate.require(caller, Access("get", "trainingjobs", namespace, name))
    return await service.epochs_of(parts, namespace, name)
