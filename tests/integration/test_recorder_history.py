"""The recorder against a real API server: history, resuming, deletion, and what it tells."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest
import pytest_asyncio

from eventually import eventually, stays
from muster.cost import PriceRow
from muster.errors import Conflict, Unavailable
from muster.times import text_of
from muster_api.clock import now_ms
from muster_api.facts import job_facts
from muster_api.jobs.views import bill_of
from muster_api.recorder.run import Recorder
from muster_db.database import Database
from muster_db.holdings import HoldingRepository
from muster_db.jobs import JobRepository
from muster_db.locks import held
from muster_db.positions import PositionRepository
from muster_db.prices import PriceRepository
from muster_db.records import Job, Position
from muster_kube import JOBS, ApiNotFound, Kube
from recorders import Dying, Killed, Scene, recording

pytestmark = pytest.mark.integration


@pytest_asyncio.fixture
async def kube(cluster) -> AsyncIterator[Kube]:
    """The test's own way to the API server: it may do everything."""
    async with await Kube.connect(cluster.bootstrap_kubeconfig) as opened:
        yield opened


@pytest_asyncio.fixture
async def account(cluster) -> AsyncIterator[Kube]:
    """The recorder's way, with the rights of its account only."""
    async with await Kube.connect(cluster.kubeconfig_of("muster-recorder")) as opened:
        yield opened


@pytest_asyncio.fixture
async def scene(kube: Kube, namespace: str) -> AsyncIterator[Scene]:
    played = Scene(kube, namespace)
    yield played
    await played.remove_nodes()


async def stored(database: Database, uid: str) -> Job | None:
    async with database.reading() as transaction:
        return await JobRepository(transaction).get(uid)


async def bill_in(database: Database, uid: str) -> Any:
    """(attempt, replica, gpus, milliseconds held) of each holding, and the price of it all."""
    async with database.reading() as transaction:
        ledger = (await HoldingRepository(transaction).ledgers([uid]))[uid]
        prices = await PriceRepository(transaction).all()
    rows = sorted(
        (h.attempt, h.replica, h.gpus, None if h.end_ms is None else h.end_ms - h.start_ms)
        for h in ledger.holdings
    )
    return rows, bill_of(ledger, prices, now_ms()).micro_usd


async def is_synced(recorder: Recorder) -> bool:
    try:
        await recorder.check_synced()
    except Unavailable:
        return False
    return True


async def is_gone(kube: Kube, job: dict[str, Any]) -> bool:
    try:
        await kube.get(JOBS.path(job["metadata"]["namespace"], job["metadata"]["name"]))
    except ApiNotFound:
        return True
    return False


async def test_a_job_is_followed_from_its_decision_to_its_end(
    database, account, kube, scene
) -> None:
    nodes = [await scene.add_node(), await scene.add_node(spot=True)]
    start = now_ms() - 100_000
    async with recording(database, account):
        job = await scene.submit(replicas=2)
        uid = job["metadata"]["uid"]
        pods = await scene.decide(job, *nodes, at_ms=start)
        entry = {"attempt": 1, "decidedAt": text_of(start), "nodes": nodes}
        await scene.end_pod(pods[0], at_ms=start + 36_000)
        await scene.end_pod(pods[1], at_ms=start + 72_000)
        await scene.end_attempt(job, entry, "Succeeded", at_ms=start + 73_000)

        async def told() -> dict[str, Any]:
            found = await kube.get(JOBS.path(scene.namespace, "digits"))
            # Its end is stored, so that nothing holds it any more.
            assert not found["metadata"].get("finalizers")
            row = await stored(database, uid)
            # The recorder has seen it too, by its watch.
            assert row is not None
            assert not row.is_held
            return (found.get("status") or {}).get("cost") or {}

        cost = await eventually(told)

    rows, micro_usd = await bill_in(database, uid)
    assert [(1, 0, 2), (1, 1, 2)] == [row[:3] for row in rows]
    # A kubelet's times have no fraction.
    assert all(
        abs(row[3] - want) <= 1000 for row, want in zip(rows, (36_000, 72_000), strict=True)
    )
    # Prices of the list that is shipped.
    want_usd = (rows[0][3] * 2 * 3_930_000 + rows[1][3] * 2 * 2_360_000) / 3_600_000
    assert abs(want_usd - micro_usd) < 1
    assert micro_usd == cost["microUsd"]
    found = await stored(database, uid)
    assert found is not None
    assert ("Succeeded", 1, "muster-bootstrap", False) == (
        found.phase,
        found.attempt,
        found.user_name,
        found.is_held,
    )


async def test_the_price_list_of_the_cluster_is_taken_over(database, account) -> None:
    async with recording(database, account):

        async def prices() -> list[PriceRow]:
            async with database.reading() as transaction:
                return await PriceRepository(transaction).all()

        assert PriceRow("H100", "on-demand", 1_767_225_600_000, 3_930_000) in await eventually(
            prices
        )


async def test_a_job_deleted_while_it_runs_stays_until_its_pods_have_ended(
    database, account, kube, scene
) -> None:
    node = await scene.add_node()
    start = now_ms() - 50_000
    async with recording(database, account):
        job = await scene.submit()
        uid = job["metadata"]["uid"]
        (pod,) = await scene.decide(job, node, at_ms=start)

        async def is_held() -> bool:
            found = await stored(database, uid)
            return found is not None and found.is_held

        await eventually(is_held)
        await scene.delete_job(job)

        async def is_still_there() -> bool:
            return not await is_gone(kube, job)

        await stays(is_still_there)
        await scene.end_pod(pod, at_ms=start + 40_000, phase="Failed")
        await eventually(lambda: is_gone(kube, job))

        async def closed() -> Job | None:
            found = await stored(database, uid)
            return found if found is not None and found.deleted_ms is not None else None

        found = await eventually(closed)

    assert ("Cancelled", False) == (found.phase, found.is_end_uncertain)
    rows, _ = await bill_in(database, uid)
    assert [(1, 0, 2)] == [row[:3] for row in rows]
    assert abs(rows[0][3] - 40_000) <= 1000
    async with database.reading() as transaction:
        (attempt,) = await JobRepository(transaction).attempts_of(uid)
    assert "Cancelled" == attempt.outcome


async def test_a_deleted_job_does_not_wait_for_ever(database, account, kube, scene) -> None:
    node = await scene.add_node()
    async with recording(database, account, end_wait_ms=1500):
        job = await scene.submit()
        await scene.decide(job, node, at_ms=now_ms())
        await scene.delete_job(job)

        await eventually(lambda: is_gone(kube, job))


async def test_a_job_that_vanished_unseen_is_closed_and_marked(
    database, account, kube, scene
) -> None:
    node = await scene.add_node()
    start = now_ms() - 5000
    async with recording(database, account) as recorder:
        job = await scene.submit()
        uid = job["metadata"]["uid"]
        (pod,) = await scene.decide(job, node, at_ms=start)

        async def is_known() -> bool:
            async with database.reading() as transaction:
                living = await HoldingRepository(transaction).living_pods()
            return pod["metadata"]["uid"] in living

        await eventually(is_known)
        await eventually(lambda: is_synced(recorder))
    last = now_ms()
    await scene.delete_pod(pod)
    await scene.delete_job(job)
    await kube.patch(JOBS.path(scene.namespace, "digits"), {"metadata": {"finalizers": None}})
    # Too old to go on from: as after hours, when the API server has forgotten.
    async with database.writing() as transaction:
        positions = PositionRepository(transaction)
        for collection in ("trainingjobs", "pods"):
            old = await positions.get(collection)
            assert old is not None
            await positions.move(collection, old=old, new=Position(old.cluster, "1", old.seen_ms))

    async with recording(database, account):

        async def closed() -> Job | None:
            found = await stored(database, uid)
            rows, _ = await bill_in(database, uid)
            is_closed = found is not None and found.deleted_ms is not None
            return found if is_closed and rows[0][3] is not None else None

        found = await eventually(closed)

    assert ("Cancelled", True) == (found.phase, found.is_end_uncertain)
    assert start <= found.deleted_ms <= last
    rows, _ = await bill_in(database, uid)
    assert 0 < rows[0][3] <= last - start


async def test_another_cluster_s_position_is_not_gone_on_from(database, account, scene) -> None:
    """A position in the future of this cluster would show nothing, without any error."""
    async with database.writing() as transaction:
        positions = PositionRepository(transaction)
        for collection in ("trainingjobs", "pods", "nodes", "prices"):
            elsewhere = Position("another-cluster", "999999999", now_ms())
            await positions.move(collection, old=None, new=elsewhere)
        gone = {
            **(await scene.submit("elsewhere"))["metadata"],
            "uid": "of-another-cluster",
        }
        await JobRepository(transaction).ensure(job_facts({"metadata": gone}))
    job = await scene.submit()

    async with recording(database, account):

        async def both() -> bool:
            here = await stored(database, job["metadata"]["uid"])
            there = await stored(database, "of-another-cluster")
            return here is not None and there is not None and there.deleted_ms is not None

        await eventually(both)


async def test_progress_and_checkpoints_are_told_beside_what_the_operator_writes(
    database, account, kube, scene
) -> None:
    async with recording(database, account):
        job = await scene.submit(gpusPerReplica=0)
        uid = job["metadata"]["uid"]
        await scene.set_status(job, phase="Running", attempt=1)
        await eventually(lambda: stored(database, uid))
        async with database.writing() as transaction:
            await JobRepository(transaction).progress(uid, epoch=3, step=120, at_ms=now_ms())

        async def told() -> bool:
            status = (await kube.get(JOBS.path(scene.namespace, "digits")))["status"]
            return status.get("progress") == {"epoch": 3, "step": 120}

        await eventually(told)
        await scene.set_status(job, phase="Restarting", reason="UserError")

        async def is_both() -> bool:
            status = (await kube.get(JOBS.path(scene.namespace, "digits")))["status"]
            return (
                status["phase"] == "Restarting" and status.get("progress", {}).get("step") == 120
            )

        await stays(is_both)
    found = await kube.get(JOBS.path(scene.namespace, "digits"))
    managers = {each["manager"] for each in found["metadata"]["managedFields"]}
    assert "muster-recorder" in managers


async def test_two_recorders_never_write_to_one_database(database, account) -> None:
    async with held(database.url, "recorder"):
        with pytest.raises(Conflict):
            async with held(database.url, "recorder"):
                pass
    async with held(database.url, "recorder") as lock:
        await lock.check()
    async with database.writing() as transaction:
        old = Position("c", "1", 1)
        await PositionRepository(transaction).move("pods", old=None, new=old)
        await PositionRepository(transaction).move("pods", old=old, new=Position("c", "2", 2))
        with pytest.raises(Conflict):
            await PositionRepository(transaction).move("pods", old=old, new=Position("c", "3", 3))


async def story(scene: Scene) -> tuple[str, str]:
    """A job that succeeds in its second attempt, and one that is deleted while it runs."""
    node = await scene.add_node()
    start = (now_ms() // 1000 - 300) * 1000
    job = await scene.submit("twice")
    (pod,) = await scene.decide(job, node, at_ms=start)
    await scene.end_pod(pod, at_ms=start + 10_000, phase="Failed")
    first = {"attempt": 1, "decidedAt": text_of(start), "nodes": [node]}
    over = {**first, "endedAt": text_of(start + 11_000), "outcome": "Failed"}
    (pod,) = await scene.decide(job, node, attempt=2, at_ms=start + 20_000)
    second = {"attempt": 2, "decidedAt": text_of(start + 20_000), "nodes": [node]}
    await scene.set_status(job, attempts=[over, second])
    await scene.end_pod(pod, at_ms=start + 50_000)
    ended = {**second, "endedAt": text_of(start + 50_500), "outcome": "Succeeded"}
    finished = text_of(start + 50_500)
    await scene.set_status(
        job, phase="Succeeded", attempts=[over, ended], placement=None, finishedAt=finished
    )
    other = await scene.submit("deleted")
    (pod,) = await scene.decide(other, node, at_ms=start)
    await scene.delete_job(other)
    await scene.end_pod(pod, at_ms=start + 30_000, phase="Failed")
    return job["metadata"]["uid"], other["metadata"]["uid"]


async def is_over(database: Dying, job: str, other: str) -> bool:
    """Whether both jobs of the story are let go; raises `Killed` once the recorder is."""
    if database.is_dead:
        raise Killed
    done, gone = await stored(database, job), await stored(database, other)
    if done is None or gone is None:
        return False
    return done.phase == "Succeeded" and not done.is_held and gone.deleted_ms is not None


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
async def test_killed_between_any_two_transactions_nothing_is_lost_or_counted_twice(
    database_url: str, account, kube, scene, is_after: bool
) -> None:
    """Starts on an old position, so that all of the story is replayed, and dies at each commit."""
    async with Database.opened(database_url) as database, recording(database, account) as recorder:
        await eventually(lambda: is_synced(recorder))
    job, other = await story(scene)
    deaths = 0
    for life in range(60):
        # Killed before its first commit, it must get on in its next life.
        dying = Dying(database_url, 1 if is_after else 1 + life % 2, is_after=is_after)
        try:
            async with recording(dying, account, most_in_a_batch=2):
                await eventually(partial(is_over, dying, job, other))
            break
        except Killed:
            deaths += 1
        finally:
            await dying.close()
    assert deaths >= 6

    async with Database.opened(database_url) as database:
        twice, _ = await bill_in(database, job)
        once, _ = await bill_in(database, other)
        # Ended in the same second as its attempt, or in a whole second of its own.
        assert [(1, 0, 2, 10_999), (2, 0, 2, 30_500)] == twice
        assert [(1, 0, 2, 30_999)] == once
        found, gone = await stored(database, job), await stored(database, other)
        assert found is not None
        assert gone is not None
        assert ("Succeeded", False) == (found.phase, found.is_held)
        assert ("Cancelled", False) == (gone.phase, gone.is_end_uncertain)
        async with database.reading() as transaction:
            tries = await JobRepository(transaction).attempts_of(job)
        assert [(1, "Failed"), (2, "Succeeded")] == [(t.attempt, t.outcome) for t in tries]
