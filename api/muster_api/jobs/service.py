"""What the routes of jobs do. What lives is read from Kubernetes, what was from the database."""

import logging
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from muster.cost import Bill
from muster.errors import Conflict, NotFound, Unavailable
from muster.times import text_of
from muster_api.facts import attempts_of, job_facts
from muster_api.jobs import manifests
from muster_api.jobs.schemas import JobDetail, JobList
from muster_api.jobs.views import bill_of, detail_of, item_of
from muster_api.parts import Parts
from muster_db.database import Transaction
from muster_db.holdings import HoldingRepository
from muster_db.jobs import Filter, JobRepository
from muster_db.prices import PriceRepository
from muster_db.records import Job, JobFacts
from muster_db.reports import ReportRepository
from muster_kube import AlreadyExists, ApiNotFound

_log = logging.getLogger(__name__)


async def submit(parts: Parts, job: dict[str, Any], *, is_dry_run: bool) -> JobDetail:
    """Create *job*, or only find out whether it would be accepted."""
    namespace = job["metadata"]["namespace"]
    tried = await accepted(parts, job)
    if is_dry_run:
        return _new(tried)
    created = await _create(parts, job, is_dry_run=False)
    try:
        async with parts.database.writing() as transaction:
            await JobRepository(transaction).ensure(job_facts(created))
    except Unavailable as error:
        # It exists, and the recorder will write it; to fail now would invite a second one.
        _log.warning("job %s/%s is not in the list yet: %s", namespace, _name(created), error)
    return _new(created)


async def accepted(parts: Parts, job: dict[str, Any]) -> dict[str, Any]:
    """*job* as it would be created. Raises what its submission would raise."""
    # The API server fills in defaults and checks the schema; what it took is then checked for what
    # a schema can't say.
    tried = await _create(parts, job, is_dry_run=True)
    await manifests.check(tried, parts.cluster)
    return tried


async def _create(parts: Parts, job: dict[str, Any], *, is_dry_run: bool) -> dict[str, Any]:
    """The job as the API server takes it. Raises `Conflict` where one of its name is there."""
    namespace, name = (job["metadata"].get(key) for key in ("namespace", "name"))
    try:
        return await parts.cluster.create_job(namespace, job, is_dry_run=is_dry_run)
    except AlreadyExists as error:
        raise Conflict(
            f"metadata.name: there is a job {name} in namespace {namespace} already; "
            "choose another name, or cancel that one and wait until it is gone"
        ) from error


async def listed(
    parts: Parts, asked: Filter, *, limit: int, after: tuple[int, str] | None
) -> JobList:
    """A page of jobs."""
    async with parts.database.reading() as transaction:
        found = await JobRepository(transaction).page(asked, limit=limit + 1, after=after)
        page = found[:limit]
        ledgers = await HoldingRepository(transaction).ledgers([job.uid for job in page])
        prices = await PriceRepository(transaction).all()
    now_ms = parts.clock()
    return JobList(
        items=[item_of(job, bill_of(ledgers[job.uid], prices, now_ms)) for job in page],
        next=f"{page[-1].submitted_ms}-{page[-1].uid}" if len(found) > limit else None,
    )


async def read(parts: Parts, namespace: str, name: str) -> JobDetail:
    """The job of this name: the one that exists, else the last one that did."""
    live = await live_job(parts, namespace, name)
    async with parts.database.reading() as transaction:
        job = await known(transaction, namespace, name, live)
        return await _detail(parts, transaction, job, live)


async def cancel(parts: Parts, namespace: str, name: str) -> JobDetail:
    """Delete the job; its history stays."""
    live = await live_job(parts, namespace, name)
    async with parts.database.reading() as transaction:
        job = await known(transaction, namespace, name, live)
        if live is None:
            gone = "" if job.deleted_ms is None else f" at {text_of(job.deleted_ms)}"
            raise NotFound(f"job {namespace}/{name} was deleted{gone}; its history stays")
        detail = await _detail(parts, transaction, job, live)
    await parts.cluster.delete_job(namespace, name, job.uid)
    return detail.model_copy(update={"deleting": detail.deleting or text_of(parts.clock())})


async def known(
    transaction: Transaction, namespace: str, name: str, live: Mapping[str, Any] | None
) -> Job:
    """What is known of a job, with what its object says now. Raises `NotFound`."""
    jobs = JobRepository(transaction)
    if live is None:
        stored = await jobs.find(namespace, name)
        if stored is None:
            raise NotFound(f"there is no job {name} in namespace {namespace}")
        return stored
    facts = job_facts(live)
    stored = await jobs.get(facts.uid)
    values = {each.name: getattr(facts, each.name) for each in fields(JobFacts)}
    return Job(**values) if stored is None else replace(stored, **values, deleted_ms=None)


async def live_job(parts: Parts, namespace: str, name: str) -> dict[str, Any] | None:
    """The job's object, None where there is none."""
    try:
        return await parts.cluster.job(namespace, name)
    except ApiNotFound:
        return None


async def _detail(
    parts: Parts, transaction: Transaction, job: Job, live: Mapping[str, Any] | None
) -> JobDetail:
    tries = {each.attempt: each for each in await JobRepository(transaction).attempts_of(job.uid)}
    if live is not None:
        tries.update((each.attempt, each) for each in attempts_of(live))
    ledger = (await HoldingRepository(transaction).ledgers([job.uid]))[job.uid]
    prices = await PriceRepository(transaction).all()
    return detail_of(
        job,
        bill_of(ledger, prices, parts.clock()),
        [tries[number] for number in sorted(tries)],
        await ReportRepository(transaction, job.uid).checkpoints(),
    )


def _new(obj: Mapping[str, Any]) -> JobDetail:
    """A job that nothing is known of but its object."""
    facts = job_facts(obj)
    values = {each.name: getattr(facts, each.name) for each in fields(JobFacts)}
    return detail_of(Job(**values), Bill(), (), ())


def _name(obj: Mapping[str, Any]) -> str:
    return str(obj["metadata"]["name"])
