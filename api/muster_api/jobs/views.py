"""A job's rows as the JSON that callers see."""

from collections.abc import Mapping, Sequence
from typing import Any

from muster.cost import Bill, PriceRow, bill
from muster.money import usd
from muster.times import text_of
from muster_api.jobs.schemas import Checkpoint, JobDetail, JobItem, Progress
from muster_db.records import AttemptFacts, CheckpointRow, Job, Ledger


def bill_of(ledger: Ledger, prices: Sequence[PriceRow], now_ms: int) -> Bill:
    """What a job cost until now, by epoch."""
    return bill(
        ledger.holdings,
        ledger.epochs,
        prices,
        now_ms=now_ms,
        failed_attempts=ledger.failed_attempts,
    )


def item_of(job: Job, cost: Bill) -> JobItem:
    """A job in a list."""
    return JobItem(**_item(job, cost))


def detail_of(
    job: Job,
    cost: Bill,
    tries: Sequence[AttemptFacts],
    checkpoints: Sequence[CheckpointRow],
) -> JobDetail:
    """A job with everything that is known of it."""
    status = job.status
    placement = None if job.deleted_ms is not None else status.get("placement")
    return JobDetail(
        **_item(job, cost),
        generation=job.generation,
        gang=status.get("gang"),
        queue_position=status.get("queuePosition"),
        conditions=[_snake(each) for each in status.get("conditions") or ()],
        attempts=[attempt_of(each) for each in tries],
        restarts=dict(status.get("restarts") or {}),
        checkpoint=newest(checkpoints),
        placement=_snake(placement) if placement else None,
    )


def newest(checkpoints: Sequence[CheckpointRow]) -> Checkpoint:
    """The newest checkpoint that was written, and the newest that was verified."""
    written = [each for each in checkpoints if each.state in ("durable", "verified")]
    verified = [each for each in written if each.verified_ms is not None]
    latest = max(written, key=_age, default=None)
    whole = max(verified, key=_age, default=None)
    return Checkpoint(
        latest=None if latest is None else latest.id,
        verified=None if whole is None else whole.id,
        step=None if whole is None else whole.step,
        at=None if whole is None else _text(whole.verified_ms),
    )


def attempt_of(attempt: AttemptFacts) -> dict[str, Any]:
    """One attempt."""
    return {
        "attempt": attempt.attempt,
        "decided_at": _text(attempt.decided_ms),
        "running_at": _text(attempt.running_ms),
        "ended_at": _text(attempt.ended_ms),
        "outcome": attempt.outcome,
        "cause": attempt.cause,
        "message": attempt.message,
        "replicas": attempt.replicas,
        "gpus": attempt.gpus,
        "nodes": list(attempt.nodes),
    }


def _item(job: Job, cost: Bill) -> dict[str, Any]:
    return {
        "namespace": job.namespace,
        "name": job.name,
        "uid": job.uid,
        "queue": job.queue,
        "phase": job.phase,
        "reason": job.reason,
        "message": job.message,
        "replicas": job.replicas,
        "gpus": job.gpus,
        "attempt": job.attempt,
        "priority": job.priority,
        "user": job.user_name,
        "submitted": text_of(job.submitted_ms),
        "started": _text(job.started_ms),
        "finished": _text(job.finished_ms),
        "deleting": _text(job.deleting_ms),
        "deleted": _text(job.deleted_ms),
        "end_uncertain": job.is_end_uncertain,
        "progress": Progress(epoch=job.epoch, step=job.step),
        "cost_micro_usd": cost.micro_usd,
        "cost": usd(cost.micro_usd),
    }


def _age(row: CheckpointRow) -> tuple[int, int, str]:
    return (row.created_ms, row.step, row.id)


def _snake(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a Kubernetes object by our spelling: `decidedAt` is `decided_at`."""
    return {
        "".join(f"_{c.lower()}" if c.isupper() else c for c in key): value
        for key, value in raw.items()
    }


def _text(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else text_of(milliseconds)
