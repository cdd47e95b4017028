"""What is asked of the API server before a gang is committed: such pods, and so many?

One pod is created as a dry run, which meets every admission plugin, webhook and policy that the
real ones will meet; as the API server would store it, with the defaults of a LimitRange, it is
then counted against the namespace's quotas. Answers are kept for a few seconds, so that many equal
gangs cost one request.
"""

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Final

import orjson

from muster.decisions import placed
from muster.job_status import JobStatus
from muster.parse import TrainingJob
from muster_kube import PODS, AlreadyExists, ApiError, Kube
from muster_operator.answers import is_refusal
from muster_operator.quota import shortfall, times, usage_of
from muster_operator.records import JobRecord
from muster_operator.render import GangBody
from muster_operator.surroundings import Surroundings

_KEPT_SECONDS: Final = 5.0
_MAX_KEPT: Final = 1000


class Admission:
    """Asks before the commit. Room that was found is promised until the pods are there."""

    def __init__(self, kube: Kube, around: Surroundings) -> None:
        self._kube = kube
        self._around = around
        self._answers: dict[tuple[str, bytes], tuple[float, asyncio.Task[str | Mapping[str, Any]]]]
        self._answers = {}
        self._promised: dict[str, dict[str, dict[str, int]]] = {}

    async def refusal(self, record: JobRecord, job: TrainingJob, pods: int) -> str | None:
        """Why the API server would not take the gang's pods; `None` if it would."""
        answer = await self._ask(record, job)
        if isinstance(answer, str):
            return answer
        promised: dict[str, int] = {}
        for amounts in self._promised.get(job.namespace, {}).values():
            for resource, amount in amounts.items():
                promised[resource] = promised.get(resource, 0) + amount
        missing = shortfall(self._around.quotas(job.namespace), answer, pods, promised)
        if missing is None and self._around.quotas(job.namespace):
            mine = self._promised.setdefault(job.namespace, {})
            mine[record.uid] = times(usage_of(answer), pods)
        return missing

    def settled(self, record: JobRecord) -> None:
        """The pods are there, or will not come: quotas say themselves what is used now."""
        of_namespace = self._promised.get(record.namespace)
        if of_namespace is not None:
            of_namespace.pop(record.uid, None)
            if not of_namespace:
                del self._promised[record.namespace]

    async def _ask(self, record: JobRecord, job: TrainingJob) -> str | Mapping[str, Any]:
        """The refusal of a dry-run pod, or its spec as it would be stored."""
        key = (job.namespace, _signature(record, job))
        now = time.monotonic()
        known = self._answers.get(key)
        if known is None or known[0] < now:
            if len(self._answers) >= _MAX_KEPT:
                self._answers.clear()
            task = asyncio.get_running_loop().create_task(self._try(record, job))
            known = self._answers[key] = (now + _KEPT_SECONDS, task)
        try:
            # One asker that is cancelled must not take the answer from the others.
            return await asyncio.shield(known[1])
        except ApiError:
            self._answers.pop(key, None)
            raise

    async def _try(self, record: JobRecord, job: TrainingJob) -> str | Mapping[str, Any]:
        body = _sample(record, job)
        try:
            answer = await self._kube.create(PODS.path(job.namespace), body, dryRun="All")
        except AlreadyExists:
            # Names are no matter here; the real pods are checked for their owner.
            spec: Mapping[str, Any] = orjson.loads(body)["spec"]
            return spec
        except ApiError as error:
            if not is_refusal(error):
                raise
            return str(error)
        stored: Mapping[str, Any] = answer["spec"]
        return stored


def _sample(record: JobRecord, job: TrainingJob) -> bytes:
    """The first pod of the next attempt, on no node in particular."""
    sample = placed(JobStatus(), ("node",), "", gpus=0, port=1, now=0.0).placement
    assert sample is not None
    labels = record.raw["metadata"].get("labels") or {}
    pod = orjson.loads(GangBody(job, sample, 1, labels, "").pod(0))
    pod["metadata"]["name"] = f"{job.name}-{record.status.attempt + 1}-0-0"
    pod["spec"].pop("nodeName", None)
    return orjson.dumps(pod)


def _signature(record: JobRecord, job: TrainingJob) -> bytes:
    """Equal for jobs whose pods differ in nothing that admission looks at but their names."""
    labels = record.raw["metadata"].get("labels") or {}
    return orjson.dumps(
        (job.template, job.gpus_per_replica, job.queue, labels), option=orjson.OPT_SORT_KEYS
    )
