"""Explanations and dry runs, worked out from what the operator sees."""

import logging
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from muster.errors import NotFound, Unavailable
from muster.parse import gang_of, job_of
from muster.parse.job import TrainingJob
from muster.scheduling.cluster import Objects
from muster.scheduling.snapshot import Gang
from muster.whatif.dry_run import dry_run
from muster.whatif.explanation import explained
from muster.whatif.views import Shown, dry_run_view, explanation_view, shown_to
from muster_api.auth import Access, Gate, Identity
from muster_api.explanations.schemas import DryRun, Explanation, Source
from muster_api.jobs.service import accepted, known, live_job
from muster_api.parts import Parts
from muster_api.scheduler import Thinker
from muster_db.prices import PriceRepository
from muster_db.records import Job

_log = logging.getLogger(__name__)
_SUCCEEDED = "Succeeded"


async def explain(
    parts: Parts, thinker: Thinker, gate: Gate, caller: Identity, namespace: str, name: str
) -> Explanation:
    """Why the job waits, from the scheduler if it plans it, else from its status."""
    live = await live_job(parts, namespace, name)
    async with parts.database.reading() as transaction:
        job = await known(transaction, namespace, name, live)
    if live is None:
        raise NotFound(f"job {namespace}/{name} was deleted; nothing is planned for it any more")
    key = f"{namespace}/{name}"
    try:
        inputs = await thinker.inputs()
    except Unavailable as error:
        _log.warning("explaining %s from its status: %s", key, error)
        return _by_status(job)
    shown = await names_for(gate, caller, inputs.objects)
    goes_on = thinker.allowance()
    found = await thinker.work(
        lambda: explained(inputs.objects, inputs.policy, inputs.now, key, goes_on)
    )
    if found is None:
        return _by_status(job)
    view = explanation_view(found, shown)
    return Explanation(job=name, namespace=namespace, source=Source.SCHEDULER, **view)


async def try_out(
    parts: Parts, thinker: Thinker, gate: Gate, caller: Identity, job: dict[str, Any]
) -> DryRun:
    """What *job* would do; refused as its submission would be."""
    tried = job_of(await accepted(parts, job))
    inputs = await thinker.inputs()
    gang = replace(await _gang(parts, tried), submitted=inputs.now)
    async with parts.database.reading() as transaction:
        prices = await PriceRepository(transaction).all()
    shown = await names_for(gate, caller, inputs.objects)

    def think() -> dict[str, Any]:
        found = dry_run(inputs.objects, inputs.policy, inputs.now, gang)
        return dry_run_view(found, inputs.objects, prices, inputs.now, shown)

    view = await thinker.work(think)
    return DryRun(job=tried.name, namespace=tried.namespace, **view)


async def names_for(gate: Gate, caller: Identity, objects: Objects) -> Shown:
    """How the names of jobs are shown to *caller*: whole where they may list the namespace."""
    if await gate.may(caller, Access("list", "trainingjobs")):
        return shown_to(dict.fromkeys(_namespaces(objects), True))
    return shown_to(
        {
            namespace: await gate.may(caller, Access("list", "trainingjobs", namespace))
            for namespace in _namespaces(objects)
        }
    )


def _namespaces(objects: Objects) -> Iterable[str]:
    return sorted({gang.key.partition("/")[0] for gang in objects.gangs})


async def _gang(parts: Parts, job: TrainingJob) -> Gang:
    """The job as the scheduler would see it."""
    gang = gang_of(job, None)
    if job.after is None:
        return gang
    before = await live_job(parts, job.namespace, job.after)
    phase = ((before or {}).get("status") or {}).get("phase")
    if phase == _SUCCEEDED:
        return gang
    return replace(gang, held_back=f"comes after {job.after}, which has not succeeded")


def _by_status(job: Job) -> Explanation:
    """What the job's own status says."""
    status = job.status
    return Explanation(
        job=job.name,
        namespace=job.namespace,
        source=Source.STATUS,
        code=job.reason or job.phase,
        message=job.message,
        queue_position=status.get("queuePosition"),
        predicted_start=status.get("predictedStart"),
        unknown_because=None,
        waits_for=status.get("waitsFor"),
        changes=[],
        changes_complete=False,
        evicts=[],
    )
