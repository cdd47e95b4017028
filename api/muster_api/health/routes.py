"""`/healthz`, `/readyz` and `/metrics`."""

from collections.abc import Awaitable, Callable, Sequence

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from pydantic import BaseModel, ConfigDict

from muster_api.errors import problems

router = APIRouter(tags=["health"])

Check = Callable[[], Awaitable[None]]
"""Raises a `MusterError` where something that is needed does not work."""


class Health(BaseModel):
    """A process that answers."""

    model_config = ConfigDict(json_schema_extra={"example": {"status": "ok"}})

    status: str = "ok"


def install(app: FastAPI, checks: Sequence[Check], registry: CollectorRegistry) -> None:
    """Serve the health of a process that needs *checks* to pass, and its metrics."""
    app.state.checks = tuple(checks)
    app.state.registry = registry
    app.include_router(router)


@router.get("/healthz", summary="Whether the process lives", responses=problems())
async def healthz() -> Health:
    """Always `ok`: a process that can't answer this should be started again."""
    return Health()


@router.get("/readyz", summary="Whether requests can be served", responses=problems())
async def readyz(request: Request) -> Health:
    """`ok` when all that is needed answers, else 503 with what does not."""
    for check in request.app.state.checks:
        await check()
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
async def metrics(request: Request) -> PlainTextResponse:
    """All metrics of this process, in the text format of Prometheus."""
    text = generate_latest(request.app.state.registry)
    return PlainTextResponse(text, media_type=CONTENT_TYPE_LATEST)
