"""Killed between any two of its writes, the next operator ends in the same state."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import crashes
from clusters import RunningCluster
from crashes import MortalKube
from eventually import eventually
from muster import wire
from muster_operator.run import run
from operators import Stage, kubelet, operating, operator_settings, staged

pytestmark = pytest.mark.integration

_SIZE = 8


@pytest.fixture
async def stage(cluster: RunningCluster, namespace: str) -> AsyncIterator[Stage]:
    async with staged(cluster.kubeconfig, namespace) as stage, kubelet(stage):
        await stage.add_nodes(_SIZE)
        yield stage


@pytest.fixture
def account(cluster: RunningCluster) -> Path:
    return cluster.kubeconfig_of("muster-operator")


async def test_a_crash_after_any_write_changes_nothing(stage: Stage, account: Path) -> None:
    writes = await _writes_of_a_start(stage, account)
    # The placement, the finalizer, the service and a pod for each rank.
    assert 3 + _SIZE == len(writes), writes
    for last in range(1, len(writes) + 1):
        name = f"crash-{last}"
        await stage.create_job(name, replicas=_SIZE)
        await _dies_after(last, stage.namespace, account)
        await _is_sound(stage, name)
        async with operating(operator_settings(account)):
            await _is_whole(stage, name)
            await _is_put_away(stage, name)


@pytest.mark.parametrize("last", [1, 5])
async def test_a_process_that_is_killed_changes_nothing(
    stage: Stage, account: Path, last: int
) -> None:
    await stage.create_job(replicas=_SIZE)
    command = [sys.executable, crashes.__file__, str(account), stage.namespace, str(last)]
    process = await asyncio.to_thread(
        subprocess.run, command, timeout=60, capture_output=True, text=True, check=False
    )
    assert -9 == process.returncode, process.stderr
    await _is_sound(stage, "train")
    async with operating(operator_settings(account)):
        await _is_whole(stage, "train")


async def _writes_of_a_start(stage: Stage, account: Path) -> list[str]:
    """The writes of an operator that nobody kills, from a job to its gang."""
    kube = await MortalKube.living_until(account, stage.namespace, None, lambda: None)
    async with kube, operating(operator_settings(account), kube):
        await stage.create_job("calm", replicas=_SIZE)
        await _is_whole(stage, "calm")
        writes = list(kube.writes)
        await _is_put_away(stage, "calm")
    return writes


async def _dies_after(last: int, namespace: str, account: Path) -> None:
    dead = asyncio.Event()
    async with await MortalKube.living_until(account, namespace, last, dead.set) as kube:
        task = asyncio.create_task(
            run(operator_settings(account), stop=asyncio.Event(), kube=kube)
        )
        await asyncio.wait_for(dead.wait(), 20)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _is_sound(stage: Stage, name: str) -> None:
    """In the midst of it: no pod without the whole decision, and no rank twice."""
    pods = await stage.pods(name)
    ranks = [pod["metadata"]["labels"][wire.LABEL_REPLICA] for pod in pods]
    assert len(set(ranks)) == len(ranks)
    assert _SIZE == len((await stage.status(name))["placement"]["nodes"])


async def _is_whole(stage: Stage, name: str) -> None:
    """In the end: one attempt, one placement, one pod for each rank, where it says."""
    pods = await stage.has_pods(_SIZE, name)
    status = await stage.status(name)
    nodes = status["placement"]["nodes"]
    assert [1] == [attempt["attempt"] for attempt in status["attempts"]]
    placed = {
        int(pod["metadata"]["labels"][wire.LABEL_REPLICA]): pod["spec"]["nodeName"] for pod in pods
    }
    assert dict(enumerate(nodes)) == placed

    async def is_held() -> bool:
        return wire.RECORDER_FINALIZER in (await stage.job(name))["metadata"]["finalizers"]

    await eventually(is_held)


async def _is_put_away(stage: Stage, name: str) -> None:
    """The job ends, so that the next one has room."""
    await stage.set_pods("Succeeded", name)
    await stage.becomes("Succeeded", name)
