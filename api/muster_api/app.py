"""The application: routes, errors, limits and metrics, put together."""

from importlib.metadata import version
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from muster_api import (
    cost,
    decisions,
    errors,
    explanations,
    health,
    jobs,
    nodes,
    queues,
    reports,
)
from muster_api.auth import Gate
from muster_api.limits import BodyLimit
from muster_api.metrics import RequestMetrics
from muster_api.parts import Parts
from muster_api.scheduler import Thinker

_DESCRIPTION: Final = """
Submits TrainingJobs, takes reports of training processes, and knows what every job did and cost,
also after it was deleted. Authenticate with a Kubernetes bearer token; what you may do here is
what Kubernetes lets you do with `trainingjobs`, `queues` and `nodes`. Errors are problem details
(RFC 9457). Times are RFC 3339 in UTC; money is whole micro-dollars beside a readable text.
"""
FEATURES: Final = (jobs, explanations, reports, cost, queues, nodes, decisions)
"""What has routes under `/api/v1`."""


def create_app(parts: Parts) -> FastAPI:
    """The API made of *parts*."""
    app = FastAPI(
        title="Muster",
        version=version("muster-train"),
        description=_DESCRIPTION,
        redirect_slashes=False,
    )
    app.state.parts = parts
    app.state.gate = Gate(parts.reviewer, parts.clock)
    errors.install(app)
    app.state.thinker = Thinker(parts.scheduler, parts.clock)
    for feature in FEATURES:
        app.include_router(feature.router)
    health.install(app, [parts.database.ping, parts.cluster.ping], parts.registry)
    app.add_middleware(BodyLimit)
    app.add_middleware(RequestMetrics, registry=parts.registry)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    return app


def _openapi(app: FastAPI) -> dict[str, Any]:
    """The document, with the schemas that our problem responses refer to."""
    if not app.openapi_schema:
        document = get_openapi(
            title=app.title, version=app.version, description=_DESCRIPTION, routes=app.routes
        )
        schema = errors.Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        components = document.setdefault("components", {})
        components.setdefault("schemas", {}).update(schema.pop("$defs"))
        components["schemas"]["Problem"] = schema
        components["securitySchemes"] = {
            "token": {"type": "http", "scheme": "bearer", "description": "A Kubernetes token."}
        }
        app.openapi_schema = document
    return app.openapi_schema
