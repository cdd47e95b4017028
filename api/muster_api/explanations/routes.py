"""`…/jobs/{name}/explain` and `/api/v1/jobs/dry-run`."""

from typing import Annotated, Final

from fastapi import APIRouter, Query, Request

from muster_api.auth import Access, Caller, GateOf
from muster_api.errors import problems
from muster_api.explanations import service
from muster_api.explanations.schemas import DryRun, DryRunQuery, Explanation
from muster_api.jobs import manifests
from muster_api.jobs.schemas import MANIFEST
from muster_api.parts import PartsOf
from muster_api.thinking import ThinkerOf

router = APIRouter(prefix="/api/v1", tags=["explanations"])

_BODY: Final = {
    "requestBody": {
        "required": True,
        "description": "A TrainingJob, as for `POST /api/v1/jobs`.",
        "content": {
            media_type: {"schema": {"type": "object"}, "example": MANIFEST}
            for media_type in ("application/json", "application/yaml")
        },
    }
}


@router.get(
    "/namespaces/{namespace}/jobs/{name}/explain",
    summary="Why a job waits",
    responses=problems(401, 403, 404),
)
async def explain_job(
    namespace: str,
    name: str,
    parts: PartsOf,
    thinker: ThinkerOf,
    gate: GateOf,
    caller: Caller,
) -> Explanation:
    """Code, message, place in the queue, predicted start, and the smallest changes that would
    start the job now, each proven by a dry run of the scheduler. While the operator is away: what
    the job's status says, without changes.
    """
    await gate.require(caller, Access("get", "trainingjobs", namespace, name))
    return await service.explain(parts, thinker, gate, caller, namespace, name)


@router.post(
    "/jobs/dry-run",
    summary="What a job would do",
    openapi_extra=_BODY,
    responses=problems(400, 401, 403, 409, 413, 429),
)
async def dry_run_job(
    request: Request,
    parts: PartsOf,
    thinker: ThinkerOf,
    gate: GateOf,
    caller: Caller,
    query: Annotated[DryRunQuery, Query()],
) -> DryRun:
    """Whether the job would be accepted, and then: whether it starts now and where, or when; who
    would have to leave for it and what that costs; and whose start would move. Nothing is created.
    """
    body = await request.body()
    manifest = manifests.manifest_in(body, request.headers.get("Content-Type", ""))
    namespace = manifests.namespace_of(manifest, query.namespace)
    await gate.require(caller, Access("create", "trainingjobs", namespace))
    job = manifests.prepared(manifest, namespace, caller.username)
    return await service.try_out(parts, thinker, gate, caller, job)
