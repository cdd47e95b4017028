"""What the API server keeps of a status, explains and shows, by our CRDs alone."""

import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import yaml

from clusters import RunningCluster
from custom_objects import a_job, an_object
from muster_kube import JOBS, QUEUES, TOPOLOGIES, Kube, Resource
from muster_local import resources

pytestmark = pytest.mark.integration

CRDS = {
    crd["spec"]["names"]["kind"]: crd
    for crd in map(
        yaml.safe_load,
        (file.read_text() for file in sorted((resources.chart() / "crds").glob("*.yaml"))),
    )
}


@pytest.fixture
async def kube(cluster: RunningCluster) -> AsyncIterator[Kube]:
    async with await Kube.connect(cluster.kubeconfig) as client:
        yield client


MOMENT = "2026-12-01T08:00:00.123456Z"
WHOLE_STATUS = {
    "observedGeneration": 3,
    "phase": "Running",
    "reason": "Running",
    "message": "8 of 8 replicas run",
    "attempt": 2,
    "round": 5,
    "gang": "8/8",
    "queuePosition": 1,
    "predictedStart": MOMENT,
    "waitsFor": "team/other",
    "placement": {
        "attempt": 2,
        "decidedAt": MOMENT,
        "port": 29500,
        "nodes": ["n1", "n2"],
        "why": "8 GPUs on 2 nodes in rack r1",
        "round": 4,
        "keeps": 1,
        "grown": [{"first": 1, "at": MOMENT, "round": 5, "runningAt": MOMENT}],
        "yielded": ["c1"],
        "behind": ["team/big"],
        "grownBehind": ["team/big"],
        "took": {"queues": ["b"], "at": MOMENT},
    },
    "claim": {
        "nodes": ["n1", "n2"],
        "why": "1 job leaves",
        "took": ["b"],
        "asks": [
            {
                "id": "c1",
                "at": MOMENT,
                "deadline": MOMENT,
                "victims": [
                    {
                        "job": "team/other",
                        "attempt": 1,
                        "uid": "u",
                        "ranks": [1],
                        "right": "surplus",
                    }
                ],
            }
        ],
    },
    "leaving": [{"claimant": "team/other", "ranks": [1], "deadline": MOMENT}],
    "displaced": {"by": "team/other", "at": MOMENT},
    "returning": True,
    "released": True,
    "attained": 7200.5,
    "ran": 900.5,
    "attempts": [
        {
            "attempt": 1,
            "decidedAt": MOMENT,
            "runningAt": MOMENT,
            "endedAt": MOMENT,
            "outcome": "Lost",
            "cause": "NodeLost",
            "message": "node n3 went away",
            "replicas": 2,
            "gpus": 8,
            "nodes": ["n1", "n3"],
        }
    ],
    "restarts": {"preemption": 0, "infrastructure": 1, "user": 0},
    "retryAt": MOMENT,
    "startedAt": MOMENT,
    "finishedAt": MOMENT,
    "directive": {"id": "d1", "kind": "checkpoint", "deadline": MOMENT, "askedAt": MOMENT},
    "progress": {"epoch": 3, "step": 900, "eta": MOMENT},
    "checkpoint": {"latest": "c9", "verified": "c8", "step": 800, "at": MOMENT},
    "cost": {"microUsd": 1234567, "gpuSeconds": 12.5, "text": "$1.23"},
    "conditions": [
        {
            "type": "Running",
            "status": "True",
            "reason": "Running",
            "message": "8 of 8 replicas run",
            "lastTransitionTime": "2026-12-01T08:00:00Z",
            "observedGeneration": 3,
        }
    ],
}


async def test_everything_that_is_written_to_a_status_is_kept(kube: Kube, namespace: str) -> None:
    await kube.create(JOBS.path(namespace), a_job())
    path = JOBS.path(namespace, "job", "status")
    kept = await kube.patch(path, {"status": WHOLE_STATUS}, fieldValidation="Strict")
    assert WHOLE_STATUS == kept["status"]


def test_the_status_of_this_test_has_every_field() -> None:
    schema = CRDS["TrainingJob"]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert set(_fields(schema["properties"]["status"])) == set(_paths(WHOLE_STATUS))


CONDITION = {
    "type": "Valid",
    "status": "False",
    "reason": "UnknownParent",
    "message": "there is no queue org",
    "lastTransitionTime": "2026-12-01T08:00:00Z",
    "observedGeneration": 1,
}
STATUSES = {
    "queues": {
        "observedGeneration": 1,
        "usage": {
            "held": 8,
            "heldByModel": {"H100": 8},
            "value": 7.5,
            "byModel": {"H100": 7.5},
            "asOf": MOMENT,
        },
        "pending": {"jobs": 2, "gpus": 16},
        "conditions": [CONDITION],
    },
    "topologies": {"observedGeneration": 1, "conditions": [CONDITION]},
}


@pytest.mark.parametrize("resource", [QUEUES, TOPOLOGIES], ids=lambda each: each.plural)
async def test_what_is_wrong_with_a_queue_or_topology_is_kept(
    kube: Kube, namespace: str, resource: Resource
) -> None:
    spec = {"levels": [{"name": "rack", "label": "r"}]} if resource is TOPOLOGIES else {}
    await kube.create(resource.path(), an_object(resource, namespace, spec))
    try:
        want = STATUSES[resource.plural]
        path = resource.path(name=namespace, subresource="status")
        kept = await kube.patch(path, {"status": want}, fieldValidation="Strict")
        assert want == kept["status"]
    finally:
        await kube.delete(resource.path(name=namespace))


@pytest.mark.parametrize("kind", CRDS)
def test_every_field_is_explained(kind: str) -> None:
    schema = CRDS[kind]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    unexplained = [path for path, node in _nodes(schema) if not node.get("description")]
    assert [] == unexplained


@pytest.mark.parametrize("kind", CRDS)
async def test_the_server_serves_the_explanations(kube: Kube, kind: str) -> None:
    document = await kube.get("/openapi/v3/apis/muster.dev/v1alpha1")
    served = document["components"]["schemas"][f"dev.muster.v1alpha1.{kind}"]
    schema = CRDS[kind]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    want = {path: node["description"] for path, node in _nodes(schema)}
    assert want == {p: n["description"] for p, n in _nodes(served) if p in want}


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl on PATH")
async def test_kubectl_get_shows_phase_queue_gang_and_placement(
    kube: Kube, cluster: RunningCluster, namespace: str
) -> None:
    await kube.create(JOBS.path(namespace), a_job())
    await kube.patch(JOBS.path(namespace, "job", "status"), {"status": WHOLE_STATUS})

    def shown(*options: str) -> list[str]:
        command = ["kubectl", "--kubeconfig", str(cluster.kubeconfig), "-n", namespace]
        done = subprocess.run(
            [*command, "get", "tj", *options], capture_output=True, text=True, check=True
        )
        return done.stdout.splitlines()

    head, row = shown()
    assert head.split() == ["NAME", "PHASE", "QUEUE", "GANG", "REASON", "PLACEMENT", "AGE"]
    assert "Running   default   8/8    Running   8 GPUs on 2 nodes in rack r1" in row
    head, row = shown("-o", "wide")
    for word in ("GPUS/REPLICA", "ATTEMPT", "EPOCH", "COST", "MESSAGE"):
        assert word in head
    assert "$1.23" in row


async def test_jobs_can_be_selected_by_queue_and_phase(kube: Kube, namespace: str) -> None:
    await kube.create(JOBS.path(namespace), a_job("one", queue="a"))
    await kube.create(JOBS.path(namespace), a_job("two", queue="b"))
    await kube.patch(JOBS.path(namespace, "two", "status"), {"status": {"phase": "Running"}})
    for selector, want in {"spec.queue=a": ["one"], "status.phase=Running": ["two"]}.items():
        items, _ = await kube.list(JOBS.path(namespace), query={"fieldSelector": selector})
        assert want == [item["metadata"]["name"] for item in items]


def _nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every field of *schema* with its path, items of lists included."""
    yield path, schema
    for key, inner in schema.get("properties", {}).items():
        yield from _nodes(inner, f"{path}.{key}")
    if "items" in schema:
        yield from _nodes(schema["items"], f"{path}[]")


def _fields(schema: dict[str, Any]) -> Iterator[str]:
    return (path for path, _ in _nodes(schema))


def _paths(value: Any, path: str = "") -> Iterator[str]:
    """The same paths, of a value."""
    yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _paths(inner, f"{path}.{key}")
    if isinstance(value, list):
        for inner in value:
            yield from _paths(inner, f"{path}[]")
