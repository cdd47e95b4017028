"""`/healthz`, `/readyz` and `/metrics`."""

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel, ConfigDict

from muster_api.errors import problems
from muster_api.parts import PartsOf

router = APIRouter(tags=["health"])


class Health(BaseModel):
    """A process that answers."""

    model_config = ConfigDict(json_schema_extra={"example": {"status": "ok"}})

    status: str = "ok"


@router.get("/healthz", summary="Whether the process lives", responses=problems())
async def healthz() -> Health:
    """Always `ok`: a process that can't answer this should be started again."""
    return Health()


@router.get("/readyz", summary="Whether requests can be served", responses=problems())
async def readyz(parts: PartsOf) -> Health:
    """`ok` when the database and the API server answer, else 503 with what does not."""
    await parts.database.ping()
    await parts.cluster.ping()
    return Health()


@router.get(
    "/metrics",
    summary="Metrics for Prometheus",
    response_class=PlainTextResponse,
    responses={
        200: {
            "content": {
                "text/plain": {
                    "example": 'muster_api_request_duration_seconds_count{code="200",'
                    'method="GET",route="/healthz"} 1.0'
                }
            }
        },
        **problems(),
    },
)
async def metrics(parts: PartsOf) -> PlainTextResponse:
    """All metrics of this process, in the text format of Prometheus."""
    return PlainTextResponse(generate_latest(parts.registry), media_type=CONTENT_TYPE_LATEST)
