"""What ends a gang, what it costs, and what comes after."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from clusters import RunningCluster
from eventually import eventually, stays
from muster import wire
from muster_kube import JOBS, PODS, ApiError, ApiNotFound, Kube
from operators import Stage, kubelet, operating, operator_settings, staged

pytestmark = pytest.mark.integration


@pytest.fixture
def account(cluster: RunningCluster) -> Path:
    return cluster.kubeconfig_of("muster-operator")


@pytest.fixture
async def quiet(cluster: RunningCluster, namespace: str) -> AsyncIterator[Stage]:
    """A stage without an operator, and without a kubelet."""
    async with staged(cluster.kubeconfig, namespace) as stage:
        await stage.add_nodes(2)
        yield stage


@pytest.fixture
async def stage(quiet: Stage, account: Path) -> AsyncIterator[Stage]:
    async with kubelet(quiet), operating(operator_settings(account)):
        yield quiet


async def test_a_script_that_raises_fails_the_job_with_its_last_words(stage: Stage) -> None:
    await stage.create_job(restarts={"user": 0})
    _, second = await _running(stage)
    traceback = "Traceback (most recent call last):\n  ...\nValueError: no such column\n"
    await stage.set_pod(second, "Failed", code=1, message=traceback)
    status = await stage.becomes("Failed", reason="UserError")
    assert "replica 1: exit code 1: ValueError: no such column" == status["message"]
    assert 1 == status["restarts"]["user"]
    assert "placement" not in status
    # The pod that failed stays for its log; nothing else does.
    assert [second["metadata"]["name"]] == [p["metadata"]["name"] for p in await stage.pods()]
    await stage.told("Running", "ReplicaFailed", "Failed")


async def test_a_gang_restarts_whole_until_its_budget_is_spent(stage: Stage) -> None:
    await stage.create_job(restarts={"infrastructure": 3})
    for attempt in range(1, 5):
        first, _ = await _running(stage, attempt)
        await stage.set_pod(first, "Failed", code=137)
    status = await stage.becomes("Failed", reason="InfrastructureError", attempt=4)
    assert 4 == status["restarts"]["infrastructure"]
    assert ["Lost"] * 4 == [attempt["outcome"] for attempt in status["attempts"]]
    ports = {attempt["attempt"] for attempt in status["attempts"]}
    assert {1, 2, 3, 4} == ports


async def test_a_deleted_replica_restarts_all_ranks(stage: Stage) -> None:
    await stage.create_job()
    old = await _running(stage)
    before = await stage.status()
    await stage.delete_pod(old[1])
    new = await _running(stage, 2)
    assert not {p["metadata"]["uid"] for p in old} & {p["metadata"]["uid"] for p in new}
    status = await stage.status()
    assert before["round"] + 1 == status["round"]
    assert before["placement"]["port"] != status["placement"]["port"]


async def test_a_node_that_shuts_down_costs_no_user_budget(stage: Stage) -> None:
    await stage.create_job(restarts={"user": 0, "infrastructure": 0})
    _, second = await _running(stage)
    ended = {"phase": "Failed", "reason": "Terminated", "message": "Pod was terminated"}
    await stage.set_pod_status(second, ended)
    await _running(stage, 2)
    restarts = (await stage.status())["restarts"]
    assert {"preemption": 1, "infrastructure": 0, "user": 0} == restarts


async def test_a_node_that_is_gone_takes_its_gang_elsewhere(stage: Stage) -> None:
    await stage.create_job(replicas=2, gpusPerReplica=8)
    await _running(stage)
    (spare,) = await stage.add_nodes(1)
    lost = stage.nodes[0]
    await stage.remove_node(lost)
    await _running(stage, 2)
    status = await stage.status()
    assert spare in status["placement"]["nodes"]
    assert lost not in status["placement"]["nodes"]
    assert "its node is gone" in status["attempts"][0]["message"]


async def test_no_rank_has_two_pods(quiet: Stage, account: Path) -> None:
    async with operating(operator_settings(account)):
        await quiet.create_job(replicas=2)
        first, second = await _running(quiet)
        await quiet.set_pod(first, "Failed", code=1)
        # No kubelet confirms the end of the second one, which may still be writing.
        await eventually(lambda: _is_leaving(quiet, second))
        await stays(lambda: _is_in_attempt(quiet, 1), during=1.0)
        status = await quiet.becomes("Restarting")
        assert "placement" in status
        await quiet.delete_pod(second)
        await quiet.becomes("Starting", attempt=2)
        await quiet.has_pods(2)


async def test_what_is_over_stays_over(quiet: Stage, account: Path) -> None:
    async with kubelet(quiet):
        async with operating(operator_settings(account)):
            await quiet.create_job(restarts={"user": 0})
            first, _ = await _running(quiet)
            await quiet.set_pod(first, "Failed", code=1)
            failed = await quiet.becomes("Failed")
            await quiet.delete_pod(first)
            await stays(lambda: _has_no_pods(quiet), during=0.5)
        async with operating(operator_settings(account)):
            await stays(lambda: _has_no_pods(quiet), during=0.5)
        assert failed == await quiet.status()


async def test_failed_is_not_said_before_the_gpus_are_free(quiet: Stage, account: Path) -> None:
    kube = await StubbornKube.connect(account, connections=128)
    async with kubelet(quiet), kube, operating(operator_settings(account), kube):
        await quiet.create_job(restarts={"user": 0})
        first, _ = await _running(quiet)
        await quiet.set_pod(first, "Failed", code=1)
        await eventually(lambda: kube.refused == 2)
        status = await quiet.status()
        assert ("Running", "Terminating") == (status["phase"], status["reason"])
        assert "endedAt" not in status["attempts"][-1]
        kube.is_willing = True
        status = await quiet.becomes("Failed")
        assert "endedAt" in status["attempts"][-1]


async def test_a_suspended_job_leaves_and_comes_back(stage: Stage) -> None:
    await stage.create_job()
    await _running(stage)
    await stage.patch_job(suspend=True)
    status = await stage.becomes("Suspended")
    await stage.has_pods(0)
    assert "placement" not in status
    assert "Suspended" == status["attempts"][0]["outcome"]
    await stage.patch_job(suspend=False)
    await _running(stage, 2)
    assert "restarts" not in await stage.status()


async def test_a_deleted_job_is_let_go_though_nobody_records_it(stage: Stage) -> None:
    await stage.create_job()
    await _running(stage)
    await stage.kube.delete(JOBS.path(stage.namespace, "train"))
    status = await stage.becomes("Cancelled")
    assert "Cancelled" == status["attempts"][0]["outcome"]
    await eventually(lambda: _is_gone(stage))
    await stage.has_pods(0)
    await stage.told("Running", "Cancelled", "Released")


async def test_a_deleted_job_waits_for_the_recorder(quiet: Stage, account: Path) -> None:
    async with kubelet(quiet), operating(operator_settings(account, recorder_wait=60.0)):
        await quiet.create_job()
        await _running(quiet)
        path = JOBS.path(quiet.namespace, "train")
        await quiet.kube.delete(path)
        await quiet.becomes("Cancelled")
        assert [wire.RECORDER_FINALIZER] == (await quiet.job())["metadata"]["finalizers"]
        await quiet.kube.patch(path, {"metadata": {"finalizers": []}})
        await eventually(lambda: _is_gone(quiet))


async def test_a_finished_job_goes_when_its_time_is_over(stage: Stage) -> None:
    await stage.create_job(ttlSecondsAfterFinished=1)
    await _running(stage)
    await stage.set_pods("Succeeded")
    await eventually(lambda: _is_gone(stage))


async def test_an_operator_that_was_away_finds_what_happened(quiet: Stage, account: Path) -> None:
    async with kubelet(quiet):
        async with operating(operator_settings(account)):
            await quiet.create_job()
            await _running(quiet)
        await quiet.set_pods("Succeeded")
        async with operating(operator_settings(account)):
            status = await quiet.becomes("Succeeded")
            assert 1 == status["attempt"]


class StubbornKube(Kube):
    """Answers deletes of pods with errors, until it is willing: first a 500, then a 409."""

    is_willing = False
    refused = 0

    async def request(self, method: str, path: str, **rest: Any) -> dict[str, Any]:
        if method == "DELETE" and "/pods/" in path and not self.is_willing:
            self.refused += 1
            raise ApiError("etcd is not well", status=500)
        return await super().request(method, path, **rest)


async def _running(stage: Stage, attempt: int = 1) -> list[dict[str, Any]]:
    """The gang's pods, once all of them run in *attempt*."""
    await stage.becomes("Starting", attempt=attempt)
    names = {f"train-{attempt}-{replica}-0" for replica in range(2)}

    async def are_there() -> bool:
        return names == {pod["metadata"]["name"] for pod in await stage.pods()}

    await eventually(are_there)
    await stage.set_pods("Running")
    await stage.becomes("Running", attempt=attempt)
    return await stage.pods()


async def _has_no_pods(stage: Stage) -> bool:
    return not await stage.pods()


async def _is_in_attempt(stage: Stage, attempt: int) -> bool:
    labels = [pod["metadata"]["labels"] for pod in await stage.pods()]
    return {str(attempt)} == {each[wire.LABEL_ATTEMPT] for each in labels}


async def _is_leaving(stage: Stage, pod: dict[str, Any]) -> bool:
    path = PODS.path(stage.namespace, pod["metadata"]["name"])
    return "deletionTimestamp" in (await stage.kube.get(path))["metadata"]


async def _is_gone(stage: Stage) -> bool:
    try:
        await stage.job()
    except ApiNotFound:
        return True
    return False
