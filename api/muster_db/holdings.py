"""What replicas held: from the decision until the pod has ended.

Two watches tell of a replica, and either may be first: the job's, which says when it was decided,
where, and when the attempt was over; the pods', which says when the pod ended. A row keeps both
facts; when the holding ended follows from them when somebody asks.
"""

from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import Any, Final

import sqlalchemy as sa

from muster.cost import EpochSpan, Holding
from muster_db.database import Transaction
from muster_db.records import Ledger, NodeFacts, PlacedReplica, QueueUse, SeenPod
from muster_db.tables import attempts, epochs, holdings, jobs, nodes
from muster_db.upserts import insert_into, upsert

_GIVEN_BACK: Final = ("Succeeded", "Suspended")
"""Outcomes of attempts whose last epoch was not cut short by a failure."""

ended_ms: Final = sa.case(
    # No pod was ever seen: the attempt was taken back before, or the watch has not come to it.
    (holdings.c.pod_uid.is_(None), attempts.c.ended_ms),
    (
        holdings.c.is_end_uncertain,
        sa.func.coalesce(attempts.c.ended_ms, holdings.c.pod_ended_ms),
    ),
    # A kubelet tells the second in which a pod ended; the operator's time within it is finer.
    (
        (holdings.c.pod_ended_ms - attempts.c.ended_ms).between(0, 999),
        attempts.c.ended_ms,
    ),
    else_=holdings.c.pod_ended_ms,
)
"""When a replica gave its GPUs back, NULL while it holds them. A pod that outlives its attempt
holds them still."""

_joined: Final = holdings.outerjoin(
    attempts,
    sa.and_(attempts.c.job_uid == holdings.c.job_uid, attempts.c.attempt == holdings.c.attempt),
).outerjoin(jobs, jobs.c.uid == holdings.c.job_uid)


class HoldingRepository:
    """Queries on what replicas hold and held, in one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    async def place(self, placed: Sequence[PlacedReplica]) -> None:
        """Write where replicas were placed, with what their nodes are as of now."""
        if not placed:
            return
        kinds = await self._kinds({each.node for each in placed})
        rows = [{**asdict(each), **_NEW, **kinds.get(each.node, _NO_KIND)} for each in placed]
        statement = insert_into(self._transaction, holdings)
        decided = {name: statement.excluded[name] for name in ("node", "gpus")}
        # What an elastic gang got later it got then, though its status tells no more of it in the
        # end.
        decided["start_ms"] = sa.case(
            (holdings.c.start_ms > statement.excluded.start_ms, holdings.c.start_ms),
            else_=statement.excluded.start_ms,
        )
        # A node's labels at the time of the decision hold, whatever they become.
        kind = {
            "gpu_model": sa.func.coalesce(holdings.c.gpu_model, statement.excluded.gpu_model),
            "capacity_type": sa.func.coalesce(
                holdings.c.capacity_type, statement.excluded.capacity_type
            ),
            "is_simulated": sa.or_(holdings.c.is_simulated, statement.excluded.is_simulated),
        }
        await self._transaction.execute(
            statement.on_conflict_do_update(
                index_elements=list(holdings.primary_key), set_={**decided, **kind}
            ),
            rows,
        )

    async def see(self, pod: SeenPod) -> None:
        """Write what is known of a replica's pod; an older incarnation changes nothing."""
        statement = insert_into(self._transaction, holdings)
        new = {**asdict(pod), "is_end_uncertain": False, "is_simulated": False}
        seen = ("pod_uid", "incarnation", "is_end_uncertain")
        # The end that was seen first holds: the object may linger for long after it.
        is_known = sa.and_(
            holdings.c.pod_uid == statement.excluded.pod_uid,
            holdings.c.pod_ended_ms.is_not(None),
            holdings.c.is_end_uncertain.is_(False),
        )
        end = sa.case((is_known, holdings.c.pod_ended_ms), else_=statement.excluded.pod_ended_ms)
        await self._transaction.execute(
            statement.on_conflict_do_update(
                index_elements=list(holdings.primary_key),
                set_={**{n: statement.excluded[n] for n in seen}, "pod_ended_ms": end},
                where=sa.or_(
                    holdings.c.pod_uid.is_(None),
                    holdings.c.incarnation <= statement.excluded.incarnation,
                ),
            ),
            [new],
        )

    async def living_pods(self) -> set[str]:
        """The uids of all pods whose end is not known."""
        rows = await self._transaction.scalars(
            sa.select(holdings.c.pod_uid).where(
                holdings.c.pod_uid.is_not(None), holdings.c.pod_ended_ms.is_(None)
            )
        )
        return {uid for uid in rows if uid is not None}

    async def lose(self, pod_uids: Collection[str], at_ms: int) -> None:
        """These pods vanished unseen; *at_ms* is the last moment at which they were known."""
        for uid in sorted(pod_uids):
            await self._transaction.execute(
                sa.update(holdings)
                .where(holdings.c.pod_uid == uid, holdings.c.pod_ended_ms.is_(None))
                .values(pod_ended_ms=at_ms, is_end_uncertain=True)
            )

    async def know(self, node: NodeFacts) -> None:
        """Write what a node is, also into the holdings on it that could not know."""
        await upsert(self._transaction, nodes, [asdict(node)])
        if node.gpu_model is None:
            return
        await self._transaction.execute(
            sa.update(holdings)
            .where(holdings.c.node == node.name, holdings.c.gpu_model.is_(None))
            .values(
                gpu_model=node.gpu_model,
                capacity_type=node.capacity_type,
                is_simulated=node.is_simulated,
            )
        )

    async def open_count(self, job_uid: str) -> int:
        """How many replicas of the job still hold GPUs, or rather their place."""
        count = await self._transaction.scalar(
            sa.select(sa.func.count())
            .select_from(_joined)
            .where(holdings.c.job_uid == job_uid, ended_ms.is_(None))
        )
        return count or 0

    async def ledgers(self, job_uids: Collection[str]) -> dict[str, Ledger]:
        """What the bills of these jobs are made from, by uid."""
        uids = list(job_uids)
        held: dict[str, list[Holding]] = {uid: [] for uid in uids}
        spans: dict[str, list[EpochSpan]] = {uid: [] for uid in uids}
        failed: dict[str, set[int]] = {uid: set() for uid in uids}
        for row in (await self._transaction.execute(_holdings_of(uids))).mappings():
            values = dict(row)
            held[values.pop("job_uid")].append(Holding(**values))
        for uid, *span in await self._transaction.execute(_spans_of(uids)):
            spans[uid].append(EpochSpan(*span))
        for uid, attempt in await self._transaction.execute(_failed_of(uids)):
            failed[uid].add(attempt)
        return {
            uid: Ledger(tuple(held[uid]), tuple(spans[uid]), frozenset(failed[uid]))
            for uid in uids
        }

    async def queue_use(self) -> dict[str, QueueUse]:
        """What the jobs of each queue hold and wait for."""
        use: dict[str, QueueUse] = {}
        is_held = sa.and_(ended_ms.is_(None), jobs.c.deleted_ms.is_(None))
        for queue, gpus in await self._transaction.execute(
            sa.select(jobs.c.queue, sa.func.sum(holdings.c.gpus))
            .select_from(_joined)
            .where(is_held, holdings.c.start_ms.is_not(None))
            .group_by(jobs.c.queue)
        ):
            use[queue] = QueueUse(held=int(gpus))
        for queue, gpus in await self._transaction.execute(
            sa.select(jobs.c.queue, sa.func.sum(jobs.c.replicas * jobs.c.gpus_per_replica))
            .where(jobs.c.phase == "Pending", jobs.c.deleted_ms.is_(None))
            .group_by(jobs.c.queue)
        ):
            use[queue] = QueueUse(use.get(queue, QueueUse()).held, int(gpus))
        return use

    async def _kinds(self, names: Collection[str]) -> dict[str, dict[str, Any]]:
        rows = await self._transaction.execute(sa.select(nodes).where(nodes.c.name.in_(names)))
        return {row.pop("name"): row for row in map(dict, rows.mappings())}


_NEW: Final = {"incarnation": 0, "is_end_uncertain": False}
_NO_KIND: Final = {"gpu_model": None, "capacity_type": None, "is_simulated": False}


def _holdings_of(uids: Sequence[str]) -> sa.Select[Any]:
    return (
        sa.select(
            holdings.c.job_uid,
            holdings.c.attempt,
            holdings.c.replica,
            holdings.c.gpus,
            holdings.c.start_ms,
            sa.func.coalesce(ended_ms, jobs.c.deleted_ms).label("end_ms"),
            holdings.c.gpu_model,
            holdings.c.capacity_type,
            holdings.c.is_simulated,
        )
        .select_from(_joined)
        .where(holdings.c.job_uid.in_(uids), holdings.c.start_ms.is_not(None))
    )


def _spans_of(uids: Sequence[str]) -> sa.Select[Any]:
    span = (epochs.c.attempt, epochs.c.epoch, epochs.c.started_ms, epochs.c.finished_ms)
    is_started = epochs.c.started_ms.is_not(None)
    return sa.select(epochs.c.job_uid, *span).where(epochs.c.job_uid.in_(uids), is_started)


def _failed_of(uids: Sequence[str]) -> sa.Select[Any]:
    return sa.select(attempts.c.job_uid, attempts.c.attempt).where(
        attempts.c.job_uid.in_(uids),
        attempts.c.outcome.is_not(None),
        attempts.c.outcome.not_in(_GIVEN_BACK),
    )
