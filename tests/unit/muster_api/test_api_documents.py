"""The OpenAPI document, and the text beside it, say what there is."""

from pathlib import Path
from typing import Any

import httpx2
import pytest
from prometheus_client import CollectorRegistry

from muster.errors import InvalidSpec
from muster_api.cost.schemas import EpochList
from muster_api.decisions.schemas import DecisionList
from muster_api.explanations.schemas import DryRun, Explanation
from muster_api.jobs.schemas import JobDetail, JobList
from muster_api.metrics import RequestMetrics
from muster_api.nodes.schemas import NodeList
from muster_api.queues.schemas import QueueList
from muster_api.recorder.metrics import RecorderMetrics
from muster_api.reports.schemas import Acknowledgement
from muster_api.settings import ApiSettings, RecorderSettings, read, variables

README = Path(__file__).parents[3] / "api" / "muster_api" / "README.md"


async def operations(client: httpx2.AsyncClient) -> list[tuple[str, dict[str, Any]]]:
    document = (await client.get("/openapi.json")).json()
    return [
        (f"{method.upper()} {path}", operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


async def test_every_route_has_a_summary_examples_and_problems(client) -> None:
    document = (await client.get("/openapi.json")).json()
    for route, operation in await operations(client):
        assert operation["summary"], route
        assert operation["description"], route
        codes = set(operation["responses"])
        assert {"500", "503"} <= codes, route
        if "/api/" in route:
            assert {"401", "403"} <= codes, route
        for code, response in operation["responses"].items():
            for media_type, content in response["content"].items():
                assert (media_type == "application/problem+json") == (code >= "4"), route
                assert has_example(content, document), (route, code)
        for content in operation.get("requestBody", {}).get("content", {}).values():
            assert has_example(content, document), route


def has_example(content: dict[str, Any], document: dict[str, Any]) -> bool:
    schema = content.get("schema") or {}
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    referred = document["components"]["schemas"].get(name, schema)
    return "example" in content or "example" in referred


MODELS = (
    JobDetail,
    JobList,
    QueueList,
    NodeList,
    Explanation,
    DryRun,
    DecisionList,
    Acknowledgement,
    EpochList,
)


async def test_examples_are_what_the_schemas_say(client) -> None:
    """Each response model takes its own example, with no field missing or left over."""
    for model in MODELS:
        example = model.model_config["json_schema_extra"]["example"]

        assert example == model.model_validate(example).model_dump(mode="json", by_alias=True)


async def test_every_route_and_setting_is_in_the_readme(client) -> None:
    text = README.read_text()
    for route, _ in await operations(client):
        assert f"`{route}`" in text
    for kind in (ApiSettings, RecorderSettings):
        for variable in variables(kind):
            assert f"`{variable}`" in text


def test_every_metric_is_in_the_readme() -> None:
    registry = CollectorRegistry()
    RecorderMetrics(registry)
    RequestMetrics(lambda *_: None, registry)
    text = README.read_text()

    for family in registry.collect():
        suffix = "_total" if family.type == "counter" else ""
        assert f"`{family.name}{suffix}`" in text


SETTINGS = {
    "nothing set": ({}, ApiSettings()),
    "its own": (
        {"MUSTER_HTTP_PORT": "81", "MUSTER_DATABASE_URL": "postgresql://x/y"},
        ApiSettings(http_port=81, database_url="postgresql://x/y"),
    ),
    "what belongs to replicas, to the machine or to Kubernetes": (
        {
            "MUSTER_JOB": "x",
            "MUSTER_API_URL": "y",
            "MUSTER_CACHE": "z",
            "MUSTER_API_SERVICE_HOST": "10.0.0.1",
            "MUSTER_API_PORT_8080_TCP": "tcp://10.0.0.1:8080",
            "HOME": "/",
        },
        ApiSettings(),
    ),
}


@pytest.mark.parametrize("claim", SETTINGS)
def test_settings(claim: str) -> None:
    environ, want = SETTINGS[claim]

    assert want == read(ApiSettings, environ)


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({"MUSTER_DATABSE_URL": "x"}, "MUSTER_DATABSE_URL"),
        ({"MUSTER_HTTP_PORT": "x"}, "HTTP_PORT"),
    ],
)
def test_a_setting_that_is_unknown_or_wrong_stops_the_start(environ, name: str) -> None:
    with pytest.raises(InvalidSpec, match=name):
        read(RecorderSettings, environ)
