"""Reading Kubernetes objects into rows: pure functions, used by the API and by the recorder.

What is missing or odd in an object becomes an absent value; history must not stop at one object
that somebody broke.
"""

from collections.abc import Mapping
from typing import Any, Final

import yaml

from muster import wire
from muster.cost import PriceRow
from muster.errors import InvalidSpec
from muster.parse.node import DEFAULT_TABLES, ON_DEMAND
from muster.times import ms_of
from muster_db.records import AttemptFacts, JobFacts, NodeFacts, PlacedReplica, SeenPod

Json = Mapping[str, Any]

_OVER: Final = frozenset({"Succeeded", "Failed"})
_PENDING: Final = "Pending"
_MESSAGE: Final = 4096
_SECOND_MS: Final = 999
"""Kubelets and conditions tell whole seconds, rounded down; so it was by the second's end."""


def job_facts(obj: Json) -> JobFacts:
    """The row of a TrainingJob."""
    metadata, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
    labels = metadata.get("labels") or {}
    return JobFacts(
        uid=metadata["uid"],
        namespace=metadata["namespace"],
        name=metadata["name"],
        queue=spec.get("queue") or wire.DEFAULT_QUEUE,
        user_name=_short((metadata.get("annotations") or {}).get(wire.ANNOTATION_USER), 512),
        team=labels.get(wire.LABEL_TEAM),
        experiment=labels.get(wire.LABEL_EXPERIMENT),
        priority=spec.get("priority") or 0,
        replicas=spec.get("replicas") or 1,
        gpus_per_replica=spec.get("gpusPerReplica") or 0,
        generation=metadata.get("generation") or 0,
        phase=status.get("phase") or _PENDING,
        reason=_short(status.get("reason"), 128) or "",
        message=_short(status.get("message"), _MESSAGE) or "",
        attempt=status.get("attempt") or 0,
        submitted_ms=_ms(metadata.get("creationTimestamp")) or 0,
        started_ms=_ms(status.get("startedAt")),
        finished_ms=_ms(status.get("finishedAt")),
        deleting_ms=_ms(metadata.get("deletionTimestamp")),
        is_held=wire.RECORDER_FINALIZER in (metadata.get("finalizers") or ()),
        status=status,
    )


def attempts_of(obj: Json) -> list[AttemptFacts]:
    """The attempts in a TrainingJob's status, with the one that was only just decided."""
    metadata, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
    found: dict[int, Json] = {}
    for raw in (status.get("placement") or {}, *(status.get("attempts") or ())):
        if raw.get("attempt"):
            # The entry among the attempts says more than the placement, and comes after it.
            found[raw["attempt"]] = raw
    gpus_each = spec.get("gpusPerReplica") or 0
    return [
        _attempt(metadata["uid"], number, raw, gpus_each)
        for number, raw in sorted(found.items())
        if _ms(raw.get("decidedAt")) is not None
    ]


def placed_of(obj: Json) -> list[PlacedReplica]:
    """What the replicas of each attempt in a TrainingJob's status hold or held."""
    gpus_each = (obj.get("spec") or {}).get("gpusPerReplica") or 0
    placement = (obj.get("status") or {}).get("placement") or {}
    return [
        PlacedReplica(
            job_uid=each.job_uid,
            attempt=each.attempt,
            replica=replica,
            node=node,
            gpus=gpus_each,
            start_ms=_held_since(placement, each, replica),
        )
        for each in attempts_of(obj)
        for replica, node in enumerate(each.nodes)
    ]


def _held_since(placement: Json, attempt: AttemptFacts, replica: int) -> int:
    """Since when an attempt holds what a replica has: an elastic one may have got it later."""
    grown = placement.get("grown") or () if placement.get("attempt") == attempt.attempt else ()
    times = [_ms(each.get("at")) for each in grown if (each.get("first") or 0) <= replica]
    return max([attempt.decided_ms, *(time for time in times if time is not None)])


def seen_pod(pod: Json, *, gone_ms: int | None = None) -> SeenPod | None:
    """The replica that *pod* is, None where it is no job's.

    *gone_ms* is when its object was seen to be gone; a pod that was to be gone earlier was.
    """
    metadata = pod["metadata"]
    labels = metadata.get("labels") or {}
    owner = owner_of(pod)
    attempt, replica = (
        _whole(labels.get(label)) for label in (wire.LABEL_ATTEMPT, wire.LABEL_REPLICA)
    )
    if owner is None or attempt is None or replica is None:
        return None
    return SeenPod(
        job_uid=owner,
        attempt=attempt,
        replica=replica,
        incarnation=_whole(str(metadata["name"]).rpartition("-")[2]) or 0,
        pod_uid=metadata["uid"],
        pod_ended_ms=_pod_end(pod, gone_ms),
    )


def owner_of(pod: Json) -> str | None:
    """The uid of the TrainingJob that controls *pod*."""
    for reference in pod["metadata"].get("ownerReferences") or ():
        if (
            reference.get("controller")
            and reference.get("kind") == "TrainingJob"
            and str(reference.get("apiVersion")).startswith(f"{wire.GROUP}/")
        ):
            return str(reference["uid"])
    return None


def node_facts(node: Json) -> NodeFacts:
    """What money needs to know of a node. One that says nothing of its kind is no spot node."""
    labels = node["metadata"].get("labels") or {}
    return NodeFacts(
        name=node["metadata"]["name"],
        gpu_model=DEFAULT_TABLES.model_by(labels),
        capacity_type=DEFAULT_TABLES.capacity_type_by(labels) or ON_DEMAND,
        is_simulated=labels.get(wire.LABEL_SIMULATED) == "true",
    )


def price_rows(text: str) -> list[PriceRow]:
    """The rows of a price list. Raises `InvalidSpec` with the row and field that is wrong."""
    try:
        listed = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InvalidSpec("prices.yaml", f"is not YAML: {error}") from error
    if not isinstance(listed, list):
        raise InvalidSpec("prices.yaml", "must be a list of rows")
    rows: dict[tuple[str, str, int], PriceRow] = {}
    for index, raw in enumerate(listed):
        row = _price_row(raw, f"prices.yaml[{index}]")
        key = (row.gpu_model, row.capacity_type, row.from_ms)
        if key in rows:
            raise InvalidSpec(f"prices.yaml[{index}]", "says again what an earlier row says")
        rows[key] = row
    return sorted(rows.values())


def _price_row(raw: object, path: str) -> PriceRow:
    if not isinstance(raw, Mapping):
        raise InvalidSpec(
            path, "must be a row of gpuModel, capacityType, microUsdPerGpuHour, from"
        )
    for name in ("gpuModel", "capacityType"):
        if not isinstance(raw.get(name), str) or not raw[name]:
            raise InvalidSpec(f"{path}.{name}", "must be a text")
    price = raw.get("microUsdPerGpuHour")
    if isinstance(price, bool) or not isinstance(price, int) or price < 0:
        raise InvalidSpec(f"{path}.microUsdPerGpuHour", "must be a whole number, at least 0")
    since = raw.get("from")
    try:
        # YAML reads a time that is not quoted as one.
        from_ms = ms_of(since if isinstance(since, str) else since.isoformat())  # type: ignore[union-attr]
    except (ValueError, AttributeError):
        raise InvalidSpec(f"{path}.from", "must be a time with its zone") from None
    model = DEFAULT_TABLES.model_of(raw["gpuModel"]) or raw["gpuModel"]
    return PriceRow(model, raw["capacityType"], from_ms, price)


def _attempt(uid: str, number: int, raw: Json, gpus_each: int) -> AttemptFacts:
    nodes = tuple(raw.get("nodes") or ())
    return AttemptFacts(
        job_uid=uid,
        attempt=number,
        decided_ms=_ms(raw.get("decidedAt")) or 0,
        running_ms=_ms(raw.get("runningAt")),
        ended_ms=_ms(raw.get("endedAt")),
        outcome=raw.get("outcome"),
        cause=_short(raw.get("cause"), 128),
        message=_short(raw.get("message"), _MESSAGE),
        replicas=raw.get("replicas") or len(nodes),
        gpus=raw.get("gpus") or gpus_each * len(nodes),
        nodes=nodes,
    )


def _pod_end(pod: Json, gone_ms: int | None) -> int | None:
    """When the pod's processes had ended and its GPUs were free; None while it runs."""
    status = pod.get("status") or {}
    if gone_ms is None and status.get("phase") not in _OVER:
        return None
    ends = [
        _ms((state.get("state") or {}).get("terminated", {}).get("finishedAt"))
        for state in status.get("containerStatuses") or ()
    ]
    known = [end for end in ends if end is not None]
    if known and len(known) == len(ends):
        return max(known) + _SECOND_MS
    # The kubelet did not tell: killed with its node, evicted, or deleted before it ran.
    if gone_ms is not None:
        planned = _ms(pod["metadata"].get("deletionTimestamp"))
        return gone_ms if planned is None else min(gone_ms, planned)
    told = [_ms(each.get("lastTransitionTime")) for each in status.get("conditions") or ()]
    told.append(_ms(pod["metadata"].get("creationTimestamp")))
    return max((at for at in told if at is not None), default=0) + _SECOND_MS


def _short(text: str | None, most: int) -> str | None:
    """What a database takes: no NUL, which PostgreSQL knows not, and no longer than *most*."""
    return None if text is None else text.replace("\0", "")[:most]


def _ms(text: object) -> int | None:
    try:
        return ms_of(text) if isinstance(text, str) else None
    except ValueError:
        return None


def _whole(text: object) -> int | None:
    return int(text) if isinstance(text, str) and text.isascii() and text.isdigit() else None
