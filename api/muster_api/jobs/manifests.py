"""What a caller submits: reading it, and what must hold beyond the schema of the CRD."""

from collections.abc import Mapping
from typing import Any, Final

import orjson
import yaml

from muster import wire
from muster.errors import Forbidden, InvalidSpec
from muster.parse import access_of, admissible, job_of, topology_of, unsupported
from muster.parse.job import TrainingJob
from muster.scheduling.snapshot import NODE_LEVEL
from muster_api.cluster import Cluster
from muster_api.errors import BadBody
from muster_kube import ApiNotFound

Json = dict[str, Any]

_KEPT: Final = ("name", "generateName", "labels", "annotations")
"""Metadata that a caller may set: we create with our own rights, and those may set more."""


def manifest_in(body: bytes, content_type: str) -> Json:
    """The object in a body of JSON or YAML (which any JSON is, too). Raises `BadBody`."""
    try:
        value = (
            orjson.loads(body)
            if content_type.partition(";")[0].strip() == "application/json"
            else yaml.safe_load(body)
        )
    except (orjson.JSONDecodeError, yaml.YAMLError, UnicodeDecodeError) as error:
        problem = " ".join(str(error).split())
        raise BadBody(f"the body is neither JSON nor YAML: {problem}") from error
    if not isinstance(value, dict):
        raise BadBody("the body must be one TrainingJob")
    return value


def namespace_of(manifest: Json, asked: str | None) -> str:
    """Where the job is to live. Raises `InvalidSpec` where the manifest and the query differ."""
    named = _metadata(manifest).get("namespace")
    if named is not None and not isinstance(named, str):
        raise InvalidSpec("metadata.namespace", "must be a text")
    if named and asked and named != asked:
        raise InvalidSpec(
            "metadata.namespace", f"is {named}, but the request asks for namespace {asked}"
        )
    return named or asked or "default"


def prepared(manifest: Json, namespace: str, user: str) -> Json:
    """The object that is sent to the API server for *user*: the kind, and no more than a caller
    may say."""
    if manifest.get("apiVersion") != wire.API_VERSION:
        raise InvalidSpec("apiVersion", f"must be {wire.API_VERSION}")
    if manifest.get("kind") != "TrainingJob":
        raise InvalidSpec("kind", "must be TrainingJob")
    for field in manifest:
        if field not in {"apiVersion", "kind", "metadata", "spec", "status"}:
            raise InvalidSpec(field, "is not a field of a TrainingJob")
    given = _metadata(manifest)
    metadata = {key: given[key] for key in _KEPT if given.get(key) is not None}
    annotations = metadata.get("annotations") or {}
    if not isinstance(annotations, Mapping):
        raise InvalidSpec("metadata.annotations", "must be an object")
    return {
        "apiVersion": wire.API_VERSION,
        "kind": "TrainingJob",
        "metadata": {
            **metadata,
            "namespace": namespace,
            "annotations": {**annotations, wire.ANNOTATION_USER: user},
        },
        "spec": manifest.get("spec"),
    }


async def check(obj: Json, cluster: Cluster) -> None:
    """Refuse a job that the CRD takes and Muster could never run.

    Raises `InvalidSpec` for an unknown queue or level and an unsupported template, `Forbidden` for
    a queue that does not take this job.
    """
    job = job_of(obj)
    await _check_queue(job, cluster)
    await _check_levels(job, cluster)
    # Whether there is a kube-scheduler is the operator's to know; it says so in the status.
    problem = unsupported(job.template, has_scheduler=True, gpus_per_replica=job.gpus_per_replica)
    if problem is not None:
        path, _, rest = problem.partition(": ")
        raise InvalidSpec(path, rest)


async def _check_queue(job: TrainingJob, cluster: Cluster) -> None:
    try:
        queue = await cluster.queue(job.queue)
    except ApiNotFound:
        known = ", ".join(sorted(q["metadata"]["name"] for q in await cluster.queues()))
        raise InvalidSpec(
            "spec.queue", f"there is no queue {job.queue}; there are: {known or 'none'}"
        ) from None
    refusal = admissible(access_of(queue), job.namespace, job.user)
    if refusal is not None:
        raise Forbidden(f"spec.queue: {refusal}")


async def _check_levels(job: TrainingJob, cluster: Cluster) -> None:
    asked = {
        "spec.topology.required": job.topology.required,
        "spec.topology.preferred": job.topology.preferred,
        "spec.topology.perPart.required": job.topology.part_required,
    }
    if not any(asked.values()):
        return
    try:
        levels = [level.name for level in topology_of(await cluster.topology())]
    except ApiNotFound:
        levels = []
    for path, level in asked.items():
        if level is not None and level not in (*levels, NODE_LEVEL):
            known = ", ".join((*levels, NODE_LEVEL))
            raise InvalidSpec(path, f"there is no level {level}; there are: {known}")


def _metadata(manifest: Json) -> Json:
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict):
        raise InvalidSpec("metadata", "must be an object with the job's name")
    return metadata
