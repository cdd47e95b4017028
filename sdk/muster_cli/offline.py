"""Answers without a cluster: from a file that `muster snapshot` wrote, by the same core."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from muster.errors import InvalidSpec, NotFound

Json = dict[str, Any]

Snapshot = Annotated[
    str | None,
    typer.Option(
        "--snapshot",
        help="Answer from this file of `muster snapshot`, not from the cluster; - is stdin.",
    ),
]


def read(file: str) -> bytes:
    """The content of *file*, or of standard input for `-`. Raises `NotFound`."""
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise NotFound(f"{file}: {error.strerror or error}") from error


def explain(file: str, namespace: str, name: str) -> Json:
    """As `Api.explain`."""
    from muster.whatif.explanation import explained  # noqa: PLC0415 -- numpy is slow to import
    from muster.whatif.views import explanation_view  # noqa: PLC0415

    inputs = _inputs(file)
    found = explained(inputs.objects, inputs.policy, inputs.now, f"{namespace}/{name}")
    if found is None:
        raise NotFound(f"{file}: there is no job {namespace}/{name} in this snapshot")
    about = {"job": name, "namespace": namespace, "source": "snapshot"}
    return {**about, **explanation_view(found)}


def dry_run(file: str, manifest: Json, namespace: str) -> Json:
    """As `Api.dry_run`, without prices, and without the checks of the API server."""
    from dataclasses import replace  # noqa: PLC0415

    from muster.parse import gang_of, job_of  # noqa: PLC0415
    from muster.whatif.dry_run import dry_run as tried  # noqa: PLC0415
    from muster.whatif.views import dry_run_view  # noqa: PLC0415

    inputs = _inputs(file)
    metadata = {**manifest["metadata"], "namespace": namespace}
    if not metadata.get("name"):
        metadata["name"] = f"{metadata.get('generateName')}new"
    job = job_of({**manifest, "metadata": metadata})
    gang = replace(gang_of(job, None), submitted=inputs.now)
    if job.after is not None:
        gang = replace(gang, held_back=f"comes after {job.after}")
    found = tried(inputs.objects, inputs.policy, inputs.now, gang)
    view = dry_run_view(found, inputs.objects, None, inputs.now)
    return {"job": job.name, "namespace": namespace, **view}


def queues(file: str) -> Json:
    """As `Api.queues`."""
    from muster.scheduling.cluster import Cluster  # noqa: PLC0415
    from muster.whatif.views import queues_view  # noqa: PLC0415

    inputs = _inputs(file)
    snapshot = Cluster.restored(inputs.objects).snapshot()
    return queues_view(snapshot, inputs.policy, inputs.now)


def nodes(file: str) -> Json:
    """As `Api.nodes`."""
    from muster.scheduling.cluster import Cluster  # noqa: PLC0415
    from muster.whatif.views import nodes_view  # noqa: PLC0415

    inputs = _inputs(file)
    return nodes_view(Cluster.restored(inputs.objects).snapshot(), inputs.objects)


def _inputs(file: str) -> Any:
    from muster.scheduling.archive import loads  # noqa: PLC0415

    try:
        return loads(read(file))
    except InvalidSpec as error:
        raise located(file, error) from error


def located(file: str, error: InvalidSpec) -> InvalidSpec:
    """The error with the file that it is about."""
    where = "standard input" if file == "-" else file
    return InvalidSpec(f"{where}: {error.path}" if error.path else where, error.problem)
