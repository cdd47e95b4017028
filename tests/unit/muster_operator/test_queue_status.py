"""What is written into the status of queues and topologies, and when it is not."""

import copy
import logging
from typing import Any

import pytest

from muster.decisions import placed
from muster.job_status import JobStatus
from muster.moments import text_of
from muster.status_raw import difference
from muster_kube import ApiError, ApiNotFound
from muster_operator.cache import Cache
from muster_operator.metrics import Metrics
from muster_operator.queue_status import QueueStatus

START = 1_767_225_600.0
HOUR = 3600.0
Raw = dict[str, Any]


class Server:
    """Keeps what is written, as a merge patch would."""

    def __init__(self) -> None:
        self.objects: dict[str, Raw] = {}
        self.writes: list[tuple[str, Raw]] = []
        self.problem: ApiError | None = None

    async def patch(self, path: str, body: Raw, **_: str) -> Raw:
        if self.problem is not None:
            raise self.problem
        name = path.split("/")[-2]
        self.writes.append((name, body["status"]))
        known = self.objects[name]
        _merge(known.setdefault("status", {}), body["status"])
        metadata = known["metadata"]
        metadata["resourceVersion"] = str(int(metadata["resourceVersion"]) + 1)
        return copy.deepcopy(known)


def _merge(into: Raw, change: Raw) -> None:
    for key, value in change.items():
        if value is None:
            into.pop(key, None)
        elif isinstance(value, dict):
            _merge(into.setdefault(key, {}), value)
        else:
            into[key] = value


class Office:
    """A cache with a node and queues, and who writes their status."""

    def __init__(self, half_life: float = 0.0) -> None:
        self.now = START
        self.version = 0
        self.server = Server()
        self.cache = Cache(
            has_scheduler=False,
            on_job=lambda uid, *, is_urgent=True: None,
            on_capacity=lambda: None,
            clock=lambda: self.now,
            half_life=half_life,
        )
        self.writer = QueueStatus(
            self.server,  # type: ignore[arg-type] -- all that is used of it
            self.cache,
            Metrics(),
            lambda: self.now,
            1.0,
        )
        labels = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "r": "r1"}
        amounts = {"cpu": "64", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": "8"}
        ready = [{"type": "Ready", "status": "True"}]
        node = self.raw("n1", status={"allocatable": amounts, "conditions": ready})
        node["metadata"]["labels"] = labels
        self.cache.around_changed("nodes", node)

    def raw(self, name: str, **rest: Any) -> Raw:
        self.version += 100
        version = str(self.version)
        metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": version}
        return {"metadata": {**metadata, "generation": 1}, **rest}

    def put(self, kind: str, name: str, **spec: Any) -> None:
        made = self.raw(name, spec=spec)
        self.server.objects[name] = made
        self.cache.around_changed(kind, copy.deepcopy(made))

    def job(self, name: str, *nodes: str, queue: str = "vision") -> None:
        template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec = {"replicas": 2, "gpusPerReplica": 2, "queue": queue, "template": template}
        made = self.raw(name, spec=spec)
        made["metadata"] |= {"namespace": "t", "creationTimestamp": "2026-01-01T00:00:00Z"}
        if nodes:
            status = placed(JobStatus(), nodes, "", gpus=4, port=1, now=self.now)
            made["status"] = difference(JobStatus(), status)
        self.cache.job_changed(made)

    async def writes(self) -> list[tuple[str, Raw]]:
        self.server.writes.clear()
        await self.writer.write()
        return list(self.server.writes)

    def status(self, name: str) -> Raw:
        found: Raw = self.server.objects[name]["status"]
        return found


async def test_what_is_held_and_asked_for_is_written_once() -> None:
    office = Office()
    office.put("queues", "vision")
    office.job("runs", "n1", "n1")
    office.job("waits")
    await office.writes()
    status = office.status("vision")

    assert {"held": 4, "heldByModel": {"H100": 4}} == status["usage"]
    assert {"jobs": 1, "gpus": 4} == status["pending"]
    assert {"Valid": "True", "WithinLimit": "True"} == {
        c["type"]: c["status"] for c in status["conditions"]
    }
    assert [] == await office.writes()


async def test_a_model_that_is_held_no_more_is_removed() -> None:
    office = Office()
    office.put("queues", "vision")
    office.job("runs", "n1", "n1")
    await office.writes()
    office.cache.job_gone("uid-runs")
    await office.writes()

    assert {"held": 0, "heldByModel": {}} == office.status("vision")["usage"]
    assert [] == await office.writes()


async def test_decayed_usage_is_written_when_it_has_moved() -> None:
    office = Office(HOUR)
    office.put("queues", "vision")
    office.job("runs", "n1", "n1")
    await office.writes()
    office.now += HOUR
    await office.writes()
    usage = office.status("vision")["usage"]

    assert (2.0, {"H100": 2.0}, text_of(START + HOUR)) == (
        usage["value"],
        usage["byModel"],
        usage["asOf"],
    )
    # By less than a hundredth within a minute.
    office.now += 10.0
    assert [] == await office.writes()
    office.now += 60.0
    assert ["vision"] == [name for name, _ in await office.writes()]


async def test_a_spec_that_makes_no_sense_is_told(caplog: pytest.LogCaptureFixture) -> None:
    office = Office()
    office.put("queues", "vision", weight=-1)
    office.put("queues", "lost", parent="nobody")
    office.put("topologies", "default", levels=[{"name": "rack"}])
    with caplog.at_level(logging.WARNING):
        await office.writes()
    conditions = {name: office.status(name)["conditions"][0] for name in ("vision", "lost")}

    assert ("InvalidSpec", "UnknownParent") == tuple(c["reason"] for c in conditions.values())
    assert "until it is mended its waiting jobs wait" in conditions["vision"]["message"]
    assert (
        "spec.levels[0].label: is missing" in office.status("default")["conditions"][0]["message"]
    )
    assert 3 == caplog.text.count("unsound")

    office.put("queues", "vision", weight=1)
    await office.writes()
    assert "True" == office.status("vision")["conditions"][0]["status"]


async def test_only_the_default_topology_is_held_against_the_nodes() -> None:
    office = Office()
    levels = [{"name": "rack", "label": "nobody-has-it"}]
    office.put("topologies", "default", levels=levels)
    office.put("topologies", "other", levels=levels)
    await office.writes()

    assert ("False", "True") == tuple(
        office.status(name)["conditions"][0]["status"] for name in ("default", "other")
    )


async def test_what_cannot_be_written_is_written_at_the_next_look() -> None:
    office = Office()
    office.put("queues", "vision")
    for problem in (ApiError("etcd is not well", status=500), ApiNotFound("gone", status=404)):
        office.server.problem = problem
        assert [] == await office.writes()
    office.server.problem = None

    assert ["vision"] == [name for name, _ in await office.writes()]
