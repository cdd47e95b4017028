from typing import Any

import pytest

from muster.errors import InvalidSpec
from muster.parse import Restarts, gang_of, job_of
from muster.scheduling.snapshot import Gang, Needs, NodeRules, Toleration, TopologyRequest

TEMPLATE = {"spec": {"containers": [{"name": "train"}]}}


def a_job(metadata: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "team", "name": "digits", **(metadata or {})},
        "spec": {"template": TEMPLATE, **spec},
    }


def test_what_is_left_out_has_the_defaults_of_the_crd() -> None:
    job = job_of(a_job())
    want = {
        "namespace": "team",
        "name": "digits",
        "uid": "",
        "generation": 0,
        "queue": "default",
        "priority": 0,
        "preemptible": True,
        "max_run_time": None,
        "after": None,
        "suspend": False,
        "replicas": 1,
        "min_replicas": 1,
        "gpus_per_replica": 0,
        "processes_per_replica": 1,
        "gpu_models": (),
        "capacity_types": (),
        "topology": TopologyRequest(),
        "checkpoint_uri": None,
        "restarts": Restarts(infrastructure=10, user=3),
        "ttl_seconds": None,
        "template": TEMPLATE,
        "needs": Needs(),
        "rules": NodeRules(),
        "user": "",
        "created": 0.0,
        "is_deleted": False,
    }
    assert want == {name: getattr(job, name) for name in want}


WHOLE = {
    "metadata": {
        "namespace": "team",
        "name": "digits",
        "uid": "u-1",
        "generation": 4,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "deletionTimestamp": "2026-01-02T00:00:00Z",
        "annotations": {"muster.dev/user": "jane"},
    },
    "spec": {
        "queue": "vision",
        "priority": -5,
        "preemptible": False,
        "maxRunTime": "1h30m",
        "after": "warm-up",
        "suspend": True,
        "replicas": 4,
        "minReplicas": 2,
        "gpusPerReplica": 8,
        "gpuModels": ["h100", "NVIDIA-H100-80GB-HBM3", "A100"],
        "capacityTypes": ["spot", "on-demand"],
        "topology": {
            "required": "block",
            "preferred": "rack",
            "perPart": {"size": 2, "required": "rack"},
        },
        "checkpoint": {"uri": "s3://bucket/digits/"},
        "restarts": {"infrastructure": 0, "user": 1},
        "ttlSecondsAfterFinished": 0,
        "template": {
            "spec": {
                "containers": [
                    {"name": "train", "resources": {"limits": {"cpu": "2", "memory": "4Gi"}}}
                ],
                "nodeSelector": {"zone": "b"},
                "tolerations": [{"operator": "Exists"}],
            }
        },
    },
}


def test_a_job_is_read_whole() -> None:
    job = job_of(WHOLE)
    want = {
        "key": "team/digits",
        "uid": "u-1",
        "generation": 4,
        "queue": "vision",
        "priority": -5,
        "preemptible": False,
        "max_run_time": 5400.0,
        "after": "warm-up",
        "suspend": True,
        "replicas": 4,
        "min_replicas": 2,
        "gpus_per_replica": 8,
        "gpus": 32,
        "processes_per_replica": 8,
        "gpu_models": ("H100", "A100"),
        "capacity_types": ("spot", "on-demand"),
        "topology": TopologyRequest("block", "rack", 2, "rack"),
        "checkpoint_uri": "s3://bucket/digits",
        "restarts": Restarts(infrastructure=0, user=1),
        "ttl_seconds": 0,
        "needs": Needs(8, 2000, 4 * 2**30),
        "user": "jane",
        "created": 1_767_225_600.0,
        "is_deleted": True,
    }
    assert want == {name: getattr(job, name) for name in want}


@pytest.mark.parametrize("placement", [None, ("n1", "n1", "n2", "n2")])
def test_the_scheduler_sees_a_gang(placement: tuple[str, ...] | None) -> None:
    want = Gang(
        key="team/digits",
        replicas=4,
        min_replicas=2,
        needs=Needs(8, 2000, 4 * 2**30),
        submitted=1_767_225_600.0,
        queue="vision",
        priority=-5,
        is_suspended=True,
        rules=NodeRules(
            selector=(("zone", "b"),),
            tolerations=(Toleration(operator="Exists"),),
            gpu_models=("H100", "A100"),
            capacity_types=("spot", "on-demand"),
        ),
        topology=TopologyRequest("block", "rack", 2, "rack"),
        user="jane",
        placement=placement,
        is_preemptible=False,
        max_run_time=5400.0,
    )
    assert want == gang_of(job_of(WHOLE), placement)


def test_the_gpus_of_a_template_are_those_of_the_job() -> None:
    limits = {"nvidia.com/gpu": 4}
    template = {"spec": {"containers": [{"name": "t", "resources": {"limits": limits}}]}}
    assert 4 == job_of(a_job(gpusPerReplica=4, template=template)).needs.gpus


@pytest.mark.parametrize("uri", ["/checkpoints", "/", "s3://b/x", "file:///", "memory://x"])
def test_checkpoints_go_to_a_uri_or_an_absolute_path(uri: str) -> None:
    assert uri == job_of(a_job(checkpoint={"uri": uri})).checkpoint_uri


BAD_JOBS = {
    "no replicas": (a_job(replicas=0), "spec.replicas: must be at least 1, is 0"),
    "too many replicas": (
        a_job(replicas=10_001),
        "spec.replicas: must be at most 10000, is 10001",
    ),
    "replicas in words": (
        a_job(replicas="two"),
        "spec.replicas: must be a whole number, is 'two'",
    ),
    "half a replica": (a_job(replicas=1.5), "spec.replicas: must be a whole number, is 1.5"),
    "negative GPUs": (
        a_job(gpusPerReplica=-1),
        "spec.gpusPerReplica: must be at least 0, is -1",
    ),
    "no processes": (
        a_job(processesPerReplica=0),
        "spec.processesPerReplica: must be at least 1, is 0",
    ),
    "more minReplicas than replicas": (
        a_job(replicas=2, minReplicas=3),
        "spec.minReplicas: must not be above spec.replicas (2), is 3",
    ),
    "a name of 41 characters": (
        a_job({"name": "n" * 41}),
        "metadata.name: may have at most 40 characters, has 41; choose a shorter name",
    ),
    "a name that is no DNS label": (
        a_job({"name": "Digits"}),
        "metadata.name: must be a DNS label; use lower-case letters, digits and '-', starting "
        "with a letter",
    ),
    "a name with a line break": (a_job({"name": "a\n"}), "metadata.name: must be a DNS label"),
    "no name": (a_job({"name": None}), "metadata.name: is missing"),
    "no template": (a_job(template=None), "spec.template: is missing"),
    "a template that is no mapping": (
        a_job(template="pod"),
        "spec.template: must be a mapping, is 'pod'",
    ),
    "no containers": (
        a_job(template={"spec": {}}),
        "spec.template.spec.containers: must hold at least one container",
    ),
    "an empty list of containers": (
        a_job(template={"spec": {"containers": []}}),
        "spec.template.spec.containers: must hold at least one container",
    ),
    "a template without a spec": (
        a_job(template={"metadata": {}}),
        "spec.template.spec.containers: must hold at least one container",
    ),
    "a container without a name": (
        a_job(template={"spec": {"containers": [{"name": "a"}, {"image": "x"}]}}),
        "spec.template.spec.containers[1].name: is missing",
    ),
    "an unknown kind of capacity": (
        a_job(capacityTypes=["spot", "cheap"]),
        "spec.capacityTypes[1]: must be spot or on-demand, is 'cheap'",
    ),
    "models that are no list": (
        a_job(gpuModels="H100"),
        "spec.gpuModels: must be a list, is 'H100'",
    ),
    "an empty model": (a_job(gpuModels=[""]), "spec.gpuModels[0]: must be a string, is ''"),
    "a part without a level": (
        a_job(topology={"perPart": {"size": 2}}),
        "spec.topology.perPart.required: is missing",
    ),
    "a part without a size": (
        a_job(topology={"perPart": {"required": "rack"}}),
        "spec.topology.perPart.size: is missing",
    ),
    "a part of nothing": (
        a_job(topology={"perPart": {"size": 0, "required": "rack"}}),
        "spec.topology.perPart.size: must be at least 1, is 0",
    ),
    "checkpoints that go nowhere": (
        a_job(checkpoint={}),
        "spec.checkpoint.uri: is missing",
    ),
    "checkpoints in a folder of wherever": (
        a_job(checkpoint={"uri": "checkpoints"}),
        "spec.checkpoint.uri: must be an absolute path or a URI such as s3://bucket/folder",
    ),
    "a negative number of restarts": (
        a_job(restarts={"user": -1}),
        "spec.restarts.user: must be at least 0, is -1",
    ),
    "a job after itself": (a_job(after="digits"), "spec.after: must name another job"),
    "a run of no time": (a_job(maxRunTime="0s"), "spec.maxRunTime: must be above zero"),
    "a limit of a run in words": (
        a_job(maxRunTime="long"),
        "spec.maxRunTime: 'long' is no duration; write it as 1h30m, 90s or 500ms",
    ),
    "a suspension in words": (a_job(suspend="yes"), "spec.suspend: must be true or false"),
    "a moment that is none": (
        a_job({"creationTimestamp": "yesterday"}),
        "metadata.creationTimestamp: 'yesterday' is no time; write it as 2026-01-31T08:00:00Z",
    ),
    "a resource that cannot be read": (
        a_job(
            template={
                "spec": {"containers": [{"name": "t", "resources": {"requests": {"cpu": "lots"}}}]}
            }
        ),
        "spec.template.spec.containers[0].resources.requests.cpu: 'lots' is no quantity",
    ),
    "a toleration that cannot be read": (
        a_job(template={"spec": {"containers": [{"name": "t"}], "tolerations": [{}]}}),
        "spec.template.spec.tolerations[0].operator: must be Exists where there is no key",
    ),
    "a spec that is no mapping": (
        {"metadata": {"name": "a"}, "spec": ["replicas"]},
        "spec: must be a mapping, is a list",
    ),
}


@pytest.mark.parametrize("claim", BAD_JOBS)
def test_a_bad_job_is_refused_with_the_path_of_the_field(claim: str) -> None:
    obj, want = BAD_JOBS[claim]
    with pytest.raises(InvalidSpec) as refused:
        job_of(obj)
    assert str(refused.value).startswith(want)


def test_a_moment_without_a_zone_is_utc() -> None:
    assert 1_767_225_600.0 == job_of(a_job({"creationTimestamp": "2026-01-01T00:00:00"})).created
