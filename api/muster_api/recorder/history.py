"""Writing what the watches tell, each batch in one transaction with how far it came.

Killed before a commit, the recorder sees the same changes again; killed after it, it goes on
behind them. Rows are a function of what was seen, so that seeing it again changes nothing.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from muster.errors import InvalidSpec, MusterError
from muster_api import facts
from muster_api.recorder.metrics import RecorderMetrics
from muster_api.recorder.streams import Collection
from muster_db.database import Database, Transaction
from muster_db.holdings import HoldingRepository
from muster_db.jobs import JobRepository
from muster_db.positions import PositionRepository
from muster_db.prices import PriceRepository
from muster_db.records import NodeFacts, Position, SeenPod
from muster_kube import Change, Kind

_log = logging.getLogger(__name__)
_IDLE_MS: Final = 5_000
"""How long a position may stay behind where nothing else is to be written."""


class History:
    """One recorder's memory of what it wrote, and its way into the database."""

    def __init__(
        self,
        database: Database,
        cluster: str,
        clock: Callable[[], int],
        metrics: RecorderMetrics,
    ) -> None:
        self._database = database
        self._cluster = cluster
        self._clock = clock
        self._metrics = metrics
        # SQLite has one writer at a time; to wait here is cheaper than to wait there.
        self._turn = asyncio.Lock()
        self._positions: dict[Collection, Position | None] = {}
        self._living: dict[Collection, set[str]] = {each: set() for each in Collection}
        self._nodes: dict[str, NodeFacts] = {}
        self._pods: dict[str, SeenPod] = {}
        self.synced: set[Collection] = set()
        """Collections that are as new as the API server's."""

    async def open(self, collection: Collection) -> str:
        """The resourceVersion to go on from in *collection*; empty to start with a list."""
        async with self._database.reading() as transaction:
            position = await PositionRepository(transaction).get(collection)
        self._positions[collection] = position
        if position is None or position.cluster != self._cluster:
            return ""
        if position.resource_version:
            self.synced.add(collection)
        return position.resource_version

    async def write(self, collection: Collection, changes: Sequence[Change]) -> None:
        """Write a batch of changes, and the position behind them. Raises `Conflict` where another
        recorder writes too."""
        async with self._turn:
            for change in changes:
                self._note_living(collection, change)
            news = [change for change in changes if self._is_news(collection, change)]
            position = self._behind(collection, changes)
            if not news and not self._is_due(collection, position):
                return
            with self._metrics.committing(collection, len(changes)):
                try:
                    await self._commit(collection, news, position, apply=self._apply)
                except MusterError:
                    raise
                except Exception:  # one odd object must not end all history: see below
                    _log.exception("a batch of %s failed; trying its changes apart", collection)
                    self._metrics.errors.labels("batch").inc()
                    await self._commit(collection, news, position, apply=self._apply_apart)
            self._positions[collection] = position
            # Only now: a batch whose commit failed comes again, and is news still.
            for change in news:
                self._note_written(collection, change)

    async def _commit(
        self,
        collection: Collection,
        news: Sequence[Change],
        position: Position,
        *,
        apply: Callable[[Transaction, Collection, Change], Awaitable[None]],
    ) -> None:
        async with self._database.writing() as transaction:
            for change in news:
                await apply(transaction, collection, change)
            await PositionRepository(transaction).move(
                collection, old=self._positions[collection], new=position
            )

    async def _apply_apart(
        self, transaction: Transaction, collection: Collection, change: Change
    ) -> None:
        """Apply a change, or leave it out where the database can't take it."""
        try:
            async with transaction.begin_nested():
                await self._apply(transaction, collection, change)
        except MusterError:
            raise
        except Exception:  # what is odd about the object is not known; it is named and counted
            metadata = change.object.get("metadata") or {}
            what = f"{metadata.get('namespace')}/{metadata.get('name')}"
            _log.exception("left out: %s %s of %s", change.kind, what, collection)
            self._metrics.errors.labels("change").inc()

    def _note_living(self, collection: Collection, change: Change) -> None:
        if change.kind is Kind.DELETED:
            self._living[collection].discard(change.object["metadata"]["uid"])
        elif change.object:
            self._living[collection].add(change.object["metadata"]["uid"])

    def _note_written(self, collection: Collection, change: Change) -> None:
        if change.kind is Kind.SYNCED:
            self.synced.add(collection)
        elif collection is Collection.NODES:
            node = facts.node_facts(change.object)
            self._nodes[node.name] = node
        elif collection is Collection.PODS and (seen := self._pod(change)) is not None:
            if change.kind is Kind.DELETED:
                self._pods.pop(seen.pod_uid, None)
            else:
                self._pods[seen.pod_uid] = seen

    def _pod(self, change: Change) -> SeenPod | None:
        gone_ms = self._clock() if change.kind is Kind.DELETED else None
        return facts.seen_pod(change.object, gone_ms=gone_ms)

    def _behind(self, collection: Collection, changes: Sequence[Change]) -> Position:
        """The position once *changes* are written: where the last one is that is not part of a
        list."""
        old = self._positions[collection]
        stored = old.resource_version if old is not None and old.cluster == self._cluster else ""
        whole = [change.resource_version for change in changes if not change.is_listed]
        return Position(self._cluster, whole[-1] if whole else stored, self._clock())

    def _is_due(self, collection: Collection, new: Position) -> bool:
        old = self._positions[collection]
        return old is None or new.seen_ms - old.seen_ms >= _IDLE_MS

    def _is_news(self, collection: Collection, change: Change) -> bool:
        """Whether a change has something to write; nodes and pods change all the time."""
        match change.kind, collection:
            case Kind.BOOKMARK, _:
                return False
            case Kind.SYNCED, _:
                return True
            case _, Collection.NODES:
                node = facts.node_facts(change.object)
                return change.kind is not Kind.DELETED and self._nodes.get(node.name) != node
            case _, Collection.PODS:
                seen = self._pod(change)
                return seen is not None and self._pods.get(seen.pod_uid) != seen
            case _:
                return True

    async def _apply(
        self, transaction: Transaction, collection: Collection, change: Change
    ) -> None:
        if change.kind is Kind.SYNCED:
            await self._close_vanished(transaction, collection)
            return
        match collection:
            case Collection.JOBS:
                await self._job(transaction, change)
            case Collection.PODS if (seen := self._pod(change)) is not None:
                await HoldingRepository(transaction).see(seen)
            case Collection.NODES:
                await HoldingRepository(transaction).know(facts.node_facts(change.object))
            case Collection.PRICES if change.kind is not Kind.DELETED:
                await self._prices(transaction, change.object)

    async def _job(self, transaction: Transaction, change: Change) -> None:
        jobs, job = JobRepository(transaction), facts.job_facts(change.object)
        await jobs.record(job, facts.attempts_of(change.object))
        await HoldingRepository(transaction).place(facts.placed_of(change.object))
        if change.kind is Kind.DELETED:
            gone_ms = self._clock() if job.deleting_ms is None else job.deleting_ms
            await jobs.close([job.uid], gone_ms, is_uncertain=False)

    async def _prices(self, transaction: Transaction, config_map: dict[str, Any]) -> None:
        """Take a price list over; one that is not valid leaves the one before it in force."""
        try:
            rows = facts.price_rows((config_map.get("data") or {}).get("prices.yaml") or "[]")
        except InvalidSpec as error:
            _log.error("the price list is left as it was: %s", error)
            self._metrics.errors.labels("prices").inc()
            return
        await PriceRepository(transaction).replace(rows)

    async def _close_vanished(self, transaction: Transaction, collection: Collection) -> None:
        """End what is in the database and not in a complete list.

        It ended while nobody watched, some time after the last moment at which it was known. A job
        that the API just created may not be in the list yet; its watch event brings it back.
        """
        old = self._positions[collection]
        last_ms = self._clock() if old is None else old.seen_ms
        if collection is Collection.JOBS:
            jobs = JobRepository(transaction)
            gone = await jobs.living() - self._living[collection]
            await jobs.close(gone, last_ms, is_uncertain=True)
        elif collection is Collection.PODS:
            holdings = HoldingRepository(transaction)
            gone = await holdings.living_pods() - self._living[collection]
            await holdings.lose(gone, last_ms)
        else:
            return
        if gone:
            _log.warning("%d %s vanished while nobody watched", len(gone), collection)
