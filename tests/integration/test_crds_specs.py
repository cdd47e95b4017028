"""What the API server fills in and keeps of a spec, and what of it may change."""

from collections.abc import AsyncIterator

import pytest
import yaml

from clusters import RunningCluster
from custom_objects import a_job, a_template
from muster_kube import JOBS, QUEUES, TOPOLOGIES, Invalid, Kube
from muster_local import resources

pytestmark = pytest.mark.integration

FIXED = "cannot change once the job exists; delete the job and apply it again"


@pytest.fixture
async def kube(cluster: RunningCluster) -> AsyncIterator[Kube]:
    async with await Kube.connect(cluster.kubeconfig) as client:
        yield client


async def test_what_is_left_out_is_filled_in(kube: Kube, namespace: str) -> None:
    made = await kube.create(JOBS.path(namespace), a_job(), dryRun="All")
    want = {
        "queue": "default",
        "priority": 0,
        "preemptible": True,
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
