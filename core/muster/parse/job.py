"""Training jobs, and the gangs that the scheduler sees in them."""

import re
from dataclasses import dataclass, replace
from typing import Final

from muster import wire
from muster.errors import InvalidSpec
from muster.parse.node import DEFAULT_TABLES, ON_DEMAND, SPOT, NodeTables
from muster.parse.pod import needs_of
from muster.parse.quantity import seconds_of
from muster.parse.raw import (
    Raw,
    at,
    flag,
    number,
    required_text,
    seconds_at,
    section,
    sections,
    text,
    texts,
)
from muster.parse.rules import rules_of
from muster.parse.template import SPEC_PATH
from muster.scheduling.snapshot import Gang, Needs, NodeRules, TopologyRequest

_NAME: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_URI: Final = re.compile(r"(/|[a-z][a-z0-9+.:-]*://).*", re.DOTALL)
_MOST: Final = 10_000
"""Bound of replicas and restarts, as in the CRD."""
_MOST_ON_A_NODE: Final = 1024
_MOST_PRIORITY: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Restarts:
    """How often the gang may be started again before the job fails, by what went wrong."""

    infrastructure: int = 10
    user: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingJob:
    """A job as it was asked for, checked and with its defaults."""

    namespace: str
    name: str
    uid: str
    generation: int
    queue: str
    priority: int
    preemptible: bool
    max_run_time: float | None
    """Declared limit of a run, in seconds."""
    after: str | None
    """Name of the job in the namespace that must have succeeded before."""
    suspend: bool
    replicas: int
    min_replicas: int
    gpus_per_replica: int
    processes_per_replica: int
    gpu_models: tuple[str, ...]
    """Allowed models by the names that nodes get; empty means any."""
    capacity_types: tuple[str, ...]
    topology: TopologyRequest
    checkpoint_uri: str | None
    restarts: Restarts
    ttl_seconds: int | None
    template: Raw
    """The pod template as it was written."""
    needs: Needs
    """What one replica takes, its GPUs included."""
    rules: NodeRules
    user: str
    """Who created it; empty where that is not recorded."""
    created: float
    """Seconds since the epoch."""
    is_deleted: bool

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.namespace}/{self.name}"

    @property
    def gpus(self) -> int:
        """GPUs of all replicas."""
        return self.replicas * self.gpus_per_replica


def job_of(obj: Raw, *, tables: NodeTables = DEFAULT_TABLES) -> TrainingJob:
    """The job in *obj*, with the defaults of the CRD where a field is left out.

    Raises `InvalidSpec` with the path and the way out for whatever the CRD would refuse, and for a
    template whose resources or node rules cannot be read.
    """
    metadata = section(obj, "metadata", "")
    spec = section(obj, "spec", "")
    replicas = number(spec, "replicas", "spec", least=1, most=_MOST, default=1) or 1
    gpus = number(spec, "gpusPerReplica", "spec", least=0, most=_MOST_ON_A_NODE) or 0
    models = _models(spec, tables)
    capacity_types = _capacity_types(spec)
    template = section(spec, "template", "spec")
    pod_spec = _pod_spec(template)
    return TrainingJob(
        namespace=text(metadata, "namespace", "metadata") or "default",
        name=_name(metadata),
        uid=text(metadata, "uid", "metadata") or "",
        generation=number(metadata, "generation", "metadata", least=0, most=2**63) or 0,
        queue=text(spec, "queue", "spec") or wire.DEFAULT_QUEUE,
        priority=number(spec, "priority", "spec", least=-_MOST_PRIORITY, most=_MOST_PRIORITY) or 0,
        preemptible=flag(spec, "preemptible", "spec", default=True),
        max_run_time=_max_run_time(spec),
        after=_after(spec, metadata),
        suspend=flag(spec, "suspend", "spec"),
        replicas=replicas,
        min_replicas=_min_replicas(spec, replicas),
        gpus_per_replica=gpus,
        processes_per_replica=number(
            spec, "processesPerReplica", "spec", least=1, most=_MOST_ON_A_NODE
        )
        or max(gpus, 1),
        gpu_models=models,
        capacity_types=capacity_types,
        topology=_topology(spec),
        checkpoint_uri=_checkpoint_uri(spec),
        restarts=_restarts(spec),
        ttl_seconds=number(spec, "ttlSecondsAfterFinished", "spec", least=0),
        template=template,
        needs=replace(
            needs_of(pod_spec, path=SPEC_PATH, gpu_resource=tables.gpu_resource), gpus=gpus
        ),
        rules=rules_of(pod_spec, path=SPEC_PATH, gpu_models=models, capacity_types=capacity_types),
        user=text(section(metadata, "annotations", "metadata"), wire.ANNOTATION_USER, "") or "",
        created=seconds_at(metadata, "creationTimestamp", "metadata") or 0.0,
        is_deleted=metadata.get("deletionTimestamp") is not None,
    )


def gang_of(job: TrainingJob, placement: tuple[str, ...] | None) -> Gang:
    """The job as the scheduler sees it: pending, or holding the nodes of *placement*."""
    return Gang(
        key=job.key,
        replicas=job.replicas,
        min_replicas=job.min_replicas,
        needs=job.needs,
        submitted=job.created,
        queue=job.queue,
        priority=job.priority,
        is_suspended=job.suspend,
        rules=job.rules,
        topology=job.topology,
        user=job.user,
        placement=placement,
        is_preemptible=job.preemptible,
        max_run_time=job.max_run_time,
    )


def _name(metadata: Raw) -> str:
    name = required_text(metadata, "name", "metadata")
    if len(name) > wire.JOB_NAME_MAX:
        raise InvalidSpec(
            "metadata.name",
            f"may have at most {wire.JOB_NAME_MAX} characters, has {len(name)}; "
            "choose a shorter name",
        )
    if not _NAME.fullmatch(name):
        raise InvalidSpec(
            "metadata.name",
            "must be a DNS label; use lower-case letters, digits and '-', starting with a letter",
        )
    return name


def _min_replicas(spec: Raw, replicas: int) -> int:
    least = number(spec, "minReplicas", "spec", least=1, most=_MOST, default=replicas) or replicas
    if least > replicas:
        raise InvalidSpec(
            "spec.minReplicas", f"must not be above spec.replicas ({replicas}), is {least}"
        )
    return least


def _max_run_time(spec: Raw) -> float | None:
    if spec.get("maxRunTime") is None:
        return None
    seconds = seconds_of(spec["maxRunTime"], "spec.maxRunTime")
    if not seconds:
        raise InvalidSpec("spec.maxRunTime", "must be above zero; leave it out for no limit")
    return float(seconds)


def _after(spec: Raw, metadata: Raw) -> str | None:
    name = text(spec, "after", "spec")
    if name is not None and name == metadata.get("name"):
        raise InvalidSpec("spec.after", "must name another job")
    return name


def _models(spec: Raw, tables: NodeTables) -> tuple[str, ...]:
    models = [tables.model_of(value) or value for value in texts(spec, "gpuModels", "spec")]
    return tuple(dict.fromkeys(models))


def _capacity_types(spec: Raw) -> tuple[str, ...]:
    types = texts(spec, "capacityTypes", "spec")
    for index, value in enumerate(types):
        if value not in (SPOT, ON_DEMAND):
            raise InvalidSpec(
                at("spec.capacityTypes", index), f"must be {SPOT} or {ON_DEMAND}, is {value!r}"
            )
    return tuple(dict.fromkeys(types))


def _topology(spec: Raw) -> TopologyRequest:
    path = "spec.topology"
    asked = section(spec, "topology", "spec")
    part = section(asked, "perPart", path)
    part_path = at(path, "perPart")
    if asked.get("perPart") is not None:
        required_text(part, "required", part_path)
        if part.get("size") is None:
            raise InvalidSpec(at(part_path, "size"), "is missing")
    return TopologyRequest(
        required=text(asked, "required", path),
        preferred=text(asked, "preferred", path),
        part_size=number(part, "size", part_path, least=1, most=_MOST),
        part_required=text(part, "required", part_path),
    )


def _checkpoint_uri(spec: Raw) -> str | None:
    if spec.get("checkpoint") is None:
        return None
    uri = required_text(section(spec, "checkpoint", "spec"), "uri", "spec.checkpoint")
    if not _URI.fullmatch(uri):
        raise InvalidSpec(
            "spec.checkpoint.uri", "must be an absolute path or a URI such as s3://bucket/folder"
        )
    trimmed = uri.rstrip("/")
    return uri if trimmed.endswith(":") or not trimmed else trimmed


def _restarts(spec: Raw) -> Restarts:
    asked, path, default = section(spec, "restarts", "spec"), "spec.restarts", Restarts()
    infrastructure = number(asked, "infrastructure", path, least=0, most=_MOST)
    user = number(asked, "user", path, least=0, most=_MOST)
    return Restarts(
        infrastructure=default.infrastructure if infrastructure is None else infrastructure,
        user=default.user if user is None else user,
    )


def _pod_spec(template: Raw) -> Raw:
    if not template:
        raise InvalidSpec("spec.template", "is missing; it is the pod of each replica")
    pod_spec = section(template, "spec", "spec.template")
    containers = sections(pod_spec, "containers", SPEC_PATH)
    if not containers:
        raise InvalidSpec(
            f"{SPEC_PATH}.containers", "must hold at least one container; add the one that trains"
        )
    for index, container in enumerate(containers):
        required_text(container, "name", at(f"{SPEC_PATH}.containers", index))
    return pod_spec
