"""Operator and API as processes on a real API server: why jobs wait, and what would start them."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio
import yaml

from apis import bearer
from clusters import RunningCluster
from eventually import eventually
from muster.scheduling.archive import loads
from muster_kube import JOBS, QUEUES
from operators import Stage, job_manifest
from platforms import Platform, Processes, platform_of, running

pytestmark = pytest.mark.integration

Json = dict[str, Any]


@pytest.fixture(scope="module")
def processes(
    cluster: RunningCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Processes]:
    with running(cluster, tmp_path_factory.mktemp("platform")) as started:
        yield started


@pytest_asyncio.fixture
async def platform(
    processes: Processes, cluster: RunningCluster, namespace: str, tmp_path: Path
) -> AsyncIterator[Platform]:
    async with platform_of(processes, cluster, namespace, tmp_path / "home") as opened:
        yield opened


async def submit(platform: Platform, name: str, **spec: Any) -> Json:
    """A job that only fits the nodes of this test."""
    answer = await platform.client.post(
        "/api/v1/jobs",
        json=job_manifest(platform.stage.namespace, name, **spec),
        params={"namespace": platform.stage.namespace},
    )
    assert 201 == answer.status_code, answer.text
    return dict(answer.json())


async def test_each_suggested_change_that_is_made_starts_the_job(platform: Platform) -> None:
    stage = platform.stage
    await stage.add_nodes(1, rack="r0")
    await stage.add_nodes(1, rack="r1")
    topology = {"required": "rack"}
    await submit(platform, "wide", replicas=4, gpusPerReplica=4, topology=topology)
    found = await platform.explained("wide", "NeverFits", changes=2)
    changes = {change["change"]: change["edits"] for change in found["changes"]}

    assert [
        "ask for 2 in place of 4 replicas",
        "let it lie within one block in place of one rack",
    ] == list(changes)
    for number, edits in enumerate(changes.values()):
        (edit,) = edits
        name = f"narrow{number}"
        manifest = job_manifest(
            stage.namespace, name, replicas=4, gpusPerReplica=4, topology=topology
        )
        spec = merged(manifest["spec"], edit["spec"])
        await stage.kube.create(JOBS.path(stage.namespace), manifest | {"spec": spec})
        await stage.becomes("Starting", name)
        await stage.kube.delete(JOBS.path(stage.namespace, name))
        await eventually(lambda name=name: is_gone(stage, name))  # type: ignore[misc]


def merged(before: Json, patch: Json) -> Json:
    """A merge patch, as the API server applies one."""
    found = dict(before)
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        elif isinstance(value, dict) and isinstance(found.get(key), dict):
            found[key] = merged(found[key], value)
        else:
            found[key] = value
    return found


async def is_gone(stage: Stage, name: str) -> bool:
    items, _ = await stage.kube.list(JOBS.path(stage.namespace))
    return name not in [item["metadata"]["name"] for item in items] and not await stage.pods(name)


async def test_a_limit_that_is_raised_as_suggested_starts_the_job(platform: Platform) -> None:
    stage, queue = platform.stage, f"q-{platform.stage.namespace}"
    await stage.add_nodes(1)
    body = {
        "apiVersion": "muster.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": queue},
        "spec": {"limit": 4},
    }
    await stage.kube.create(QUEUES.path(), body)
    try:

        async def is_known() -> bool:
            items = (await platform.get("/api/v1/queues"))["items"]
            return any((item["name"], item["limit"]) == (queue, 4) for item in items)

        await eventually(is_known)
        await submit(platform, "train", queue=queue, replicas=2, gpusPerReplica=4)
        found = await platform.explained("train", "NeverFits", changes=2)
        edit = found["changes"][-1]["edits"][0]

        assert ("Queue", queue, {"limit": 8}) == (edit["kind"], edit["name"], edit["spec"])
        await stage.kube.patch(QUEUES.path(name=queue), {"spec": edit["spec"]})
        await stage.becomes("Starting")
        (item,) = [
            item
            for item in (await platform.get("/api/v1/queues"))["items"]
            if item["name"] == queue
        ]
        assert (8, 8, 0, 8) == tuple(
            item[key] for key in ("usage", "limit", "pending_gpus", "borrowed")
        )
    finally:
        await stage.kube.delete(QUEUES.path(name=queue))


async def test_a_dry_run_tells_what_then_happens(platform: Platform, tmp_path: Path) -> None:
    stage = platform.stage
    await stage.add_nodes(1)
    file = tmp_path / "train.yaml"
    file.write_text(yaml.safe_dump(job_manifest(stage.namespace, "train", gpusPerReplica=4)))

    async def tried() -> Json:
        code, out, err = await platform.command("submit", str(file), "--dry-run", "-o", "json")
        assert (0, "") == (code, err)
        return dict(json.loads(out))

    async def starts() -> Json | None:
        found = await tried()
        return found if found["verdict"] == "starts" else None

    first = await eventually(starts)
    assert first is not None
    assert stage.nodes * 2 == first["placement"]
    await submit(platform, "train", gpusPerReplica=4)
    await stage.becomes("Starting")
    file.write_text(file.read_text().replace("name: train\n", "name: next\n", 1))
    second = await tried()

    assert ("waits", "InsufficientCapacity", [], []) == (
        second["verdict"],
        second["code"],
        second["placement"],
        second["victims"],
    )
    assert {"train"} == {
        item["metadata"]["name"] for item in (await stage.kube.list(JOBS.path(stage.namespace)))[0]
    }


async def test_nodes_show_who_holds_them(platform: Platform) -> None:
    stage = platform.stage
    (name,) = await stage.add_nodes(1)
    await submit(platform, "train", replicas=1, gpusPerReplica=5)
    await stage.becomes("Starting")
    code, out, _ = await platform.command("nodes", "-o", "json")
    (item,) = [item for item in json.loads(out)["items"] if item["name"] == name]

    assert 0 == code
    assert (8, 3, {f"{stage.namespace}/train": 5}, {"block": "b0", "rack": "r0"}) == (
        item["gpus"],
        item["free"],
        item["held_by"],
        item["domains"],
    )


async def test_a_decision_is_planned_again_the_same_in_a_fresh_process(
    platform: Platform,
) -> None:
    stage = platform.stage
    await stage.add_nodes(1)
    await submit(platform, "train")
    await stage.becomes("Starting")

    async def decision() -> str | None:
        items = (await platform.get("/api/v1/decisions"))["items"]
        deed = f"Admit {stage.namespace}/train"
        return next((item["id"] for item in items if deed in item["deeds"]), None)

    id_ = await eventually(decision)
    assert id_ is not None
    code, out, err = await platform.command("replay", id_, "-o", "json")
    found = json.loads(out)

    assert (0, "", id_, True) == (code, err, found["id"], found["same"])
    admitted = [each for each in found["plan"]["decisions"] if each["is"] == "Admit"]
    assert (await stage.status())["placement"]["nodes"] == admitted[0]["nodes"]


async def test_a_snapshot_is_what_the_scheduler_sees(platform: Platform, tmp_path: Path) -> None:
    stage = platform.stage
    (name,) = await stage.add_nodes(1)
    await submit(platform, "train", gpusPerReplica=8)
    found = await platform.explained("train", "NeverFits", changes=1)
    code, out, err = await platform.command("snapshot")
    file = tmp_path / "snapshot.json"
    file.write_text(out)

    assert (0, "") == (code, err)
    inputs = loads(out)
    assert name in [node.name for node in inputs.objects.nodes]
    assert f"{stage.namespace}/train" in [gang.key for gang in inputs.objects.gangs]
    words = ("explain", "train", "-n", stage.namespace, "--snapshot", str(file), "-o", "json")
    code, out, _ = await platform.command(*words)
    same = ("code", "message", "queue_position", "changes")
    assert {key: found[key] for key in same} == {key: json.loads(out)[key] for key in same}


async def test_only_administrators_see_what_the_scheduler_sees(
    platform: Platform, cluster: RunningCluster, namespace: str
) -> None:
    token = await asyncio.to_thread(cluster.token_of, "default", namespace)
    for path in ("/api/v1/snapshot", "/api/v1/decisions", "/api/v1/decisions/1", "/api/v1/nodes"):
        answer = await platform.client.get(path, headers=bearer(token))
        assert 403 == answer.status_code, path
    async with httpx2.AsyncClient(base_url=platform.processes.operator_url) as operator:
        for header in ({}, bearer(token), dict(platform.client.headers)):
            # A token for the API server is none for the operator, an administrator's neither.
            answer = await operator.get("/snapshot", headers=header)
            assert 401 == answer.status_code
        assert 200 == (await operator.get("/metrics")).status_code


async def test_without_the_operator_the_status_is_told(
    cluster: RunningCluster, namespace: str, tmp_path: Path
) -> None:
    with running(cluster, tmp_path) as processes:
        async with platform_of(processes, cluster, namespace, tmp_path / "home") as platform:
            await _the_status_is_told(platform)


async def _the_status_is_told(platform: Platform) -> None:
    stage = platform.stage
    await stage.add_nodes(1)
    await submit(platform, "train", replicas=3, gpusPerReplica=4)
    await platform.explained("train", "NeverFits", changes=1)
    await stage.becomes("Pending", reason="NeverFits")
    platform.processes.operator.kill()
    await asyncio.to_thread(platform.processes.operator.wait)
    found = await platform.get(platform.path("train"))
    refused = await platform.client.get("/api/v1/nodes")

    assert ("status", "NeverFits", []) == (found["source"], found["code"], found["changes"])
    assert (503, True) == (refused.status_code, "does not answer" in refused.json()["detail"])
