"""Explanations, dry runs, queues, nodes and decisions, over a pretended operator."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from apis import NOW_MS, bearer, client_of, job_manifest
from muster.cost import PriceRow
from muster.errors import NotFound, Unavailable
from muster.scheduling.archive import Inputs, dumps
from muster.scheduling.cluster import Cluster
from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import Queue, Run
from muster_db.prices import PriceRepository
from small_clusters import RACKS, gang, holding, nodes

NOW = NOW_MS / 1000
HOUR = 3600.0
RUNNING = holding(
    gang("a/long", 8, max_run_time=HOUR, run=Run(NOW - 60.0), user="ada"), " ".join(["n1"] * 8)
)
SECRET = holding(gang("b/secret", 6, run=Run(NOW - 60.0), priority=-1), " ".join(["n2"] * 6))
DIGITS = gang("a/digits", 8, required="rack", submitted=NOW - 30.0, priority=-1)


@dataclass
class PretendedScheduler:
    """Sees a small cluster, or nothing while it is away."""

    seen: Inputs
    is_away: bool = False
    texts: dict[str, bytes] = field(default_factory=dict)

    async def inputs(self) -> Inputs:
        self._answer()
        return replace(self.seen, now=0.0)

    async def snapshot(self) -> bytes:
        self._answer()
        return dumps(self.seen).encode()

    async def decisions(self) -> dict[str, Any]:
        self._answer()
        return {"items": [{"id": "1", "at": "2026-12-01T09:30:00Z", "deeds": [], "bytes": 7}]}

    async def decision(self, id_: str) -> bytes:
        self._answer()
        if id_ not in self.texts:
            raise NotFound(f"there is no decision {id_}")
        return self.texts[id_]

    def _answer(self) -> None:
        if self.is_away:
            raise Unavailable("the operator does not answer")


@pytest.fixture
def scheduler() -> PretendedScheduler:
    cluster = Cluster.of(
        levels=RACKS,
        nodes=nodes("n1", rack="r1", gpu_model="H100") + nodes("n2", rack="r2", gpu_model="H100"),
        queues=[Queue("default", guaranteed=8), Queue("team", parent="default", limit=4)],
        gangs=[RUNNING, SECRET, DIGITS],
    )
    return PretendedScheduler(Inputs(cluster.objects(), Policy(notice=30.0), NOW))


@pytest.fixture
async def api(platform, scheduler):
    parts = replace(platform.parts, scheduler=scheduler)
    async with client_of(parts) as client:
        yield client


@pytest.fixture
async def ada(platform, api) -> dict[str, str]:
    """The header of a user of namespace a, whose job `digits` waits."""
    header = bearer(platform.reviewer.know("ada", "a"))
    spec = {"replicas": 8, "gpusPerReplica": 1}
    created = await api.post(
        "/api/v1/jobs", json=job_manifest(**spec), params={"namespace": "a"}, headers=header
    )
    assert 201 == created.status_code
    return header


EXPLAIN = "/api/v1/namespaces/a/jobs/digits/explain"


async def test_a_job_that_waits_is_explained_by_the_scheduler(api, ada) -> None:
    found = (await api.get(EXPLAIN, headers=ada)).json()

    want = {
        "job": "digits",
        "namespace": "a",
        "source": "scheduler",
        "code": "InsufficientCapacity",
        "message": "needs 8 GPUs; 2 GPUs free",
        "queue_position": 1,
        "predicted_start": "2026-12-01T10:29:00Z",
        "waits_for": "a/long",
    }
    assert want.items() <= found.items()
    assert [
        {
            "change": "ask for 2 in place of 8 replicas",
            "starts": True,
            "edits": [
                {
                    "kind": "TrainingJob",
                    "name": "a/digits",
                    "spec": {"replicas": 2, "minReplicas": 2},
                }
            ],
            "evicts": [],
        }
    ] == found["changes"]


async def test_it_is_told_at_the_time_of_the_question(api, ada, platform) -> None:
    platform.clock.pass_seconds(7200)
    found = (await api.get(EXPLAIN, headers=ada)).json()

    # The job that it waited for is overdue by now.
    assert found["predicted_start"] is None


async def test_changes_are_tried_only_while_there_is_time(api, ada, monkeypatch) -> None:
    assert (await api.get(EXPLAIN, headers=ada)).json()["changes_complete"]
    monkeypatch.setattr("muster_api.scheduler._TRYING_SECONDS", 0.0)
    found = (await api.get(EXPLAIN, headers=ada)).json()

    assert ([], False) == (found["changes"], found["changes_complete"])
    assert "InsufficientCapacity" == found["code"]


async def test_without_the_operator_its_status_is_told(api, ada, scheduler, platform) -> None:
    scheduler.is_away = True
    platform.cluster.jobs["a", "digits"]["status"] = {
        "phase": "Pending",
        "reason": "QueueLimit",
        "message": "needs 8 GPUs",
        "queuePosition": 3,
        "predictedStart": "2026-12-01T11:00:00Z",
        "waitsFor": "a/other",
    }
    answer = await api.get(EXPLAIN, headers=ada)

    assert (200, "status") == (answer.status_code, answer.json()["source"])
    assert {
        "code": "QueueLimit",
        "message": "needs 8 GPUs",
        "queue_position": 3,
        "predicted_start": "2026-12-01T11:00:00Z",
        "waits_for": "a/other",
        "changes": [],
    }.items() <= answer.json().items()


async def test_a_job_that_the_scheduler_does_not_plan_is_told_by_its_status(api, ada) -> None:
    await api.post(
        "/api/v1/jobs", json=job_manifest("odd"), params={"namespace": "a"}, headers=ada
    )
    found = (await api.get(EXPLAIN.replace("digits", "odd"), headers=ada)).json()

    assert ("status", "Pending") == (found["source"], found["code"])


async def test_a_job_that_there_is_not_is_not_explained(api, ada) -> None:
    answer = await api.get(EXPLAIN.replace("digits", "none"), headers=ada)

    assert 404 == answer.status_code


async def try_out(api, header, **spec) -> Any:
    name = spec.pop("name", "new")
    return await api.post(
        "/api/v1/jobs/dry-run",
        json=job_manifest(name, **spec),
        params={"namespace": "a"},
        headers=header,
    )


async def test_a_dry_run_tells_start_place_victims_and_delays(api, ada, platform) -> None:
    async with platform.database.writing() as transaction:
        rows = [PriceRow("H100", "on-demand", 0, 3_600_000)]
        await PriceRepository(transaction).replace(rows)
    found = (await try_out(api, ada, replicas=8, gpusPerReplica=1, priority=5)).json()

    assert {
        "job": "new",
        "verdict": "starts",
        "predicted_start": "2026-12-01T09:30:30Z",
        "placement": ["n2"] * 8,
    }.items() <= found.items()
    # A minute of six GPUs at a thousandth of a dollar a second; the name is nobody's business.
    assert [
        {
            "job": "b/…",
            "replicas": None,
            "right": "priority",
            "lost_gpu_seconds": 360,
            "micro_usd": 360_000,
            "cost": "$0.360000",
        }
    ] == found["victims"]
    assert [] == list(platform.cluster.jobs)[1:]


async def test_who_may_list_all_jobs_reads_all_names(api, platform, ada) -> None:
    platform.reviewer.allowed.add(("ada", "list", "trainingjobs", ""))
    found = (await try_out(api, ada, replicas=8, gpusPerReplica=1, priority=5)).json()

    assert ["b/secret"] == [victim["job"] for victim in found["victims"]]


async def test_a_dry_run_of_a_job_that_waits_tells_when_it_starts(api, ada) -> None:
    found = (await try_out(api, ada, replicas=8, gpusPerReplica=1, priority=-2)).json()

    assert ("waits", "InsufficientCapacity", [], []) == (
        found["verdict"],
        found["code"],
        found["placement"],
        found["victims"],
    )


async def test_a_dry_run_refuses_what_a_submission_would(api, ada, platform) -> None:
    unknown = await try_out(api, ada, queue="red")
    elsewhere = await api.post(
        "/api/v1/jobs/dry-run", json=job_manifest(), params={"namespace": "b"}, headers=ada
    )

    assert (422, "spec.queue") == (unknown.status_code, unknown.json()["errors"][0]["field"])
    assert 403 == elsewhere.status_code


async def test_a_job_that_comes_after_another_one_waits_for_it(api, ada) -> None:
    found = (await try_out(api, ada, replicas=1, after="digits")).json()

    assert ("waits", "Dependency") == (found["verdict"], found["code"])


async def test_queues_are_the_tree_as_the_scheduler_sees_it(api, ada) -> None:
    items = (await api.get("/api/v1/queues", headers=ada)).json()["items"]

    assert [("default", 0, 14, 8, 8, 6.0, 6), ("team", 1, 0, 0, 0, 0.0, 0)] == [
        tuple(
            item[key]
            for key in (
                "name",
                "depth",
                "usage",
                "guaranteed",
                "pending_gpus",
                "share",
                "borrowed",
            )
        )
        for item in items
    ]


async def test_nodes_show_names_only_to_whom_they_concern(api, ada, platform) -> None:
    refused = await api.get("/api/v1/nodes", headers=ada)
    platform.reviewer.allowed.add(("ada", "list", "nodes", ""))
    platform.clock.pass_seconds(6)
    found = (await api.get("/api/v1/nodes", headers=ada)).json()

    assert 403 == refused.status_code
    assert [
        ("n1", {"rack": "r1"}, 8, 0, {"a/long": 8}, 0),
        ("n2", {"rack": "r2"}, 8, 2, {"b/…": 6}, 0),
    ] == [
        tuple(item[k] for k in ("name", "domains", "gpus", "free", "held_by", "fragmented"))
        for item in found["items"]
    ]
    assert (16, 2, 0, ["rack"]) == (
        found["gpus"],
        found["free_gpus"],
        found["fragmented_gpus"],
        found["levels"],
    )


ADMINISTRATORS = ("/api/v1/snapshot", "/api/v1/decisions", "/api/v1/decisions/1")


@pytest.mark.parametrize("path", ADMINISTRATORS)
async def test_only_who_may_get_them_reads(path, api, ada, platform, scheduler) -> None:
    scheduler.texts["1"] = b'{"muster": "decision"}'
    refused = await api.get(path, headers=ada)
    kind = "snapshots" if path.endswith("snapshot") else "decisions"
    platform.reviewer.allowed.add(("ada", "get", kind, ""))
    platform.clock.pass_seconds(6)
    let_in = await api.get(path, headers=ada)

    assert (403, 200) == (refused.status_code, let_in.status_code)
    assert "b/secret" not in refused.text


async def test_a_decision_that_is_gone_is_not_found(api, ada, platform) -> None:
    platform.reviewer.allowed.add(("ada", "get", "decisions", ""))
    answer = await api.get("/api/v1/decisions/2", headers=ada)

    assert (404, "there is no decision 2") == (answer.status_code, answer.json()["detail"])


async def test_without_the_operator_the_rest_is_unavailable_and_says_so(
    api, ada, platform, scheduler
) -> None:
    scheduler.is_away = True
    for verb, resource in (("list", "nodes"), ("get", "snapshots"), ("get", "decisions")):
        platform.reviewer.allowed.add(("ada", verb, resource, ""))
    answers = [await api.get(path, headers=ada) for path in (*ADMINISTRATORS, "/api/v1/nodes")]
    answers.append(await try_out(api, ada))

    assert [(503, "the operator does not answer")] * 5 == [
        (answer.status_code, answer.json()["detail"]) for answer in answers
    ]
    queues = await api.get("/api/v1/queues", headers=ada)
    assert (200, [8]) == (queues.status_code, [q["pending_gpus"] for q in queues.json()["items"]])
