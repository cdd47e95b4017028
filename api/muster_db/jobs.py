"""Jobs and their attempts: what was, even after the objects are gone."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import sqlalchemy as sa

from muster_db.database import Transaction
from muster_db.records import FINAL_PHASES, AttemptFacts, Job, JobFacts
from muster_db.tables import attempts, jobs
from muster_db.upserts import insert_into, upsert

_CHUNK: Final = 500
_CANCELLED: Final = "Cancelled"
_EXISTS: Final = {"deleted_ms": None, "is_end_uncertain": False, "is_settled": False}
"""An object that is seen exists, whatever was concluded before."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which jobs are asked for; None means any."""

    namespace: str | None = None
    queue: str | None = None
    phase: str | None = None
    with_deleted: bool = False


class JobRepository:
    """Queries on jobs and attempts, in one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    async def record(self, job: JobFacts, tries: Sequence[AttemptFacts] = ()) -> None:
        """Write what the object says, over what it said before; what was reported stays."""
        await upsert(self._transaction, jobs, [{**asdict(job), **_EXISTS}])
        await upsert(self._transaction, attempts, [_row(each) for each in tries])

    async def ensure(self, job: JobFacts) -> None:
        """Write the job only if it is not there: the recorder may not have come to it yet."""
        statement = insert_into(self._transaction, jobs).on_conflict_do_nothing()
        await self._transaction.execute(statement, [{**asdict(job), **_EXISTS}])

    async def close(self, uids: Collection[str], at_ms: int, *, is_uncertain: bool) -> None:
        """These jobs' objects are gone since *at_ms*; what had not ended counts as cancelled."""
        known_end = sa.func.coalesce(jobs.c.deleting_ms, at_ms) if is_uncertain else at_ms
        for chunk in _chunks(uids):
            await self._transaction.execute(
                sa.update(jobs)
                .where(jobs.c.uid.in_(chunk), jobs.c.deleted_ms.is_(None))
                .values(
                    deleted_ms=known_end,
                    finished_ms=sa.func.coalesce(jobs.c.finished_ms, known_end),
                    phase=sa.case(
                        (jobs.c.phase.in_(FINAL_PHASES), jobs.c.phase), else_=_CANCELLED
                    ),
                    is_end_uncertain=jobs.c.deleting_ms.is_(None) if is_uncertain else sa.false(),
                    is_held=False,
                    is_settled=True,
                )
            )
            await self._transaction.execute(
                sa.update(attempts)
                .where(attempts.c.job_uid.in_(chunk), attempts.c.ended_ms.is_(None))
                .values(
                    ended_ms=sa.select(jobs.c.deleted_ms)
                    .where(jobs.c.uid == attempts.c.job_uid)
                    .scalar_subquery(),
                    outcome=sa.func.coalesce(attempts.c.outcome, _CANCELLED),
                )
            )

    async def living(self) -> set[str]:
        """The uids of all jobs whose objects exist, as far as is known."""
        rows = await self._transaction.scalars(
            sa.select(jobs.c.uid).where(jobs.c.deleted_ms.is_(None))
        )
        return set(rows)

    async def get(self, uid: str) -> Job | None:
        """The job of this uid."""
        found = await self._select(sa.select(jobs).where(jobs.c.uid == uid))
        return found[0] if found else None

    async def find(self, namespace: str, name: str) -> Job | None:
        """The job of this name: the one that exists, else the one submitted last."""
        statement = (
            sa.select(jobs)
            .where(jobs.c.namespace == namespace, jobs.c.name == name)
            .order_by(jobs.c.deleted_ms.is_not(None), jobs.c.submitted_ms.desc(), jobs.c.uid)
            .limit(1)
        )
        found = await self._select(statement)
        return found[0] if found else None

    async def page(
        self, asked: Filter, *, limit: int, after: tuple[int, str] | None = None
    ) -> list[Job]:
        """Up to *limit* jobs, newest first, after the one of that submission time and uid."""
        statement = sa.select(jobs).order_by(jobs.c.submitted_ms.desc(), jobs.c.uid.desc())
        for column, value in (
            (jobs.c.namespace, asked.namespace),
            (jobs.c.queue, asked.queue),
            (jobs.c.phase, asked.phase),
        ):
            if value is not None:
                statement = statement.where(column == value)
        if not asked.with_deleted:
            statement = statement.where(jobs.c.deleted_ms.is_(None))
        if after is not None:
            statement = statement.where(sa.tuple_(jobs.c.submitted_ms, jobs.c.uid) < after)
        return await self._select(statement.limit(limit))

    async def attempts_of(self, uid: str) -> list[AttemptFacts]:
        """All attempts of a job, oldest first; its status keeps the last ten only."""
        rows = await self._transaction.execute(
            sa.select(attempts).where(attempts.c.job_uid == uid).order_by(attempts.c.attempt)
        )
        return [AttemptFacts(**{**row, "nodes": tuple(row["nodes"])}) for row in rows.mappings()]

    async def ending(self) -> list[Job]:
        """Jobs that are over or being deleted, and still carry the recorder's finalizer."""
        return await self._select(
            sa.select(jobs).where(
                jobs.c.is_settled.is_(False),
                jobs.c.is_held,
                jobs.c.deleted_ms.is_(None),
                sa.or_(jobs.c.deleting_ms.is_not(None), jobs.c.phase.in_(FINAL_PHASES)),
            )
        )

    async def unsettled(self) -> list[Job]:
        """Jobs that ever held GPUs or reported, and may have something new to tell."""
        return await self._select(
            sa.select(jobs).where(
                jobs.c.is_settled.is_(False),
                jobs.c.deleted_ms.is_(None),
                sa.or_(jobs.c.attempt > 0, jobs.c.reported_ms.is_not(None)),
            )
        )

    async def settle(self, uid: str) -> None:
        """Nothing will change any more about this job."""
        await self._transaction.execute(
            sa.update(jobs).where(jobs.c.uid == uid).values(is_settled=True)
        )

    async def progress(self, uid: str, *, epoch: int, step: int, at_ms: int) -> None:
        """Its ranks reported that they are here."""
        await self._transaction.execute(
            sa.update(jobs)
            .where(jobs.c.uid == uid)
            .values(epoch=epoch, step=step, reported_ms=at_ms)
        )

    async def _select(self, statement: sa.Select[Any]) -> list[Job]:
        rows = await self._transaction.execute(statement)
        return [Job(**row) for row in rows.mappings()]


def _row(attempt: AttemptFacts) -> dict[str, Any]:
    return {**asdict(attempt), "nodes": list(attempt.nodes)}


def _chunks(uids: Collection[str]) -> list[list[str]]:
    """*uids* in parts that fit into one statement."""
    every = sorted(uids)
    return [every[start : start + _CHUNK] for start in range(0, len(every), _CHUNK)]
