"""What training processes reported: epochs, metrics, checkpoints, and which reports are known."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

import sqlalchemy as sa

from muster_db.database import Transaction
from muster_db.records import CheckpointRow, EpochRow, MetricValue
from muster_db.tables import checkpoints, epochs, metric_points, metrics, reports
from muster_db.upserts import insert_into, upsert

SEQUENCES_KEPT: Final = 1_000
"""Reports of a replica that are remembered; anything older counts as known."""
POINTS_KEPT: Final = 1_000
"""Points of a metric's series; a longer one loses every second point."""


class ReportRepository:
    """Queries on what the ranks of one job reported, in one transaction."""

    def __init__(self, transaction: Transaction, job_uid: str) -> None:
        self._transaction = transaction
        self._uid = job_uid

    async def accept(
        self, *, attempt: int, replica: int, sequence: int, items: int, now_ms: int
    ) -> bool:
        """Take note of a report. False where it is known already and must not count again."""
        of_replica = sa.and_(
            reports.c.job_uid == self._uid,
            reports.c.attempt == attempt,
            reports.c.replica == replica,
        )
        newest = await self._transaction.scalar(
            sa.select(sa.func.max(reports.c.sequence)).where(of_replica)
        )
        oldest_kept = -1 if newest is None else newest - SEQUENCES_KEPT
        if sequence <= oldest_kept:
            return False
        row = {
            "job_uid": self._uid,
            "attempt": attempt,
            "replica": replica,
            "sequence": sequence,
            "received_ms": now_ms,
            "items": items,
        }
        statement = insert_into(self._transaction, reports).on_conflict_do_nothing()
        # What an INSERT returns is known on both databases; how many rows it made is not.
        made = await self._transaction.execute(statement.returning(reports.c.sequence), row)
        if made.first() is None:
            return False
        await self._transaction.execute(
            sa.delete(reports).where(of_replica, reports.c.sequence < oldest_kept)
        )
        return True

    async def start_epoch(self, attempt: int, epoch: int, *, at_ms: int) -> None:
        """An epoch began."""
        row = {"started_ms": at_ms, "metrics": {}}
        await self._put_epoch(attempt, epoch, row, only=("started_ms",))

    async def end_epoch(
        self, attempt: int, epoch: int, *, at_ms: int, step: int, values: Mapping[str, Any]
    ) -> None:
        """An epoch ended, with these metrics."""
        await self._put_epoch(
            attempt, epoch, {"finished_ms": at_ms, "step": step, "metrics": dict(values)}
        )

    async def _put_epoch(
        self, attempt: int, epoch: int, row: dict[str, Any], only: Collection[str] | None = None
    ) -> None:
        key = {"job_uid": self._uid, "attempt": attempt, "epoch": epoch}
        await upsert(self._transaction, epochs, [{**key, **row}], only=only)

    async def log(self, attempt: int, values: Sequence[MetricValue]) -> None:
        """Write logged values: as the latest of their name, and as points of its series."""
        latest = {each.name: each for each in values}
        rows = [{"job_uid": self._uid, **asdict(each)} for each in latest.values()]
        await upsert(self._transaction, metrics, rows)
        points = {(each.name, each.step): each for each in values}
        rows = [
            {"job_uid": self._uid, "attempt": attempt, **asdict(each)} for each in points.values()
        ]
        await upsert(self._transaction, metric_points, rows)
        for name in latest:
            await self._thin(name)

    async def _thin(self, name: str) -> None:
        """Halve a series that became too long, so that it still tells of all of its time."""
        of_name = sa.and_(metric_points.c.job_uid == self._uid, metric_points.c.name == name)
        count = await self._transaction.scalar(
            sa.select(sa.func.count()).select_from(metric_points).where(of_name)
        )
        if (count or 0) <= POINTS_KEPT:
            return
        place = (metric_points.c.attempt, metric_points.c.step)
        rows = await self._transaction.execute(sa.select(*place).where(of_name).order_by(*place))
        for attempt, step in list(rows)[1::2]:
            await self._transaction.execute(
                sa.delete(metric_points).where(
                    of_name, metric_points.c.attempt == attempt, metric_points.c.step == step
                )
            )

    async def checkpoint(self, row: CheckpointRow) -> None:
        """A checkpoint reached a state. One that was verified does not become less so."""
        statement = insert_into(self._transaction, checkpoints)
        new = {"job_uid": self._uid, **asdict(row)}
        changed = {name: statement.excluded[name] for name in asdict(row) if name != "id"}
        changed["created_ms"] = checkpoints.c.created_ms
        await self._transaction.execute(
            statement.on_conflict_do_update(
                index_elements=list(checkpoints.primary_key),
                set_=changed,
                where=sa.or_(
                    checkpoints.c.verified_ms.is_(None),
                    statement.excluded.verified_ms.is_not(None),
                ),
            ),
            [new],
        )

    async def epochs(self) -> list[EpochRow]:
        """All epochs, by number, then attempt."""
        fields = (epochs.c[name] for name in EpochRow.__dataclass_fields__)
        rows = await self._transaction.execute(
            sa.select(*fields)
            .where(epochs.c.job_uid == self._uid)
            .order_by(epochs.c.epoch, epochs.c.attempt)
        )
        return [EpochRow(**row) for row in rows.mappings()]

    async def checkpoints(self) -> list[CheckpointRow]:
        """All checkpoints, newest first."""
        fields = (checkpoints.c[name] for name in CheckpointRow.__dataclass_fields__)
        rows = await self._transaction.execute(
            sa.select(*fields)
            .where(checkpoints.c.job_uid == self._uid)
            .order_by(checkpoints.c.created_ms.desc(), checkpoints.c.id)
        )
        return [CheckpointRow(**row) for row in rows.mappings()]

    async def metrics(self) -> list[MetricValue]:
        """The latest value of each metric, by name."""
        fields = (metrics.c[name] for name in MetricValue.__dataclass_fields__)
        rows = await self._transaction.execute(
            sa.select(*fields).where(metrics.c.job_uid == self._uid).order_by(metrics.c.name)
        )
        return [MetricValue(**row) for row in rows.mappings()]

    async def series(self, name: str) -> list[MetricValue]:
        """The points of one metric, oldest attempt and step first."""
        fields = (metric_points.c[name] for name in MetricValue.__dataclass_fields__)
        rows = await self._transaction.execute(
            sa.select(*fields)
            .where(metric_points.c.job_uid == self._uid, metric_points.c.name == name)
            .order_by(metric_points.c.attempt, metric_points.c.step)
        )
        return [MetricValue(**row) for row in rows.mappings()]
