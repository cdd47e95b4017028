"""`/api/v1/jobs` and `/api/v1/namespaces/{namespace}/jobs/{name}`."""

from typing import Annotated, Final

from fastapi import APIRouter, Query, Request, Response

from muster.errors import Forbidden, InvalidSpec
from muster_api.auth import Access, Caller, Gate, GateOf, Identity
from muster_api.errors import problems
from muster_api.jobs import manifests, service
from muster_api.jobs.schemas import MANIFEST, JobDetail, JobList, JobQuery, SubmitQuery
from muster_api.parts import PartsOf
from muster_db.jobs import Filter

router = APIRouter(prefix="/api/v1", tags=["jobs"])

_BODY: Final = {
    "requestBody": {
        "required": True,
        "description": "A TrainingJob, as for `kubectl apply`, in JSON or YAML.",
        "content": {
            media_type: {"schema": {"type": "object"}, "example": MANIFEST}
            for media_type in ("application/json", "application/yaml")
        },
    }
}


@router.post(
    "/jobs",
    summary="Submit a job",
    status_code=201,
    openapi_extra=_BODY,
    responses={
        200: {"model": JobDetail, "description": "What would be created, of a dry run"},
        **problems(400, 401, 403, 409, 413, 429),
    },
)
async def submit_job(
    request: Request,
    response: Response,
    parts: PartsOf,
    gate: GateOf,
    caller: Caller,
    query: Annotated[SubmitQuery, Query()],
) -> JobDetail:
    """Create a TrainingJob for the caller.

    Whatever the CRD refuses is answered with the fields that are wrong; so are an unknown queue,
    one that does not take this job, an unknown topology level, and a template that can't be run.
    """
    body = await request.body()
    manifest = manifests.manifest_in(body, request.headers.get("Content-Type", ""))
    namespace = manifests.namespace_of(manifest, query.namespace)
    await gate.require(caller, Access("create", "trainingjobs", namespace))
    job = manifests.prepared(manifest, namespace, caller.username)
    created = await service.submit(parts, job, is_dry_run=query.is_dry_run)
    if query.is_dry_run:
        response.status_code = 200
    else:
        where = f"{router.prefix}/namespaces/{created.namespace}/jobs/{created.name}"
        response.headers["Location"] = where
    return created


@router.get("/jobs", summary="List jobs", responses=problems(401, 403))
async def list_jobs(
    parts: PartsOf, gate: GateOf, caller: Caller, query: Annotated[JobQuery, Query()]
) -> JobList:
    """Jobs that the caller may list, newest first."""
    await _may_list(gate, caller, query.namespace)
    asked = Filter(
        namespace=query.namespace,
        queue=query.queue,
        phase=query.phase,
        with_deleted=query.deleted,
    )
    return await service.listed(parts, asked, limit=query.limit, after=_place_in(query.after))


@router.get(
    "/namespaces/{namespace}/jobs/{name}",
    summary="Read a job",
    responses=problems(401, 403, 404),
)
async def read_job(
    namespace: str, name: str, parts: PartsOf, gate: GateOf, caller: Caller
) -> JobDetail:
    """The job of this name: the one that exists, else the last one that did."""
    await gate.require(caller, Access("get", "trainingjobs", namespace, name))
    return await service.read(parts, namespace, name)


@router.delete(
    "/namespaces/{namespace}/jobs/{name}",
    summary="Cancel a job",
    status_code=202,
    responses=problems(401, 403, 404, 409),
)
async def cancel_job(
    namespace: str, name: str, parts: PartsOf, gate: GateOf, caller: Caller
) -> JobDetail:
    """Delete the TrainingJob. Its pods end with their grace period; its history stays."""
    await gate.require(caller, Access("delete", "trainingjobs", namespace, name))
    return await service.cancel(parts, namespace, name)


async def _may_list(gate: Gate, caller: Identity, namespace: str | None) -> None:
    if namespace is not None:
        await gate.require(caller, Access("list", "trainingjobs", namespace))
    elif not await gate.may(caller, Access("list", "trainingjobs")):
        raise Forbidden(
            f"{caller.username} may not list trainingjobs of all namespaces; name one: ?namespace="
        )


def _place_in(after: str | None) -> tuple[int, str] | None:
    """The place in the list that the `next` of a page stands for."""
    if after is None:
        return None
    submitted, _, uid = after.partition("-")
    if not submitted.isascii() or not submitted.isdigit() or len(submitted) > 18 or not uid:
        raise InvalidSpec("after", "must be the `next` of a page")
    return int(submitted), uid
