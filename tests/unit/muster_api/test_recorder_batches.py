"""Batches of changes: how far the recorder says it came, and what it does with odd objects."""

import logging
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from apis import NOW_MS, Clock, job_manifest, job_pod
from muster.errors import Conflict
from muster_api.facts import job_facts
from muster_api.recorder.history import History
from muster_api.recorder.metrics import RecorderMetrics
from muster_api.recorder.streams import Collection
from muster_db.database import Database
from muster_db.holdings import HoldingRepository
from muster_db.jobs import JobRepository
from muster_db.positions import PositionRepository
from muster_db.prices import PriceRepository
from muster_kube import Change, Kind


def job(name: str = "digits", **status: Any) -> dict[str, Any]:
    made = {**job_manifest(name), "status": status}
    made["metadata"] |= {
        "namespace": "a",
        "uid": f"uid-{name}",
        "creationTimestamp": "2026-12-01T09:30:00Z",
    }
    return made


def pod(uid: str, attempt: str = "1") -> dict[str, Any]:
    made = job_pod(job())
    made["metadata"] |= {"uid": uid, "creationTimestamp": "2026-12-01T09:31:00Z"}
    made["metadata"]["labels"]["muster.dev/attempt"] = attempt
    return made


def listed(obj: dict[str, Any], version: str) -> Change:
    return Change(Kind.ADDED, obj, version, is_listed=True)


class Written:
    """A history, its clock and its counters."""

    def __init__(self, database: Database, cluster: str = "c") -> None:
        self.clock = Clock()
        self.registry = CollectorRegistry()
        metrics = RecorderMetrics(self.registry)
        self.history = History(database, cluster, self.clock, metrics)
        self._database = database

    async def position(self, collection: Collection) -> str | None:
        async with self._database.reading() as transaction:
            found = await PositionRepository(transaction).get(collection)
        return None if found is None else found.resource_version

    def errors(self, what: str) -> float | None:
        return self.registry.get_sample_value("muster_recorder_errors_total", {"what": what})


@pytest.fixture
def written(database: Database) -> Written:
    return Written(database)


async def test_a_list_is_gone_on_from_only_when_all_of_it_is_written(written) -> None:
    jobs = Collection.JOBS
    assert await written.history.open(jobs) == ""

    await written.history.write(jobs, [listed(job("x"), "50")])
    halfway = await written.position(jobs)
    await written.history.write(jobs, [listed(job("y"), "50"), Change(Kind.SYNCED, {}, "50")])

    assert ("", "50") == (halfway, await written.position(jobs))
    assert {jobs} == written.history.synced


async def test_a_bookmark_moves_on_from_time_to_time(written) -> None:
    nodes = Collection.NODES
    await written.history.open(nodes)
    await written.history.write(nodes, [Change(Kind.SYNCED, {}, "50")])

    await written.history.write(nodes, [Change(Kind.BOOKMARK, {}, "60")])
    at_once = await written.position(nodes)
    written.clock.pass_seconds(6)
    await written.history.write(nodes, [Change(Kind.BOOKMARK, {}, "70")])

    assert ("50", "70") == (at_once, await written.position(nodes))


async def test_an_object_that_no_database_takes_is_left_out_and_counted(
    written, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    odd, good = pod("odd", attempt="9" * 30), pod("good")
    pods = Collection.PODS
    await written.history.open(pods)

    with caplog.at_level(logging.CRITICAL):
        await written.history.write(pods, [listed(odd, "5"), Change(Kind.ADDED, good, "6")])

    async with database.reading() as transaction:
        assert {"good"} == await HoldingRepository(transaction).living_pods()
    assert (1.0, 1.0, "6") == (
        written.errors("batch"),
        written.errors("change"),
        await written.position(pods),
    )


async def test_what_a_user_can_put_into_a_job_is_made_to_fit(written, database: Database) -> None:
    odd = job(phase="Failed", message="a\0b" + "x" * 9000, reason="r" * 200)
    odd["metadata"]["annotations"] = {"muster.dev/user": "u" * 900}
    await written.history.open(Collection.JOBS)

    await written.history.write(Collection.JOBS, [Change(Kind.ADDED, odd, "5")])

    async with database.reading() as transaction:
        found = await JobRepository(transaction).get("uid-digits")
    assert found is not None
    assert ("abx", 4096, 128, 512) == (
        found.message[:3],
        len(found.message),
        len(found.reason),
        len(found.user_name or ""),
    )
    assert written.errors("batch") is None


async def test_a_wrong_price_list_leaves_the_one_before_it(written, database: Database) -> None:
    row = (
        "[{gpuModel: H100, capacityType: spot, microUsdPerGpuHour: 5, from: 2026-01-01T00:00:00Z}]"
    )
    lists = [{"metadata": {"uid": "p"}, "data": {"prices.yaml": text}} for text in (row, "- 1")]
    await written.history.open(Collection.PRICES)

    for version, price_list in enumerate(lists):
        change = Change(Kind.MODIFIED, price_list, str(version))
        await written.history.write(Collection.PRICES, [change])

    async with database.reading() as transaction:
        assert [5] == [
            each.micro_usd_per_gpu_hour for each in await PriceRepository(transaction).all()
        ]
    assert written.errors("prices") == 1.0


async def test_a_second_recorder_is_stopped_at_its_first_write(database: Database) -> None:
    first, second = Written(database), Written(database)
    for each in (first, second):
        await each.history.open(Collection.JOBS)
    await first.history.write(Collection.JOBS, [Change(Kind.ADDED, job(), "5")])

    with pytest.raises(Conflict):
        await second.history.write(Collection.JOBS, [Change(Kind.ADDED, job("x"), "6")])

    async with database.reading() as transaction:
        assert await JobRepository(transaction).get("uid-x") is None


async def test_a_job_that_comes_back_is_no_longer_deleted(written, database: Database) -> None:
    """The API made it and its row after the list was read: the list alone says it is gone."""
    jobs = Collection.JOBS
    await written.history.open(jobs)
    async with database.writing() as transaction:
        await JobRepository(transaction).ensure(job_facts(job()))
    await written.history.write(jobs, [Change(Kind.SYNCED, {}, "5")])

    await written.history.write(jobs, [Change(Kind.ADDED, job(phase="Running"), "6")])

    async with database.reading() as transaction:
        found = await JobRepository(transaction).get("uid-digits")
    assert found is not None
    assert ("Running", None, False) == (found.phase, found.deleted_ms, found.is_end_uncertain)
    assert NOW_MS == written.clock()
