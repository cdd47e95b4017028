"""`…/jobs/{name}/reports`."""

from typing import Annotated, Final

import orjson
from fastapi import APIRouter, Depends, Request

from muster.reports import report_of
from muster_api.auth import GateOf, Pod
from muster_api.errors import BadBody, problems
from muster_api.parts import PartsOf
from muster_api.reports import service
from muster_api.reports.schemas import REPORT, Acknowledgement

router = APIRouter(prefix="/api/v1/namespaces/{namespace}/jobs/{name}", tags=["reports"])

_BODY: Final = {
    "requestBody": {
        "required": True,
        "description": "A report: at most 1,000 items, in the order in which they happened.",
        "content": {"application/json": {"schema": {"type": "object"}, "example": REPORT}},
    }
}


async def _reporter(request: Request, gate: GateOf) -> Pod:
    """The pod that reports."""
    return await gate.pod(request.headers.get("Authorization"))


@router.post(
    "/reports",
    summary="Report from a training process",
    openapi_extra=_BODY,
    responses=problems(400, 401, 403, 409, 413),
)
async def report(
    namespace: str,
    name: str,
    request: Request,
    parts: PartsOf,
    pod: Annotated[Pod, Depends(_reporter)],
) -> Acknowledgement:
    """Store what a replica reports about its own job.

    The token must be the pod's own, projected with audience `muster`. (attempt, replica, sequence)
    names a report: the same one again changes nothing. The answer comes after the commit, and
    carries what Muster asks of the ranks.
    """
    try:
        raw = orjson.loads(await request.body())
    except orjson.JSONDecodeError as error:
        raise BadBody(f"the body is not JSON: {error}") from error
    said = report_of(raw)
    job = await service.speaks_for(parts, pod, namespace, name, said)
    async with parts.database.writing() as transaction:
        return await service.take(transaction, job, said, parts.clock())
