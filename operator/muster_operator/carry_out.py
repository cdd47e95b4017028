"""The deeds: what makes the cluster be as a committed placement says.

Each may be repeated at any time. Names follow from the decision, so that creating twice is
harmless; "already exists" is success only after owner and attempt are checked, and an object of
another uid is never taken over.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Sequence
from typing import Any, Final

from muster import wire
from muster.job_status import Placement
from muster.parse import TrainingJob
from muster.steps import Create, Deed, Delete, Expire, Release
from muster_kube import JOBS, PODS, SERVICES, AlreadyExists, ApiError, Kube, Resource
from muster_operator.answers import is_gone, is_refusal
from muster_operator.cache import Cache
from muster_operator.metrics import Metrics
from muster_operator.pod_facts import owner_of
from muster_operator.records import JobRecord
from muster_operator.render import GangBody, service
from muster_operator.settings import Settings

_log = logging.getLogger(__name__)
_PAUSES: Final = (0.05, 0.1, 0.2, 0.4, 0.8)


class Refused(Exception):
    """The API server will not take part of the gang; its words are for the user."""


class CarryOut:
    """Does deeds for one job at a time; pods of all jobs share a bounded number of requests."""

    def __init__(self, kube: Kube, cache: Cache, settings: Settings, metrics: Metrics) -> None:
        self._kube = kube
        self._cache = cache
        self._settings = settings
        self._metrics = metrics
        self._places = asyncio.Semaphore(settings.writes)

    async def do(self, record: JobRecord, deed: Deed, now: float) -> None:
        """One deed. Raises `Refused` where the gang cannot be made whole, else an `ApiError`."""
        match deed:
            case Create():
                await self._create(record)
            case Delete():
                await self._delete(record, deed, now)
            case Release():
                await self._release(record)
            case Expire():
                path = JOBS.path(record.namespace, record.name)
                request = self._kube.delete(path, uid=record.uid, propagation="Background")
                await _unless_gone(request, record.name)

    async def hold(self, record: JobRecord) -> None:
        """Put the recorder's finalizer on a job that holds GPUs from now on."""
        if wire.RECORDER_FINALIZER in record.finalizers or record.is_deleted:
            return
        await self._set_finalizers(record, (*record.finalizers, wire.RECORDER_FINALIZER))

    async def _create(self, record: JobRecord) -> None:
        """Make the gang whole in pods, or say why it cannot be."""
        job, placement = record.job, record.status.placement
        assert job is not None
        assert placement is not None
        await self.hold(record)
        labels = record.raw["metadata"].get("labels") or {}
        # What is given to a running gang carries the round of the others, which they all share.
        round_ = placement.round or record.status.round
        body = GangBody(job, placement, round_, labels, self._settings.api_url)
        present = {
            pod.facts.replica
            for pod in self._cache.pods_of(record.uid)
            if pod.facts is not None and pod.facts.attempt == placement.attempt
        }
        missing = [r for r in range(len(placement.nodes)) if r not in present]
        progress = _Progress(self._settings.whole_within)
        deeds = [self._pod(record, job, placement, body, r, progress) for r in missing]
        await _all_or_refused([self._service(job, progress), *deeds])
        self._metrics.whole_seconds.observe(max(time.time() - placement.decided_at, 0.0))

    async def _service(self, job: TrainingJob, progress: "_Progress") -> None:
        path = SERVICES.path(job.namespace)
        name = wire.service_name(job.name)
        await self._make(SERVICES, job, path, service(job), name, None, progress)

    async def _pod(
        self,
        record: JobRecord,
        job: TrainingJob,
        placement: Placement,
        body: GangBody,
        replica: int,
        progress: "_Progress",
    ) -> None:
        incarnation = placement.incarnation(replica)
        name = wire.pod_name(job.name, placement.attempt, replica, incarnation)
        path = PODS.path(job.namespace)
        attempt = str(placement.attempt)
        made = await self._make(PODS, job, path, body.pod(replica), name, attempt, progress)
        self._metrics.pods_created.inc()
        self._cache.pod_changed(made)

    async def _make(
        self,
        resource: Resource,
        job: TrainingJob,
        path: str,
        body: Any,
        name: str,
        attempt: str | None,
        progress: "_Progress",
    ) -> dict[str, Any]:
        """Create one object, or find that it is there already and ours."""
        tries = 0
        while True:
            try:
                async with self._places:
                    progress.check()
                    made = await self._kube.create(path, body)
            except AlreadyExists:
                found = await self._found(resource, job, name, attempt)
                if found is not None:
                    return found
                words = f"{resource.kind} {name} exists and belongs to something else"
            except ApiError as error:
                if is_refusal(error):
                    raise progress.refuse(str(error)) from error
                words = str(error)
            else:
                progress.note()
                return made
            if progress.is_over:
                raise progress.refuse(f"not whole within {progress.seconds:g} s: {words}")
            await asyncio.sleep(_PAUSES[min(tries, len(_PAUSES) - 1)])
            tries += 1

    async def _found(
        self, resource: Resource, job: TrainingJob, name: str, attempt: str | None
    ) -> dict[str, Any] | None:
        """The object of this name if it is of this job and attempt. Never anybody else's."""
        try:
            found = await self._kube.get(resource.path(job.namespace, name))
        except ApiError:
            return None
        labels = found["metadata"].get("labels") or {}
        is_ours = owner_of(found) == job.uid and "deletionTimestamp" not in found["metadata"]
        return found if is_ours and attempt in (None, labels.get(wire.LABEL_ATTEMPT)) else None

    async def _delete(self, record: JobRecord, deed: Delete, now: float) -> None:
        path = PODS.path(record.namespace, deed.name)
        grace = 0 if deed.by_force else None
        async with self._places:
            request = self._kube.delete(path, uid=deed.uid, grace_seconds=grace)
            is_there = await _unless_gone(request, deed.name)
        if is_there:
            self._cache.mark_deleting(record, deed.uid, now)
        else:
            self._cache.forget_pod(deed.uid, record.uid)

    async def _release(self, record: JobRecord) -> None:
        """Remove the recorder's finalizer, and nobody else's."""
        left = tuple(f for f in record.finalizers if f != wire.RECORDER_FINALIZER)
        await self._set_finalizers(record, left)

    async def _set_finalizers(self, record: JobRecord, finalizers: tuple[str, ...]) -> None:
        metadata = {
            "uid": record.uid,
            "resourceVersion": record.raw["metadata"]["resourceVersion"],
            "finalizers": list(finalizers),
        }
        path = JOBS.path(record.namespace, record.name)
        answer = await self._kube.patch(
            path, {"metadata": metadata}, fieldManager=wire.OPERATOR_MANAGER
        )
        self._cache.job_changed(answer)


class _Progress:
    """Whether a gang still comes along. A large one takes long, and may, as long as pods come."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._last = time.monotonic()
        self._words: str | None = None

    def note(self) -> None:
        """Something was created."""
        self._last = time.monotonic()

    def refuse(self, words: str) -> Refused:
        """One part was refused: the others need not be tried."""
        self._words = self._words or words
        return Refused(self._words)

    def check(self) -> None:
        """Raise the refusal that another part met."""
        if self._words is not None:
            raise Refused(self._words)

    @property
    def is_over(self) -> bool:
        """Whether nothing came for too long."""
        return time.monotonic() - self._last > self.seconds


async def _unless_gone(request: Awaitable[object], name: str) -> bool:
    """Whether the object was still there; a 409 means that another one has its name now."""
    try:
        await request
    except ApiError as error:
        if error.status == 409 or is_gone(error, name):
            return False
        raise
    return True


async def _all_or_refused(deeds: Sequence[Awaitable[None]]) -> None:
    """Do all of them at once, wait for each, and raise a refusal before any other error.

    Requests that are under way are never cut off: what they create has to be seen, to be deleted.
    """
    results = await asyncio.gather(*deeds, return_exceptions=True)
    failures = [result for result in results if isinstance(result, BaseException)]
    if failures:
        raise next((f for f in failures if isinstance(f, Refused)), failures[0])
