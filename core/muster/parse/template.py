"""Whether Muster can run a pod template, and whether it needs kube-scheduler for it.

A pod that asks for no more than GPUs, CPU and memory, a node selector, required node affinity and
tolerations is put on its node directly, since the core checks all of that itself. Whatever else
binds a pod to nodes is checked by kube-scheduler, on the one node that Muster has chosen. Mere
preferences bind nothing: the placement of the gang goes before them.
"""

from collections.abc import Iterator
from typing import Final

from muster import wire
from muster.parse.pod import needs_of
from muster.parse.raw import Raw, at, section, sections

SPEC_PATH: Final = "spec.template.spec"

_ACCOUNTED: Final = frozenset({"cpu", "memory"})
_BOUND_VOLUMES: Final = (
    "persistentVolumeClaim",
    "ephemeral",
    "csi",
    "awsElasticBlockStore",
    "azureDisk",
    "gcePersistentDisk",
    "iscsi",
    "rbd",
)
_BINDING_FIELDS: Final = (
    "runtimeClassName",
    "resourceClaims",
    "schedulingGates",
    "schedulingGroup",
)


def unsupported(
    template: Raw,
    *,
    has_scheduler: bool,
    gpus_per_replica: int | None = None,
    gpu_resource: str = wire.GPU_RESOURCE,
) -> str | None:
    """Why the template cannot be run (the reason `UnsupportedTemplate`), `None` where it can.

    With *gpus_per_replica*, GPUs that the template itself asks for must agree with it. Raises
    `InvalidSpec` for a template that is not even well formed.
    """
    spec = section(template, "spec", "spec.template")
    if not sections(spec, "containers", SPEC_PATH):
        return f"{SPEC_PATH}.containers: must hold at least one container"
    for key, way_out in (
        ("nodeName", "Muster chooses the node; use nodeSelector, affinity or spec.topology"),
        ("schedulerName", "Muster places the whole gang; remove it"),
    ):
        if spec.get(key):
            return f"{SPEC_PATH}.{key}: must not be set, because {way_out}"
    if gpus_per_replica is not None and (
        clash := _gpus_that_differ(spec, gpus_per_replica, gpu_resource)
    ):
        return clash
    if not has_scheduler and (features := needs_kube_scheduler(template, gpu_resource)):
        return (
            f"{SPEC_PATH}: {', '.join(features)} would have to be checked by kube-scheduler, "
            "which this cluster's Muster runs without"
        )
    return None


def needs_kube_scheduler(template: Raw, gpu_resource: str = wire.GPU_RESOURCE) -> tuple[str, ...]:
    """The features of the template that only kube-scheduler checks: field names, sorted."""
    spec = section(template, "spec", "spec.template")
    return tuple(sorted({*_pod_features(spec), *_container_features(spec, gpu_resource)}))


def _pod_features(spec: Raw) -> Iterator[str]:
    affinity = section(spec, "affinity", SPEC_PATH)
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = section(affinity, kind, at(SPEC_PATH, "affinity"))
        if terms.get("requiredDuringSchedulingIgnoredDuringExecution"):
            yield kind
    for constraint in sections(spec, "topologySpreadConstraints", SPEC_PATH):
        if constraint.get("whenUnsatisfiable") != "ScheduleAnyway":
            yield "topologySpreadConstraints"
    for volume in sections(spec, "volumes", SPEC_PATH):
        yield from (kind for kind in _BOUND_VOLUMES if volume.get(kind) is not None)
    yield from (key for key in _BINDING_FIELDS if spec.get(key))


def _container_features(spec: Raw, gpu_resource: str) -> Iterator[str]:
    is_on_host_network = bool(spec.get("hostNetwork"))
    asking = [spec]
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(sections(spec, kind, SPEC_PATH)):
            asking.append(container)
            ports = sections(container, "ports", at(at(SPEC_PATH, kind), index))
            if any(port.get("hostPort") or is_on_host_network for port in ports):
                yield "hostPort"
    for owner in asking:
        resources = section(owner, "resources", SPEC_PATH)
        for kind in ("requests", "limits"):
            asked = section(resources, kind, at(SPEC_PATH, "resources"))
            yield from (key for key in asked if key not in _ACCOUNTED and key != gpu_resource)
        if resources.get("claims"):
            yield "resourceClaims"


def _gpus_that_differ(spec: Raw, gpus_per_replica: int, gpu_resource: str) -> str | None:
    """What is wrong with GPUs that the template asks for itself; the first container gets ours."""
    first, *others = sections(spec, "containers", SPEC_PATH)
    named = needs_of({"containers": [first]}, path=SPEC_PATH, gpu_resource=gpu_resource).gpus
    if named not in (0, gpus_per_replica):
        return (
            f"{SPEC_PATH}.containers[0].resources: asks for {named} {gpu_resource}, and "
            f"spec.gpusPerReplica for {gpus_per_replica}; remove it here"
        )
    beside = {
        "containers": [
            {**first, "resources": {"requests": {gpu_resource: gpus_per_replica}}},
            *others,
        ],
        "initContainers": spec.get("initContainers"),
    }
    total = needs_of(beside, path=SPEC_PATH, gpu_resource=gpu_resource).gpus
    if total != gpus_per_replica:
        return (
            f"{SPEC_PATH}: its containers ask for {total} {gpu_resource} together, and "
            f"spec.gpusPerReplica for {gpus_per_replica}; only the first container may have GPUs"
        )
    return None
