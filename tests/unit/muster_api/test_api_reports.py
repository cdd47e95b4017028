"""Reports: whose word counts, once, and what comes of it."""

from typing import Any

import pytest

from apis import bearer, job_manifest, job_pod
from muster.times import text_of
from muster_api.facts import attempts_of, job_facts, node_facts, placed_of, price_rows, seen_pod
from muster_db.database import Database
from muster_db.holdings import HoldingRepository
from muster_db.jobs import JobRepository
from muster_db.prices import PriceRepository
from muster_db.records import MetricValue
from muster_db.reports import POINTS_KEPT, SEQUENCES_KEPT, ReportRepository

PATH = "/api/v1/namespaces/a/jobs/digits"
START_MS = 1_796_117_401_500
PRICES = """
- gpuModel: H100
  capacityType: on-demand
  microUsdPerGpuHour: 3600000
  from: 2026-01-01T00:00:00Z
"""


def at(seconds: float) -> str:
    return text_of(START_MS + int(seconds * 1000))


def epoch(number: int, event: str, seconds: float, **metrics: Any) -> dict[str, Any]:
    item = {"kind": "epoch", "at": at(seconds), "epoch": number, "event": event}
    return {**item, "step": number * 10, "metrics": metrics}


def report(*items: dict[str, Any], sequence: int = 1, attempt: int = 1, replica: int = 0) -> Any:
    return {
        "attempt": attempt,
        "replica": replica,
        "sequence": sequence,
        "items": list(items),
    }


@pytest.fixture
async def job(client, platform, database: Database) -> dict[str, Any]:
    """A job of two replicas of two GPUs, in its first attempt, known to the recorder."""
    platform.reviewer.know("ada", "a")
    await client.post(
        "/api/v1/jobs",
        json=job_manifest(replicas=2, gpusPerReplica=2),
        params={"namespace": "a"},
        headers=bearer("token-of-ada"),
    )
    made = platform.cluster.jobs["a", "digits"]
    await decide(platform, database, made, 1, 0)
    return made


async def decide(platform, database: Database, job: Any, attempt: int, seconds: float) -> None:
    """What operator, kubelet and recorder do for an attempt."""
    nodes = ["node-0", "node-1"]
    entry = {"attempt": attempt, "decidedAt": at(seconds), "nodes": nodes}
    status = job.setdefault("status", {"attempts": []})
    status |= {"phase": "Running", "attempt": attempt, "placement": entry}
    status["attempts"].append(entry)
    for replica in range(2):
        pod = job_pod(job, attempt=attempt, replica=replica)
        pod["metadata"]["uid"] = f"pod-{attempt}-{replica}"
        platform.cluster.pods["a", pod["metadata"]["name"]] = pod
        platform.reviewer.know_pod("a", pod["metadata"]["name"], pod["metadata"]["uid"])
    labels = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "muster.dev/simulated": "true"}
    async with database.writing() as transaction:
        holdings = HoldingRepository(transaction)
        for name in nodes:
            await holdings.know(node_facts({"metadata": {"name": name, "labels": labels}}))
        await PriceRepository(transaction).replace(price_rows(PRICES))
        await record(transaction, job)


async def record(transaction: Any, job: Any) -> None:
    await JobRepository(transaction).record(job_facts(job), attempts_of(job))
    await HoldingRepository(transaction).place(placed_of(job))


async def end(platform, database: Database, job: Any, outcome: str, seconds: float) -> None:
    """The attempt is over, and its pods ended."""
    job["status"]["attempts"][-1] |= {"outcome": outcome, "endedAt": at(seconds)}
    async with database.writing() as transaction:
        await record(transaction, job)
        for pod in platform.cluster.pods.values():
            if int(pod["metadata"]["labels"]["muster.dev/attempt"]) == job["status"]["attempt"]:
                state = {"terminated": {"finishedAt": at(seconds)}}
                pod["status"] = {"phase": "Failed", "containerStatuses": [{"state": state}]}
                seen = seen_pod(pod)
                assert seen is not None
                await HoldingRepository(transaction).see(seen)


async def send(client, body: Any, pod: str = "pod-1-0", path: str = PATH) -> Any:
    return await client.post(f"{path}/reports", json=body, headers=bearer(f"token-of-pod-{pod}"))


async def test_a_report_is_acknowledged_with_what_is_asked_of_the_ranks(client, job) -> None:
    job["status"]["directive"] = {"id": "d1", "kind": "Checkpoint"}

    answer = await send(client, report(epoch(0, "start", 1), sequence=7))

    want = {"acknowledged": 7, "status": {"directive": {"id": "d1", "kind": "Checkpoint"}}}
    assert (200, want) == (answer.status_code, answer.json())


FOREIGN = {
    "another job": ({"path": "/api/v1/namespaces/a/jobs/other"}, {}),
    "another namespace": ({"path": "/api/v1/namespaces/b/jobs/digits"}, {}),
    "another replica": ({}, {"replica": 1}),
    "a later attempt": ({}, {"attempt": 2}),
}


@pytest.mark.parametrize("claim", FOREIGN)
async def test_a_pod_speaks_for_its_own_place_only(client, platform, job, claim: str) -> None:
    where, says = FOREIGN[claim]
    platform.cluster.jobs["a", "other"] = {
        **job,
        "metadata": {**job["metadata"], "name": "other", "uid": "other"},
    }

    answer = await send(client, report(**says), **where)

    assert answer.status_code == 403


async def test_a_pod_of_the_same_name_is_another_one(client, platform, job) -> None:
    platform.cluster.pods["a", "digits-1-0-0"]["metadata"]["uid"] = "another"

    assert (await send(client, report())).status_code == 403


async def test_an_attempt_that_is_over_is_refused(client, platform, database, job) -> None:
    await decide(platform, database, job, 2, 10)

    answer = await send(client, report(epoch(0, "start", 11)))

    assert (409, "attempt 1 is over; the job is at attempt 2") == (
        answer.status_code,
        answer.json()["detail"],
    )


BAD = {
    "not JSON": (b"{", 400),
    "no object": (b"[]", 422),
    "an unknown kind": (b'{"attempt":1,"replica":0,"sequence":1,"items":[{"kind":"x"}]}', 422),
    "too many items": (
        b'{"attempt":1,"replica":0,"sequence":1,"items":[' + b",".join([b"{}"] * 1001) + b"]}",
        422,
    ),
    "too large": (b'"' + b"x" * 3_000_000 + b'"', 413),
}


@pytest.mark.parametrize("claim", BAD)
async def test_a_bad_report_changes_nothing(client, database, job, claim: str) -> None:
    body, status = BAD[claim]

    answer = await client.post(
        f"{PATH}/reports", content=body, headers=bearer("token-of-pod-pod-1-0")
    )

    assert (status, "application/problem+json") == (
        answer.status_code,
        answer.headers["Content-Type"],
    )
    async with database.reading() as transaction:
        assert await ReportRepository(transaction, job["metadata"]["uid"]).epochs() == []


async def test_epochs_and_costs_tell_start_up_restart_and_what_was_lost(
    client, platform, database, job
) -> None:
    ada = bearer("token-of-ada")
    await send(client, report(epoch(0, "start", 10), epoch(0, "end", 20, loss=0.5), sequence=1))
    await send(client, report(epoch(1, "start", 20), sequence=2))
    await end(platform, database, job, "Failed", 25)
    await decide(platform, database, job, 2, 30)
    second = [epoch(1, "start", 32), epoch(1, "end", 42, loss=float("0.25"))]
    await send(client, report(*second, attempt=2), pod="pod-2-0")
    await end(platform, database, job, "Succeeded", 43)

    cost = (await client.get(f"{PATH}/cost", headers=ada)).json()
    epochs = (await client.get(f"{PATH}/epochs", headers=ada)).json()["items"]

    # Four GPUs at a tenth of a cent a second.
    want = [
        ("1", "startup", 40.0, 40_000),
        ("0", "epoch", 40.0, 40_000),
        ("1", "interrupted", 20.0, 20_000),
        ("2", "restart", 8.0, 8_000),
        ("1", "epoch", 40.0, 40_000),
        ("2", "shutdown", 4.0, 4_000),
    ]
    lines = cost["lines"]
    assert want == [
        (each["key"], each["class"], each["gpu_seconds"], each["micro_usd"]) for each in lines
    ]
    assert (152_000, 152.0, True, True) == (
        cost["total_micro_usd"],
        cost["gpu_seconds"],
        cost["priced"],
        cost["simulated"],
    )
    assert [
        {
            "epoch": 0,
            "attempts": [1],
            "started": at(10),
            "finished": at(20),
            "seconds": 10.0,
            "gpu_seconds": 40.0,
            "micro_usd": 40_000,
            "cost": "$0.040000",
            "metrics": {"loss": 0.5},
        },
        {
            "epoch": 1,
            "attempts": [1, 2],
            "started": at(20),
            "finished": at(42),
            "seconds": 15.0,
            "gpu_seconds": 60.0,
            "micro_usd": 60_000,
            "cost": "$0.060000",
            "metrics": {"loss": 0.25},
        },
    ] == epochs
    by_attempt = (await client.get(f"{PATH}/cost?by=attempt", headers=ada)).json()
    assert cost["total_micro_usd"] == sum(each["micro_usd"] for each in by_attempt["lines"])
    listed = (await client.get("/api/v1/jobs?namespace=a", headers=ada)).json()["items"]
    assert [152_000] == [item["cost_micro_usd"] for item in listed]
    assert {"epoch": 1, "step": 10, "eta": None} == listed[0]["progress"]


async def test_a_report_that_comes_again_counts_once(client, job, database) -> None:
    first = report(epoch(0, "start", 1), sequence=1)
    other = report(epoch(0, "start", 9), sequence=1)

    answers = [await send(client, body) for body in (first, first, other)]

    assert [200] * 3 == [answer.status_code for answer in answers]
    async with database.reading() as transaction:
        (row,) = await ReportRepository(transaction, job["metadata"]["uid"]).epochs()
    assert START_MS + 1000 == row.started_ms


async def test_without_a_price_a_cost_is_unknown_and_never_nothing(
    client, platform, database, job
) -> None:
    async with database.writing() as transaction:
        await PriceRepository(transaction).replace([])
    platform.clock.now_ms = START_MS + 60_000

    cost = (await client.get(f"{PATH}/cost", headers=bearer("token-of-ada"))).json()
    item = (await client.get(PATH, headers=bearer("token-of-ada"))).json()

    assert (None, "unpriced", False, 240.0) == (
        cost["total_micro_usd"],
        cost["total"],
        cost["priced"],
        cost["gpu_seconds"],
    )
    assert (None, "unpriced") == (item["cost_micro_usd"], item["cost"])


async def test_metrics_keep_what_is_no_number(client, job, database) -> None:
    values = {"loss": "NaN", "reward": "-Infinity", "accuracy": 0.5}
    item = {"kind": "metrics", "at": at(1), "epoch": 0, "step": 3, "values": values}

    await send(client, report(item))

    async with database.reading() as transaction:
        got = await ReportRepository(transaction, job["metadata"]["uid"]).metrics()
    want = [("accuracy", "0.5"), ("loss", "NaN"), ("reward", "-Infinity")]
    assert want == [(each.name, each.value) for each in got]


async def test_checkpoints_show_the_newest_written_and_the_newest_verified(client, job) -> None:
    def saved(step: int, state: str, seconds: float, **more: Any) -> dict[str, Any]:
        item = {"kind": "checkpoint", "at": at(seconds), "id": f"step-{step}", "step": step}
        size = {"bytes": 10, "world_size": 4, "uri": "file:///c"}
        return {**item, "state": state, **size, **more}

    items = [
        saved(10, "durable", 1),
        saved(10, "verified", 2),
        # A late word about an earlier state does not take its verification away.
        saved(10, "durable", 3),
        saved(20, "durable", 4),
        saved(30, "failed", 5, message="disk full"),
    ]
    await send(client, report(*items))

    got = (await client.get(PATH, headers=bearer("token-of-ada"))).json()["checkpoint"]

    assert {"latest": "step-20", "verified": "step-10", "step": 10, "at": at(2)} == got


async def test_series_and_sequences_are_bounded(database, job) -> None:
    uid = job["metadata"]["uid"]
    async with database.writing() as transaction:
        reports = ReportRepository(transaction, uid)
        points = [MetricValue("loss", "0.5", 0, n, n) for n in range(POINTS_KEPT + 1)]
        await reports.log(1, points)
        for sequence in (1, SEQUENCES_KEPT + 2):
            new = {"attempt": 1, "replica": 0, "sequence": sequence, "items": 0}
            assert await reports.accept(**new, now_ms=0)

        left = await reports.series("loss")
        assert [0, 2, 4] == [point.step for point in left[:3]]
        assert POINTS_KEPT == left[-1].step
        assert not await reports.accept(attempt=1, replica=0, sequence=1, items=0, now_ms=0)
