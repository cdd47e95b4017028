"""An elastic gang grows onto what is idle, and gives up surplus to those with a right to it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from clusters import RunningCluster
from eventually import eventually, stays
from muster_kube import NODES
from operators import Stage, kubelet, operating, operator_settings, staged

pytestmark = pytest.mark.integration


@pytest.fixture
def account(cluster: RunningCluster) -> Path:
    return cluster.kubeconfig_of("muster-operator")


@pytest.fixture
async def stage(cluster: RunningCluster, namespace: str, account: Path) -> AsyncIterator[Stage]:
    async with staged(cluster.kubeconfig, namespace) as stage, kubelet(stage):
        await stage.add_nodes(1)
        async with operating(operator_settings(account, preemption_notice=0.5)):
            yield stage


async def test_it_grows_when_there_is_room(stage: Stage) -> None:
    await stage.create_job(replicas=4, minReplicas=1)
    await _runs(stage, 2)
    before = await stage.status()
    await stage.add_nodes(1)
    pods = await stage.has_pods(4)
    grown = await stage.status()
    assert before["placement"]["nodes"] == grown["placement"]["nodes"][:2]
    assert (1, before["round"] + 1) == (grown["attempt"], grown["round"])
    # All replicas of an attempt carry the round with which it began.
    environment = {v["name"]: v.get("value") for v in pods[3]["spec"]["containers"][0]["env"]}
    assert str(before["round"]) == environment["MUSTER_ROUND"]
    await stage.set_pods("Running")
    status = await stage.becomes("Running", gang="4/4")
    assert 16 == status["attempts"][0]["gpus"]
    await stage.told("Growing", "Grown")


async def test_it_gives_up_surplus_and_goes_on(stage: Stage) -> None:
    await stage.add_nodes(1)
    await stage.create_job(replicas=4, minReplicas=2)
    old = await _runs(stage, 4)
    before = await stage.status()
    await stage.create_job("other", replicas=1)
    await stage.becomes("Starting", "other")
    await stage.has_pods(1, "other")
    status = await stage.becomes("Running", gang="3/3")
    assert before["placement"]["nodes"][:3] == status["placement"]["nodes"]
    assert before["round"] + 1 == status["round"]
    assert 0 == status.get("restarts", {}).get("preemption", 0)
    kept = {pod["metadata"]["uid"] for pod in await stage.has_pods(3)}
    assert {pod["metadata"]["uid"] for pod in old[:3]} == kept
    await stage.told("Preempting", "Shrinking", "Shrunk")
    await stays(lambda: _has_pods(stage, 3), during=0.5)


async def test_a_rank_that_comes_back_has_another_pod(stage: Stage) -> None:
    await stage.add_nodes(1)
    await stage.create_job(replicas=4, minReplicas=2)
    before = [pod["metadata"]["name"] for pod in await _runs(stage, 4)]
    await stage.create_job("other", replicas=1)
    await stage.has_pods(1, "other")
    await stage.set_pods("Running", "other")
    await stage.becomes("Running", gang="3/3")
    await stage.becomes("Running", "other")
    await stage.set_pods("Succeeded", "other")
    names = [pod["metadata"]["name"] for pod in await stage.has_pods(4)]
    assert before[:3] == names[:3]
    assert before[3] != names[3]
    await stage.set_pods("Running")
    status = await stage.becomes("Running", gang="4/4")
    assert 1 == status["attempt"]


async def test_growth_that_is_refused_is_given_back(stage: Stage) -> None:
    await stage.create_job(replicas=4, minReplicas=1)
    await _runs(stage, 2)
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "two"},
        "spec": {"hard": {"pods": "2"}},
    }
    await stage.kube.create(f"/api/v1/namespaces/{stage.namespace}/resourcequotas", quota)
    (node,) = await stage.add_nodes(1)

    async def has_tried() -> bool:
        return "retryAt" in await stage.status()

    await eventually(has_tried)
    status = await stage.becomes("Running", gang="2/2")
    assert node not in status["placement"]["nodes"]
    assert await _has_pods(stage, 2)


async def test_a_replica_that_is_lost_restarts_all_of_it(stage: Stage) -> None:
    await stage.add_nodes(1)
    await stage.create_job(replicas=4, minReplicas=2)
    pods = await _runs(stage, 4)
    path = NODES.path(name=pods[3]["spec"]["nodeName"])
    await stage.kube.patch(path, {"spec": {"unschedulable": True}})
    await stage.delete_pod(pods[3])
    await stage.becomes("Starting", attempt=2)
    await stage.has_pods(2)


async def _runs(stage: Stage, replicas: int, name: str = "train") -> list[dict[str, Any]]:
    """Its pods, once so many run; it may have started with fewer and grown."""

    async def are_all_there() -> bool:
        await stage.set_pods("Running", name)
        return (await stage.status(name)).get("gang") == f"{replicas}/{replicas}"

    await eventually(are_all_there)
    await stage.becomes("Running", name)
    return await stage.has_pods(replicas, name)


async def _has_pods(stage: Stage, count: int) -> bool:
    return count == len(await stage.pods())
