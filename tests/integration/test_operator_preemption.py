"""One job makes room for another: asked first, gone second, and back at the head of its class."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from clusters import RunningCluster
from eventually import eventually, stays
from muster_kube import JOBS
from operators import Stage, kubelet, operating, operator_settings, staged

pytestmark = pytest.mark.integration


@pytest.fixture
def account(cluster: RunningCluster) -> Path:
    return cluster.kubeconfig_of("muster-operator")


@pytest.fixture
async def quiet(cluster: RunningCluster, namespace: str) -> AsyncIterator[Stage]:
    """A stage with two nodes of eight GPUs and no operator."""
    async with staged(cluster.kubeconfig, namespace) as stage, kubelet(stage):
        await stage.add_nodes(2)
        yield stage


@pytest.fixture
async def stage(quiet: Stage, account: Path) -> AsyncIterator[Stage]:
    """The same, with an operator that gives a long notice."""
    async with operating(operator_settings(account, preemption_notice=60.0)):
        yield quiet


async def test_a_victim_saves_leaves_and_waits_at_the_head(stage: Stage) -> None:
    await stage.create_job("low", replicas=4)
    await _runs(stage, "low", 4)
    await stage.create_job("high", replicas=2, priority=1)
    asked = await stage.becomes("Preempting", "low")
    assert [{"claimant": f"{stage.namespace}/high"}] == [
        {"claimant": each["claimant"]} for each in asked["leaving"]
    ]
    assert "checkpoint" == asked["directive"]["kind"]
    claim = (await stage.status("high"))["claim"]
    assert [f"{stage.namespace}/low"] == [
        victim["job"] for ask in claim["asks"] for victim in ask["victims"]
    ]
    await stage.becomes("Pending", "high", reason="WaitingForPreemption")
    # Nobody leaves before it has saved, or its notice is over.
    await stays(lambda: _has_pods(stage, "low", 4), during=0.5)
    await _saves(stage, "low")
    status = await stage.becomes("Starting", "high")
    assert "claim" not in status
    left = await stage.becomes("Pending", "low", returning=True)
    assert f"{stage.namespace}/high" == left["displaced"]["by"]
    assert {"preemption": 1, "infrastructure": 0, "user": 0} == left["restarts"]
    assert "Preempted" == left["attempts"][0]["outcome"]
    assert {"directive", "leaving", "placement"}.isdisjoint(left)
    await stage.told("Preempts", "Admitted", name="high")
    await stage.told("Preempting", "Evicted", "Preempted", name="low")
    await _runs(stage, "high", 2)
    await stage.set_pods("Succeeded", "high")
    await _runs(stage, "low", 4, attempt=2)
    assert {"displaced", "returning"}.isdisjoint(await stage.status("low"))


async def test_a_victim_leaves_when_its_notice_is_over(quiet: Stage, account: Path) -> None:
    async with operating(operator_settings(account, preemption_notice=1.0)):
        await quiet.create_job("low", replicas=4)
        await _runs(quiet, "low", 4)
        await quiet.create_job("high", replicas=4, priority=1)
        await quiet.becomes("Preempting", "low")
        await quiet.becomes("Starting", "high")
        await quiet.has_pods(4, "high")


async def test_the_claimant_waits_until_the_pods_are_really_gone(
    cluster: RunningCluster, namespace: str, account: Path
) -> None:
    settings = operator_settings(account, preemption_notice=0.0)
    async with staged(cluster.kubeconfig, namespace) as stage, operating(settings):
        # No kubelet confirms that a pod has ended.
        await stage.add_nodes(1)
        await stage.create_job("low")
        first, second = await _runs(stage, "low", 2)
        await stage.create_job("high", priority=1)
        await stage.told("Evicted", name="low")
        await eventually(lambda: _is_leaving(stage, "low"))
        await stage.delete_pod(first)
        await stays(lambda: _is_pending(stage, "high"), during=0.7)
        await stage.delete_pod(second)
        await stage.becomes("Starting", "high")


async def test_what_is_not_needed_any_more_is_withdrawn(stage: Stage) -> None:
    await stage.create_job("low", replicas=4)
    (pod, *_) = await _runs(stage, "low", 4)
    await stage.create_job("high", replicas=4, priority=1)
    await stage.becomes("Preempting", "low")
    await stage.add_nodes(2)
    await stage.becomes("Starting", "high")
    status = await stage.becomes("Running", "low")
    assert {"directive", "leaving"}.isdisjoint(status)
    assert pod["metadata"]["uid"] in {p["metadata"]["uid"] for p in await stage.pods("low")}
    await stage.told("Preempting", "Spared", name="low")


async def test_a_claimant_that_goes_takes_its_claim_with_it(stage: Stage) -> None:
    await stage.create_job("low", replicas=4)
    await _runs(stage, "low", 4)
    await stage.create_job("high", replicas=4, priority=1)
    await stage.becomes("Preempting", "low")
    await stage.kube.delete(JOBS.path(stage.namespace, "high"))
    await stage.becomes("Running", "low")
    await stays(lambda: _has_pods(stage, "low", 4), during=0.5)


async def test_what_cannot_be_evicted_is_waited_for(stage: Stage) -> None:
    await stage.create_job("low", replicas=4, preemptible=False)
    await _runs(stage, "low", 4)
    await stage.create_job("high", replicas=4, priority=1)
    await stage.becomes("Pending", "high", reason="InsufficientCapacity")
    await stays(lambda: _has_pods(stage, "low", 4), during=0.5)


async def test_a_suspended_job_saves_before_it_leaves(stage: Stage) -> None:
    await stage.create_job(checkpoint={"uri": "/checkpoints"})
    await _runs(stage, "train", 2)
    await stage.patch_job(suspend=True)
    asked = await stage.becomes("Running", reason="Suspending")
    assert "checkpoint" == asked["directive"]["kind"]
    await stays(lambda: _has_pods(stage, "train", 2), during=0.5)
    await _saves(stage, "train")
    status = await stage.becomes("Suspended")
    assert 0 == status.get("restarts", {}).get("preemption", 0)
    assert "directive" not in status


async def test_one_that_comes_after_another_waits_for_its_success(stage: Stage) -> None:
    await stage.create_job("second", after="first")
    status = await stage.becomes("Pending", "second", reason="Dependency")
    assert "there is no such job" in status["message"]
    await stage.create_job("first")
    await _runs(stage, "first", 2)
    await stays(lambda: _is_pending(stage, "second"), during=0.5)
    await stage.set_pods("Succeeded", "first")
    await _runs(stage, "second", 2)
    assert (await stage.status("second"))["released"] is True


async def test_a_job_that_waits_says_when_it_starts_and_for_whom_it_waits(stage: Stage) -> None:
    await stage.create_job("first", replicas=4, maxRunTime="1h")
    await _runs(stage, "first", 4)
    await stage.create_job("second", replicas=4)
    decided = (await stage.status("first"))["placement"]["decidedAt"]

    async def is_foreseen() -> bool:
        status = await stage.status("second")
        assert f"{stage.namespace}/first" == status.get("waitsFor"), status
        ahead = _seconds(status["predictedStart"]) - _seconds(decided)
        assert 3600.0 == round(ahead)
        return True

    await eventually(is_foreseen)


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


async def _runs(stage: Stage, name: str, replicas: int, attempt: int = 1) -> list[dict[str, Any]]:
    """The gang's pods, once all of them run."""
    await stage.becomes("Starting", name, attempt=attempt)
    await stage.has_pods(replicas, name)
    await stage.set_pods("Running", name)
    await stage.becomes("Running", name)
    return await stage.pods(name)


async def _saves(stage: Stage, name: str) -> None:
    """As the recorder does when a checkpoint was verified."""
    at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    path = JOBS.path(stage.namespace, name, "status")
    await stage.kube.patch(path, {"status": {"checkpoint": {"at": at, "step": 1}}})


async def _has_pods(stage: Stage, name: str, count: int) -> bool:
    pods = await stage.pods(name)
    return count == len([pod for pod in pods if "deletionTimestamp" not in pod["metadata"]])


async def _is_pending(stage: Stage, name: str) -> bool:
    return "placement" not in await stage.status(name)


async def _is_leaving(stage: Stage, name: str) -> bool:
    return all("deletionTimestamp" in pod["metadata"] for pod in await stage.pods(name))
