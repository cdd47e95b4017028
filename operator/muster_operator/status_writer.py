"""Guarded writes of a job's status: what changed, on top of the version that was decided upon."""

import logging
from collections.abc import Callable
from typing import Any

from muster import wire
from muster.job_status import JobStatus
from muster.status_raw import conditions_of, difference
from muster_kube import JOBS, ApiNotFound, Kube, StaleVersion
from muster_operator.answers import is_gone
from muster_operator.cache import Cache
from muster_operator.records import JobRecord

_log = logging.getLogger(__name__)


class StatusWriter:
    """Writes status, and takes the answer into the cache at once."""

    def __init__(self, kube: Kube, cache: Cache, clock: Callable[[], float]) -> None:
        self._kube = kube
        self._cache = cache
        self._clock = clock

    async def write(self, record: JobRecord, status: JobStatus) -> bool:
        """Make *status* the job's, if nobody wrote since it was read.

        False if somebody did, or if the job is gone: the cache then knows it as it is now, and
        whoever asked decides anew. Raises an `ApiError` where there is no answer to act on.
        """
        change = difference(record.status, status)
        if not change:
            return True
        raw = record.raw
        known = tuple((raw.get("status") or {}).get("conditions") or ())
        body: dict[str, Any] = {
            "metadata": {"uid": record.uid, "resourceVersion": raw["metadata"]["resourceVersion"]},
            "status": {
                **change,
                "observedGeneration": record.generation,
                "conditions": conditions_of(status, known, record.generation, self._clock()),
            },
        }
        try:
            answer = await self._kube.patch(
                JOBS.path(record.namespace, record.name, "status"),
                body,
                fieldManager=wire.OPERATOR_MANAGER,
            )
        except StaleVersion:
            await self.refresh(record)
            return False
        except ApiNotFound as error:
            if not is_gone(error, record.name):
                raise
            self._cache.job_gone(record.uid)
            return False
        self._cache.job_changed(answer)
        return True

    async def refresh(self, record: JobRecord) -> None:
        """Read the job as it is now."""
        try:
            raw = await self._kube.get(JOBS.path(record.namespace, record.name))
        except ApiNotFound as error:
            if not is_gone(error, record.name):
                raise
            self._cache.job_gone(record.uid)
            return
        self._cache.job_changed(raw)
        if raw["metadata"]["uid"] != record.uid:
            self._cache.job_gone(record.uid)
