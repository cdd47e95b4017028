"""Writing progress, checkpoint and cost into the status of jobs.

By server-side apply with a field manager of our own, so that neither the operator nor we can undo
what the other wrote. At most once in a while for each job, only what changed, and once more at the
end; a job whose end is told is settled and not looked at again.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from muster import wire
from muster.cost import Bill
from muster.money import seconds, usd
from muster_api.jobs.views import bill_of, newest
from muster_api.recorder.metrics import RecorderMetrics
from muster_db.database import Database, Transaction
from muster_db.holdings import HoldingRepository
from muster_db.jobs import JobRepository
from muster_db.prices import PriceRepository
from muster_db.records import Job
from muster_db.reports import ReportRepository
from muster_kube import JOBS, ApiNotFound, Kube, StaleVersion

_AWAITED_MS: Final = 1_000
OURS: Final = ("progress", "checkpoint", "cost")


class Telling:
    """Keeps the recorder's part of statuses up to date."""

    def __init__(
        self,
        database: Database,
        kube: Kube,
        clock: Callable[[], int],
        metrics: RecorderMetrics,
        *,
        every_ms: int,
    ) -> None:
        self._database = database
        self._kube = kube
        self._clock = clock
        self._metrics = metrics
        self._every_ms = every_ms
        self._told_ms: dict[tuple[str, bool], int] = {}
        """When a job was told of last, in its life and after its end, whose first words need not
        wait. Lost with the process: one write more, at most."""

    async def tell(self) -> None:
        """Write what is due."""
        now_ms = self._clock()
        async with self._database.reading() as transaction:
            jobs = await JobRepository(transaction).unsettled()
            due = [job for job in jobs if self._is_due(job, now_ms)]
            wanted = await self._wanted(transaction, due, now_ms)
        for job in due:
            await self._tell(job, wanted[job.uid], now_ms)
        current = {job.uid for job in jobs}
        self._told_ms = {key: at for key, at in self._told_ms.items() if key[0] in current}

    def _is_due(self, job: Job, now_ms: int) -> bool:
        told_ms = self._told_ms.get((job.uid, job.is_final))
        # Whoever asked the ranks for a checkpoint waits for the word that there is one.
        is_awaited = bool(job.status.get("directive"))
        every_ms = min(self._every_ms, _AWAITED_MS) if is_awaited else self._every_ms
        return told_ms is None or now_ms - told_ms >= every_ms

    async def _wanted(
        self, transaction: Transaction, jobs: list[Job], now_ms: int
    ) -> dict[str, tuple[dict[str, Any], bool]]:
        """What the status of each job should say, and whether that is final."""
        holdings = HoldingRepository(transaction)
        ledgers = await holdings.ledgers([job.uid for job in jobs])
        prices = await PriceRepository(transaction).all()
        wanted = {}
        for job in jobs:
            ledger = ledgers[job.uid]
            rows = await ReportRepository(transaction, job.uid).checkpoints()
            checkpoint = newest(rows).model_dump(exclude_none=True)
            cost = bill_of(ledger, prices, now_ms)
            is_over = all(each.end_ms is not None for each in ledger.holdings)
            status = {
                "progress": _progress(job),
                "checkpoint": checkpoint,
                "cost": _cost(cost) if ledger.holdings else {},
            }
            told = {key: value for key, value in status.items() if value}
            wanted[job.uid] = (told, job.is_final and is_over)
        return wanted

    async def _tell(self, job: Job, wanted: tuple[dict[str, Any], bool], now_ms: int) -> None:
        status, is_final = wanted
        if status == {key: job.status[key] for key in OURS if job.status.get(key)}:
            if is_final:
                async with self._database.writing() as transaction:
                    await JobRepository(transaction).settle(job.uid)
            return
        if job.is_final and not is_final:
            # Its pods are just ending: what it cost will be less than it seems now.
            return
        try:
            # An apply takes no notice of a uid: read first, and write to what was read only.
            metadata = (await self._kube.get(JOBS.path(job.namespace, job.name)))["metadata"]
            if metadata["uid"] != job.uid:
                return
            await self._kube.patch(
                JOBS.path(job.namespace, job.name, "status"),
                _body(metadata, status),
                kind="apply",
                fieldManager=wire.RECORDER_MANAGER,
                force="true",
            )
        except (ApiNotFound, StaleVersion):
            # Gone, or the operator wrote in between: the watch says so, and we look again.
            return
        self._told_ms[job.uid, job.is_final] = now_ms
        self._metrics.told.inc()


def _body(metadata: Mapping[str, Any], status: Mapping[str, Any]) -> dict[str, Any]:
    own = {key: metadata[key] for key in ("namespace", "name", "resourceVersion")}
    return {"apiVersion": wire.API_VERSION, "kind": JOBS.kind, "metadata": own, "status": status}


def _progress(job: Job) -> dict[str, Any]:
    told = {"epoch": job.epoch, "step": job.step}
    return {key: value for key, value in told.items() if value is not None}


def _cost(cost: Bill) -> dict[str, Any]:
    told: dict[str, Any] = {
        "gpuSeconds": seconds([cost.gpu_ms])[1],
        "text": usd(cost.micro_usd),
    }
    return told if cost.micro_usd is None else {**told, "microUsd": cost.micro_usd}
