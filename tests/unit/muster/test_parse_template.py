from typing import Any

import pytest

from muster.parse import needs_kube_scheduler, unsupported

TRAIN = {"name": "train"}


def a_template(**spec: Any) -> dict[str, Any]:
    return {"spec": {"containers": [TRAIN], **spec}}


def affinity(kind: str, strength: str = "required") -> dict[str, Any]:
    term = {"topologyKey": "zone"}
    return a_template(
        affinity={kind: {f"{strength}DuringSchedulingIgnoredDuringExecution": [term]}}
    )


def asking(**requests: Any) -> dict[str, Any]:
    container = {"name": "train", "resources": {"requests": requests}}
    return {"spec": {"containers": [container]}}


FEATURES = {
    "a plain template": (a_template(), ()),
    "node selector, node affinity and tolerations": (
        a_template(
            nodeSelector={"zone": "b"},
            tolerations=[{"operator": "Exists"}],
            affinity={
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}
                }
            },
        ),
        (),
    ),
    "GPUs, CPU and memory": (asking(cpu=1, memory="1Gi", **{"nvidia.com/gpu": 8}), ()),
    "volumes that are on every node": (
        a_template(
            volumes=[
                {"name": "a", "emptyDir": {}},
                {"name": "b", "hostPath": {"path": "/"}},
                {"name": "c", "configMap": {"name": "c"}},
                {"name": "d", "projected": {}},
            ]
        ),
        (),
    ),
    "a port of the pod": (a_template(containers=[{"ports": [{"containerPort": 80}]}]), ()),
    "the host network without a port": (a_template(hostNetwork=True), ()),
    "a preference for other pods binds nothing": (affinity("podAffinity", "preferred"), ()),
    "a wish to be spread binds nothing": (
        a_template(topologySpreadConstraints=[{"whenUnsatisfiable": "ScheduleAnyway"}]),
        (),
    ),
    "pod affinity": (affinity("podAffinity"), ("podAffinity",)),
    "pod anti-affinity": (affinity("podAntiAffinity"), ("podAntiAffinity",)),
    "spread": (
        a_template(topologySpreadConstraints=[{"whenUnsatisfiable": "DoNotSchedule"}]),
        ("topologySpreadConstraints",),
    ),
    "a host port": (a_template(containers=[{"ports": [{"hostPort": 80}]}]), ("hostPort",)),
    "a host port of an init container": (
        a_template(initContainers=[{"ports": [{"hostPort": 80}]}]),
        ("hostPort",),
    ),
    "a port on the host network": (
        a_template(hostNetwork=True, containers=[{"ports": [{"containerPort": 80}]}]),
        ("hostPort",),
    ),
    "a claimed volume": (
        a_template(volumes=[{"name": "a", "persistentVolumeClaim": {"claimName": "c"}}]),
        ("persistentVolumeClaim",),
    ),
    "a volume made for the pod": (
        a_template(volumes=[{"name": "a", "ephemeral": {}}]),
        ("ephemeral",),
    ),
    "claimed devices": (
        a_template(
            resourceClaims=[{"name": "g"}],
            containers=[{"resources": {"claims": [{"name": "g"}]}}],
        ),
        ("resourceClaims",),
    ),
    "a runtime class": (a_template(runtimeClassName="gvisor"), ("runtimeClassName",)),
    "a gate": (a_template(schedulingGates=[{"name": "g"}]), ("schedulingGates",)),
    "resources that the core does not count": (
        asking(**{"ephemeral-storage": "1Gi", "rdma/ib": 1}),
        ("ephemeral-storage", "rdma/ib"),
    ),
    "huge pages of the whole pod": (
        a_template(resources={"limits": {"hugepages-2Mi": "4Mi"}}),
        ("hugepages-2Mi",),
    ),
}


@pytest.mark.parametrize("claim", FEATURES)
def test_what_only_kube_scheduler_checks_is_named(claim: str) -> None:
    template, want = FEATURES[claim]
    assert want == needs_kube_scheduler(template)


@pytest.mark.parametrize("claim", FEATURES)
def test_a_template_runs_directly_or_pinned_with_a_scheduler(claim: str) -> None:
    template, features = FEATURES[claim]
    assert unsupported(template, has_scheduler=True) is None
    without = unsupported(template, has_scheduler=False)
    if features:
        want = f"spec.template.spec: {', '.join(features)} would have to be checked by kube-sch"
        assert without is not None
        assert without.startswith(want)
    else:
        assert without is None


REFUSED = {
    "nodeName": (
        a_template(nodeName="n1"),
        "spec.template.spec.nodeName: must not be set, because Muster chooses the node",
    ),
    "schedulerName": (
        a_template(schedulerName="default-scheduler"),
        "spec.template.spec.schedulerName: must not be set, because Muster places the whole gang",
    ),
    "no containers": (
        {"spec": {}},
        "spec.template.spec.containers: must hold at least one container",
    ),
}


@pytest.mark.parametrize("claim", REFUSED)
def test_some_templates_are_never_run(claim: str) -> None:
    template, want = REFUSED[claim]
    said = unsupported(template, has_scheduler=True)
    assert said is not None
    assert said.startswith(want)


def gpus(count: int, **more: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"limits": {"nvidia.com/gpu": count}}, **more}


WITH_GPUS = {
    "none named": (a_template(), None),
    "the same named": (a_template(containers=[gpus(4), TRAIN]), None),
    "an init container that uses them first": (a_template(initContainers=[gpus(4)]), None),
    "others named": (
        a_template(containers=[gpus(2)]),
        "spec.template.spec.containers[0].resources: asks for 2 nvidia.com/gpu, and "
        "spec.gpusPerReplica for 4; remove it here",
    ),
    "a second container with GPUs": (
        a_template(containers=[TRAIN, gpus(1)]),
        "spec.template.spec: its containers ask for 5 nvidia.com/gpu together, and "
        "spec.gpusPerReplica for 4; only the first container may have GPUs",
    ),
    "an init container with more": (
        a_template(initContainers=[gpus(8)]),
        "spec.template.spec: its containers ask for 8 nvidia.com/gpu together, and "
        "spec.gpusPerReplica for 4; only the first container may have GPUs",
    ),
    "a sidecar with GPUs": (
        a_template(initContainers=[gpus(1, restartPolicy="Always")]),
        "spec.template.spec: its containers ask for 5 nvidia.com/gpu together, and "
        "spec.gpusPerReplica for 4; only the first container may have GPUs",
    ),
}


@pytest.mark.parametrize("claim", WITH_GPUS)
def test_a_template_may_not_ask_for_other_gpus_than_the_job(claim: str) -> None:
    template, want = WITH_GPUS[claim]
    assert want == unsupported(template, has_scheduler=True, gpus_per_replica=4)
