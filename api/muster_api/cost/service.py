"""Bills from the rows of the database."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest

from muster.cost import OF_AN_EPOCH, Bill, Line, bill
from muster.money import seconds, usd
from muster.times import text_of
from muster_api.cost.schemas import Cost, CostLine, EpochItem, EpochList, Price
from muster_api.jobs.service import known, live_job
from muster_api.parts import Parts
from muster_db.database import Transaction
from muster_db.holdings import HoldingRepository
from muster_db.jobs import JobRepository
from muster_db.prices import PriceRepository
from muster_db.records import EpochRow, Job
from muster_db.reports import ReportRepository


async def cost_of(parts: Parts, namespace: str, name: str, *, is_by_attempt: bool) -> Cost:
    """What the job cost until now."""
    live = await live_job(parts, namespace, name)
    async with parts.database.reading() as transaction:
        job = await known(transaction, namespace, name, live)
        made = await _bill(transaction, job, parts.clock(), is_by_attempt=is_by_attempt)
    each, total = seconds([line.gpu_ms for line in made.lines])
    return Cost(
        job=job.name,
        namespace=job.namespace,
        uid=job.uid,
        total_micro_usd=made.micro_usd,
        total=usd(made.micro_usd),
        gpu_seconds=total,
        gpu_milliseconds=made.gpu_ms,
        lines=[_line(line, s) for line, s in zip(made.lines, each, strict=True)],
        priced=made.is_priced,
        simulated=made.is_simulated,
        end_uncertain=job.is_end_uncertain,
        prices=[
            Price(
                gpu_model=row.gpu_model,
                capacity_type=row.capacity_type,
                micro_usd_per_gpu_hour=row.micro_usd_per_gpu_hour,
                since=text_of(row.from_ms),
            )
            for row in made.prices
        ],
    )


async def epochs_of(parts: Parts, namespace: str, name: str) -> EpochList:
    """The epochs of the job, with what each cost."""
    now_ms = parts.clock()
    live = await live_job(parts, namespace, name)
    async with parts.database.reading() as transaction:
        job = await known(transaction, namespace, name, live)
        made = await _bill(transaction, job, now_ms, is_by_attempt=False)
        rows = await ReportRepository(transaction, job.uid).epochs()
        tries = await JobRepository(transaction).attempts_of(job.uid)
    until = {each.attempt: each.ended_ms or job.deleted_ms or now_ms for each in tries}
    took = _times(rows, until, now_ms)
    numbers = sorted({row.epoch for row in rows})
    return EpochList(
        items=[_epoch([r for r in rows if r.epoch == number], took, made) for number in numbers]
    )


def _times(
    rows: Sequence[EpochRow], until: Mapping[int, int], now_ms: int
) -> dict[tuple[int, int], int]:
    """Milliseconds spent in each epoch, by attempt and epoch. One whose end was not reported ends
    with the next one's start, or with its attempt."""
    # Epochs may start in the same millisecond: their number makes the order total.
    started = sorted(
        (
            (row.attempt, row.started_ms, row.epoch, row.finished_ms)
            for row in rows
            if row.started_ms is not None
        ),
        key=lambda each: each[:3],
    )
    times: dict[tuple[int, int], int] = {}
    for (attempt, start_ms, epoch, finished_ms), after in zip_longest(started, started[1:]):
        end_ms = until.get(attempt, now_ms)
        if after is not None and after[0] == attempt:
            end_ms = after[1]
        if finished_ms is not None:
            end_ms = finished_ms
        times[attempt, epoch] = max(0, end_ms - start_ms)
    return times


async def _bill(transaction: Transaction, job: Job, now_ms: int, *, is_by_attempt: bool) -> Bill:
    ledger = (await HoldingRepository(transaction).ledgers([job.uid]))[job.uid]
    return bill(
        ledger.holdings,
        ledger.epochs,
        await PriceRepository(transaction).all(),
        now_ms=now_ms,
        failed_attempts=ledger.failed_attempts,
        is_by_attempt=is_by_attempt,
    )


def _line(line: Line, gpu_seconds: float) -> CostLine:
    return CostLine(
        key=str(line.key),
        kind=line.kind,
        gpu_seconds=gpu_seconds,
        gpu_milliseconds=line.gpu_ms,
        micro_usd=line.micro_usd,
        cost=usd(line.micro_usd),
    )


def _epoch(rows: Sequence[EpochRow], took: Mapping[tuple[int, int], int], made: Bill) -> EpochItem:
    """One epoch; *rows* are what each attempt did of it, in their order."""
    number = rows[0].epoch
    lines = [line for line in made.lines if line.kind in OF_AN_EPOCH and line.key == number]
    money = [line.micro_usd for line in lines]
    micro_usd = None if None in money else sum(amount or 0 for amount in money)
    started = [row.started_ms for row in rows if row.started_ms is not None]
    finished = rows[-1].finished_ms
    return EpochItem(
        epoch=number,
        attempts=[row.attempt for row in rows],
        started=text_of(min(started)) if started else None,
        finished=None if finished is None else text_of(finished),
        seconds=sum(took.get((row.attempt, number), 0) for row in rows) / 1000,
        gpu_seconds=seconds([line.gpu_ms for line in lines])[1],
        micro_usd=micro_usd,
        cost=usd(micro_usd),
        metrics=next((dict(row.metrics) for row in reversed(rows) if row.metrics), {}),
    )
