"""What the API server itself refuses, by our CRDs alone, and what it says."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from clusters import RunningCluster
from custom_objects import a_job, a_template, an_object
from eventually import eventually
from muster_kube import JOBS, QUEUES, TOPOLOGIES, Invalid, Kube, Resource

pytestmark = pytest.mark.integration

LIMIT = (
    "spec.limit: must be a number of GPUs, at least 0, or a map from GPU model to such a number"
)

GUARANTEE = (
    "spec.guaranteed: must be a number of GPUs, at least 0, or a map from GPU model to such a "
    "number"
)


@pytest.fixture
async def kube(cluster: RunningCluster) -> AsyncIterator[Kube]:
    async with await Kube.connect(cluster.kubeconfig) as client:
        yield client


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
    "a run of no time": (
        a_job(maxRunTime="0s"),
        'spec.maxRunTime: Invalid value: "0s": must be a duration above zero, such as 90s',
    ),
    "a job after itself": (a_job(after="job"), "spec.after: Invalid value: must name another job"),
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
    "a guarantee in words": ({"guaranteed": "8"}, GUARANTEE),
    "a negative guarantee of a model": ({"guaranteed": {"H100": -1}}, GUARANTEE),
    "a negative weight": (
        {"weight": -1},
        "spec.weight in body should be greater than or equal to 0",
    ),
    "an unknown order": (
        {"order": "lifo"},
        'spec.order: Unsupported value: "lifo": supported values: "fifo"',
    ),
    "a time in words": (
        {"minRunTimeBeforePreemption": "soon"},
        'spec.minRunTimeBeforePreemption: Invalid value: "soon": must be a duration, such as 90s',
    ),
    "an unknown tie-break": (
        {"tieBreak": ["price"]},
        'spec.tieBreak[0]: Unsupported value: "price": supported values: "health", "spot"',
    ),
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
