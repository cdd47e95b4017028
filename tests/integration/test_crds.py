"""What the API server itself refuses, fills in, keeps and explains, by our CRDs alone."""

import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import yaml

from clusters import RunningCluster
from eventually import eventually
from muster_kube import JOBS, QUEUES, TOPOLOGIES, Invalid, Kube, Resource
from muster_local import resources

pytestmark = pytest.mark.integration

CRDS = {
    crd["spec"]["names"]["kind"]: crd
    for crd in map(
        yaml.safe_load,
        (file.read_text() for file in sorted((resources.chart() / "crds").glob("*.yaml"))),
    )
}
FIXED = "cannot change once the job exists; delete the job and apply it again"
LIMIT = (
    "spec.limit: must be a number of GPUs, at least 0, or a map from GPU model to such a number"
)


@pytest.fixture
async def kube(cluster: RunningCluster) -> AsyncIterator[Kube]:
    async with await Kube.connect(cluster.kubeconfig) as client:
        yield client


def an_object(resource: Resource, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name}
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata,
        "spec": spec,
    }


def a_job(name: str = "job", **spec: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "train", "image": "python"}]}}
    return an_object(JOBS, name, {"template": template, **spec})


def a_template(**pod_spec: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "train"}], **pod_spec}}


async def refusal(kube: Kube, resource: Resource, namespace: str, body: Any) -> str:
    """What the server says to *body*, which it must refuse."""
    with pytest.raises(Invalid) as refused:
        await kube.create(resource.path(namespace), body, dryRun="All", fieldValidation="Strict")
    return str(refused.value)


REFUSED_JOBS = {
    "no replicas": (
        a_job(replicas=0),
        "spec.replicas: Invalid value: 0: spec.replicas in body should be greater than or equal",
    ),
    "more replicas than anybody could run": (
        a_job(replicas=10_001),
        "spec.replicas in body should be less than or equal to 10000",
    ),
    "replicas in words": (
        a_job(replicas="two"),
        'spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer',
    ),
    "negative GPUs": (
        a_job(gpusPerReplica=-1),
        "spec.gpusPerReplica in body should be greater than or equal to 0",
    ),
    "more minReplicas than replicas": (
        a_job(replicas=2, minReplicas=3),
        "spec.minReplicas: Invalid value: must not be above spec.replicas; lower it or raise",
    ),
    "a name of 41 characters": (
        a_job("n" * 41),
        "metadata.name: may have at most 40 characters, because pod names add attempt",
    ),
    "a name with a dot": (a_job("a.b"), "metadata.name: must be a DNS label"),
    "a name that starts with a digit, which no service may": (
        a_job("1st"),
        "metadata.name: must be a DNS label",
    ),
    "nodeName in the template": (
        a_job(template=a_template(nodeName="n1")),
        "spec.template.spec.nodeName: Invalid value: must not be set, because Muster chooses the",
    ),
    "schedulerName in the template": (
        a_job(template=a_template(schedulerName="default-scheduler")),
        "spec.template.spec.schedulerName: Invalid value: must not be set, because Muster places",
    ),
    "an empty list of containers": (
        a_job(template=a_template(containers=[])),
        "spec.template.spec.containers: Invalid value: must hold at least one container",
    ),
    "no containers": (
        a_job(template={"spec": {"restartPolicy": "Never"}}),
        "spec.template.spec.containers: Invalid value: must hold at least one container",
    ),
    "a container without a name": (
        a_job(template=a_template(containers=[{"image": "python"}])),
        "spec.template.spec.containers[0].name: Required value",
    ),
    "two containers of one name": (
        a_job(template=a_template(containers=[{"name": "a"}, {"name": "a"}])),
        'spec.template.spec.containers[1]: Duplicate value: {"name":"a"}',
    ),
    "no template": (
        an_object(JOBS, "job", {"replicas": 1}),
        "spec.template: Required value",
    ),
    "an unknown kind of capacity": (
        a_job(capacityTypes=["cheap"]),
        'spec.capacityTypes[0]: Unsupported value: "cheap": supported values: "spot", "on-demand"',
    ),
    "a model named twice": (
        a_job(gpuModels=["H100", "H100"]),
        'spec.gpuModels[1]: Duplicate value: "H100"',
    ),
    "a checkpoint folder that is no place": (
        a_job(checkpoint={"uri": "checkpoints"}),
        'spec.checkpoint.uri: Invalid value: "checkpoints": must be an absolute path or a URI',
    ),
    "a part without a level": (
        a_job(topology={"perPart": {"size": 4}}),
        "spec.topology.perPart.required: Required value",
    ),
    "a part of nothing": (
        a_job(topology={"perPart": {"size": 0, "required": "rack"}}),
        "spec.topology.perPart.size in body should be greater than or equal to 1",
    ),
    "an empty queue": (a_job(queue=""), "spec.queue in body should be at least 1 chars long"),
    "a negative number of restarts": (
        a_job(restarts={"user": -1}),
        "spec.restarts.user in body should be greater than or equal to 0",
    ),
}

ONE_MESSAGE = (
    "no replicas",
    "negative GPUs",
    "more minReplicas than replicas",
    "a name of 41 characters",
    "nodeName in the template",
    "schedulerName in the template",
    "an empty list of containers",
    "no containers",
)


@pytest.mark.parametrize("claim", REFUSED_JOBS)
async def test_a_bad_job_is_refused_with_a_message_that_names_the_field(
    kube: Kube, namespace: str, claim: str
) -> None:
    body, want = REFUSED_JOBS[claim]
    assert want in await refusal(kube, JOBS, namespace, body)


@pytest.mark.parametrize("claim", ONE_MESSAGE)
async def test_one_mistake_gets_one_message(kube: Kube, namespace: str, claim: str) -> None:
    body, _ = REFUSED_JOBS[claim]
    with pytest.raises(Invalid) as refused:
        await kube.create(JOBS.path(namespace), body, dryRun="All")
    assert 1 == len(refused.value.fields)


REFUSED_QUEUES = {
    "a negative limit": ({"limit": -1}, LIMIT),
    "a limit in words": ({"limit": "8"}, LIMIT),
    "half a GPU": ({"limit": 0.5}, LIMIT),
    "a limit as a list": ({"limit": [8]}, LIMIT),
    "a negative limit of a model": ({"limit": {"H100": 8, "A100": -1}}, LIMIT),
    "a limit of a model in words": ({"limit": {"H100": "8"}}, LIMIT),
    "its own parent": ({"parent": "q"}, "spec.parent: Invalid value: must name another queue"),
    "a user named twice": (
        {"users": ["jane", "jane"]},
        'spec.users[1]: Duplicate value: "jane"',
    ),
}


@pytest.mark.parametrize("claim", REFUSED_QUEUES)
async def test_a_bad_queue_is_refused_with_a_message_that_names_the_field(
    kube: Kube, claim: str
) -> None:
    spec, want = REFUSED_QUEUES[claim]

    async def answer() -> str:
        # A new policy is in force a moment after its creation.
        try:
            await kube.create(QUEUES.path(), an_object(QUEUES, "q", spec), dryRun="All")
        except Invalid as refused:
            return str(refused)
        return ""

    assert want in await eventually(answer)


async def test_a_queue_name_fits_into_a_label(kube: Kube) -> None:
    body = an_object(QUEUES, "q" * 64, {})
    assert "metadata.name: may have at most 63" in await refusal(kube, QUEUES, "", body)


@pytest.mark.parametrize("limit", [0, 8, {"H100": 8, "A100": 0}, None])
async def test_a_limit_is_a_number_or_a_map(kube: Kube, limit: Any) -> None:
    body = an_object(QUEUES, "q", {} if limit is None else {"limit": limit})
    made = await kube.create(QUEUES.path(), body, dryRun="All", fieldValidation="Strict")
    assert limit == made["spec"].get("limit")
    assert made["spec"]["paused"] is False


REFUSED_TOPOLOGIES = {
    "no level": ([], "spec.levels in body should have at least 1 items"),
    "a level named node": (
        [{"name": "node", "label": "a"}],
        "spec.levels: Invalid value: must not name a level node",
    ),
    "one name twice": (
        [{"name": "rack", "label": "a"}, {"name": "rack", "label": "b"}],
        'spec.levels[1]: Duplicate value: {"name":"rack"}',
    ),
    "one label twice": (
        [{"name": "block", "label": "a"}, {"name": "rack", "label": "a"}],
        "spec.levels: Invalid value: must give every level its own label",
    ),
    "a level without a label": ([{"name": "rack"}], "spec.levels[0].label: Required value"),
}


@pytest.mark.parametrize("claim", REFUSED_TOPOLOGIES)
async def test_a_bad_topology_is_refused_with_a_message_that_names_the_field(
    kube: Kube, claim: str
) -> None:
    levels, want = REFUSED_TOPOLOGIES[claim]
    body = an_object(TOPOLOGIES, "bad", {"levels": levels})
    assert want in await refusal(kube, TOPOLOGIES, "", body)


async def test_what_is_left_out_is_filled_in(kube: Kube, namespace: str) -> None:
    made = await kube.create(JOBS.path(namespace), a_job(), dryRun="All")
    want = {
        "queue": "default",
        "priority": 0,
        "suspend": False,
        "replicas": 1,
        "gpusPerReplica": 0,
        "restarts": {"infrastructure": 10, "user": 3},
    }
    assert want == {key: value for key, value in made["spec"].items() if key != "template"}


async def test_a_template_is_kept_as_it_was_written(kube: Kube, namespace: str) -> None:
    template = a_template(
        containers=[{"name": "train", "env": [{"name": "A", "value": "1"}], "tty": True}],
        tolerations=[{"operator": "Exists"}],
        volumes=[{"name": "scratch", "emptyDir": {}}],
    )
    template["metadata"] = {"labels": {"app": "digits"}, "annotations": {"note": "x" * 300}}
    made = await kube.create(
        JOBS.path(namespace), a_job(template=template), dryRun="All", fieldValidation="Strict"
    )
    assert template == made["spec"]["template"]


async def test_an_unknown_queue_and_level_are_left_to_the_operator(
    kube: Kube, namespace: str
) -> None:
    topology = {"required": "galaxy", "preferred": "node"}
    body = a_job(queue="nowhere", topology=topology)
    made = await kube.create(JOBS.path(namespace), body, dryRun="All")
    assert ("nowhere", topology) == (made["spec"]["queue"], made["spec"]["topology"])


EXAMPLES = {
    file.name: list(yaml.safe_load_all(file.read_text()))
    for file in sorted(resources.examples().glob("*.yaml"))
}


@pytest.mark.parametrize("name", EXAMPLES)
async def test_our_examples_are_accepted(kube: Kube, namespace: str, name: str) -> None:
    ours = {resource.kind: resource for resource in (JOBS, QUEUES, TOPOLOGIES)}
    for manifest in EXAMPLES[name]:
        if resource := ours.get(manifest["kind"]):
            manifest["metadata"].pop("namespace", None)
            manifest["metadata"]["name"] = "example"
            await kube.create(
                resource.path(namespace), manifest, dryRun="All", fieldValidation="Strict"
            )


FIXED_FIELDS = {
    "replicas": 3,
    "minReplicas": 2,
    "gpusPerReplica": 4,
    "processesPerReplica": 2,
    "gpuModels": ["A100"],
    "capacityTypes": ["spot"],
    "topology": {"required": "rack"},
    "checkpoint": {"uri": "s3://elsewhere/x"},
    "restarts": {"user": 7},
    "template": {"spec": {"terminationGracePeriodSeconds": 5}},
}


async def test_what_a_job_is_cannot_change_once_it_exists(kube: Kube, namespace: str) -> None:
    whole = {
        "minReplicas": 1,
        "processesPerReplica": 1,
        "gpuModels": ["H100"],
        "capacityTypes": ["on-demand"],
        "topology": {"preferred": "rack"},
        "checkpoint": {"uri": "s3://bucket/x"},
    }
    bare = (await kube.create(JOBS.path(namespace), a_job("bare", replicas=2)))["metadata"]
    full = (await kube.create(JOBS.path(namespace), a_job("full", replicas=2, **whole)))[
        "metadata"
    ]
    changes = [(name, {field: to}) for field, to in FIXED_FIELDS.items() for name in (bare, full)]
    changes += [(full, {field: None}) for field in whole]
    said: dict[str, str] = {}
    for metadata, change in changes:
        with pytest.raises(Invalid) as refused:
            await kube.patch(JOBS.path(namespace, metadata["name"]), {"spec": change})
        said[f"{metadata['name']} {change}"] = str(refused.value)
    wrong = [
        (change, message)
        for change, message in said.items()
        if f"Invalid value: {FIXED}" not in message
    ]
    assert [] == wrong


async def test_how_a_job_is_run_can_change(kube: Kube, namespace: str) -> None:
    await kube.create(JOBS.path(namespace), a_job())
    path = JOBS.path(namespace, "job")
    change = {"priority": 5, "suspend": True, "ttlSecondsAfterFinished": 60, "queue": "other"}
    made = await kube.patch(path, {"spec": change})
    assert change == {key: made["spec"][key] for key in change}


async def test_a_running_job_stays_in_its_queue(kube: Kube, namespace: str) -> None:
    await kube.create(JOBS.path(namespace), a_job())
    path = JOBS.path(namespace, "job")
    await kube.patch(f"{path}/status", {"status": {"phase": "Running"}})
    with pytest.raises(Invalid, match="only while the job is pending or suspended"):
        await kube.patch(path, {"spec": {"queue": "other"}})
    await kube.patch(path, {"spec": {"priority": 1}})
    await kube.patch(f"{path}/status", {"status": {"phase": "Suspended"}})
    await kube.patch(path, {"spec": {"queue": "other"}})


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
    "placement": {
        "attempt": 2,
        "decidedAt": MOMENT,
        "port": 29500,
        "nodes": ["n1", "n2"],
        "why": "8 GPUs on 2 nodes in rack r1",
    },
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
    "directive": {"id": "d1", "kind": "Checkpoint", "deadline": MOMENT},
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
