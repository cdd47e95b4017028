"""Letting ended jobs go: taking the recorder's finalizer off once their end is in the database.

Works from the database alone, so that a recorder that was away does what is due as soon as it is
back. A deleted job waits for the ends of its pods, but not for ever: what is not known by then
counts as ended when the job was deleted.
"""

import logging
from collections.abc import Callable

from muster import wire
from muster_api.recorder.metrics import RecorderMetrics
from muster_db.database import Database
from muster_db.holdings import HoldingRepository
from muster_db.jobs import JobRepository
from muster_db.records import Job
from muster_kube import JOBS, ApiNotFound, Kube, StaleVersion

_log = logging.getLogger(__name__)


class Endings:
    """Takes finalizers off."""

    def __init__(
        self,
        database: Database,
        kube: Kube,
        clock: Callable[[], int],
        metrics: RecorderMetrics,
        *,
        wait_ms: int,
    ) -> None:
        self._database = database
        self._kube = kube
        self._clock = clock
        self._metrics = metrics
        self._wait_ms = wait_ms

    async def release(self) -> None:
        """Let go every job whose end is written."""
        async with self._database.reading() as transaction:
            jobs = await JobRepository(transaction).ending()
            holdings = HoldingRepository(transaction)
            still_held = {job.uid: await holdings.open_count(job.uid) for job in jobs}
        for job in jobs:
            is_complete = not still_held[job.uid]
            if is_complete or self._is_overdue(job):
                await self._release(job, is_complete=is_complete)

    def _is_overdue(self, job: Job) -> bool:
        return job.deleting_ms is not None and self._clock() - job.deleting_ms > self._wait_ms

    async def _release(self, job: Job, *, is_complete: bool) -> None:
        path = JOBS.path(job.namespace, job.name)
        try:
            obj = await self._kube.get(path)
            metadata = obj["metadata"]
            finalizers = metadata.get("finalizers") or []
            if metadata["uid"] != job.uid or wire.RECORDER_FINALIZER not in finalizers:
                return
            kept = [each for each in finalizers if each != wire.RECORDER_FINALIZER]
            version = metadata["resourceVersion"]
            await self._kube.patch(
                path, {"metadata": {"finalizers": kept, "resourceVersion": version}}
            )
        except (ApiNotFound, StaleVersion):
            # Gone already, or changed: its event comes, and we look again.
            return
        self._metrics.released.labels(str(is_complete).lower()).inc()
        _log.info("let go job=%s/%s complete=%s", job.namespace, job.name, is_complete)
