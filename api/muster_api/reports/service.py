"""Whether a pod may speak for a job, and what its report changes."""

import math
from collections.abc import Sequence
from typing import Any

from muster import wire
from muster.errors import Conflict, Forbidden
from muster.reports import (
    Checkpoint,
    CheckpointState,
    Epoch,
    EpochEvent,
    Item,
    Metrics,
    Report,
    Step,
)
from muster.times import ms_at
from muster_api.auth import Pod
from muster_api.facts import job_facts, owner_of
from muster_api.parts import Parts
from muster_api.reports.schemas import Acknowledgement, ReportedStatus
from muster_db.database import Transaction
from muster_db.jobs import JobRepository
from muster_db.records import CheckpointRow, MetricValue
from muster_db.reports import ReportRepository
from muster_kube import ApiNotFound

Json = dict[str, Any]


async def speaks_for(parts: Parts, pod: Pod, namespace: str, name: str, report: Report) -> Json:
    """The job that *pod* belongs to, if it is the one it reports for. Raises `Forbidden`.

    Raises `Conflict` for an attempt that is over: what it still says is not what the job does.
    """
    if pod.namespace != namespace:
        raise Forbidden(f"pod {pod.name} of namespace {pod.namespace} has no job in {namespace}")
    try:
        job = await parts.cluster.job(namespace, name)
        obj = await parts.cluster.pod(namespace, pod.name)
    except ApiNotFound:
        raise Forbidden(f"pod {pod.name} is not a pod of job {namespace}/{name}") from None
    metadata = obj["metadata"]
    if metadata["uid"] != pod.uid or owner_of(obj) != job["metadata"]["uid"]:
        raise Forbidden(f"pod {pod.name} is not a pod of job {namespace}/{name}")
    labels = metadata.get("labels") or {}
    own = (labels.get(wire.LABEL_ATTEMPT), labels.get(wire.LABEL_REPLICA))
    if own != (str(report.attempt), str(report.replica)):
        raise Forbidden(
            f"pod {pod.name} is replica {own[1]} of attempt {own[0]}, not what it says"
        )
    current = (job.get("status") or {}).get("attempt") or 0
    if report.attempt < current:
        raise Conflict(f"attempt {report.attempt} is over; the job is at attempt {current}")
    return job


async def take(
    transaction: Transaction, job: Json, report: Report, now_ms: int
) -> Acknowledgement:
    """Write *report*, once however often it comes."""
    facts = job_facts(job)
    # The recorder may not have come to the job yet, and rows must refer to it.
    await JobRepository(transaction).ensure(facts)
    reports = ReportRepository(transaction, facts.uid)
    is_new = await reports.accept(
        attempt=report.attempt,
        replica=report.replica,
        sequence=report.sequence,
        items=len(report.items),
        now_ms=now_ms,
    )
    if is_new:
        for item in report.items:
            await _apply(reports, report.attempt, item)
        await _note_progress(transaction, facts.uid, report.items)
    directive = (job.get("status") or {}).get("directive")
    return Acknowledgement(
        acknowledged=report.sequence, status=ReportedStatus(directive=directive)
    )


async def _apply(reports: ReportRepository, attempt: int, item: Item) -> None:
    match item:
        case Epoch(event=EpochEvent.START):
            await reports.start_epoch(attempt, item.epoch, at_ms=ms_at(item.at))
        case Epoch():
            values = {name: _number(value) for name, value in item.metrics.items()}
            await reports.end_epoch(
                attempt, item.epoch, at_ms=ms_at(item.at), step=item.step, values=values
            )
        case Metrics():
            await reports.log(attempt, _values(item))
        case Checkpoint():
            await reports.checkpoint(_checkpoint(attempt, item))
        case _:
            pass  # A step is progress, noted once a report; a heartbeat says no more than it.


async def _note_progress(transaction: Transaction, uid: str, items: Sequence[Item]) -> None:
    """Where the last item that tells of a step says the job is."""
    told = [item for item in items if isinstance(item, Epoch | Step | Metrics)]
    if told:
        await JobRepository(transaction).progress(
            uid, epoch=told[-1].epoch, step=told[-1].step, at_ms=ms_at(told[-1].at)
        )


def _values(item: Metrics) -> list[MetricValue]:
    at_ms = ms_at(item.at)
    return [
        MetricValue(name, str(_number(value)), item.epoch, item.step, at_ms)
        for name, value in sorted(item.values.items())
    ]


def _checkpoint(attempt: int, item: Checkpoint) -> CheckpointRow:
    at_ms = ms_at(item.at)
    return CheckpointRow(
        id=item.id,
        attempt=attempt,
        step=item.step,
        state=item.state.value,
        bytes=item.bytes,
        world_size=item.world_size,
        uri=item.uri,
        message=item.message,
        created_ms=at_ms,
        verified_ms=at_ms if item.state is CheckpointState.VERIFIED else None,
    )


def _number(value: float) -> float | str:
    """A number, or the word for one that JSON has none for."""
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
