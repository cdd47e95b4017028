"""Killed between any two writes of an eviction, the next operator ends in the same state."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from clusters import RunningCluster
from crashes import MortalKube
from eventually import eventually
from muster_kube import JOBS
from muster_operator.run import run
from muster_operator.settings import Settings
from operators import Stage, kubelet, operating, operator_settings, staged

pytestmark = pytest.mark.integration

_MOST_WRITES = 40


@pytest.fixture
async def stage(cluster: RunningCluster, namespace: str) -> AsyncIterator[Stage]:
    async with staged(cluster.kubeconfig, namespace) as stage, kubelet(stage):
        await stage.add_nodes(1)
        yield stage


@pytest.fixture
def settings(cluster: RunningCluster) -> Settings:
    account = cluster.kubeconfig_of("muster-operator")
    return operator_settings(account, preemption_notice=0.3, forecast_every=0.0)


async def test_a_crash_after_any_write_of_an_eviction_changes_nothing(
    stage: Stage, settings: Settings
) -> None:
    """Two victims of one claimant: the claim, what it asks of them, their ends, its start."""
    last = 0
    while last < _MOST_WRITES:
        last += 1
        await _prepare(stage, settings, last)
        is_done = await _dies_after(stage, settings, last)
        await _is_sound(stage, last)
        async with operating(settings):
            await _is_evicted(stage, last)
            await _is_put_away(stage, last)
        if is_done:
            break
    # The claim; a warning, an end and a way back for each victim; their pods; the start.
    assert 10 <= last < _MOST_WRITES, last


async def _prepare(stage: Stage, settings: Settings, last: int) -> None:
    """Two jobs run, and nobody operates when the third comes."""
    async with operating(settings):
        for name in (f"a-{last}", f"b-{last}"):
            await stage.create_job(name, replicas=1)
            await stage.has_pods(1, name)
            await stage.set_pods("Running", name)
            await stage.becomes("Running", name)
    await stage.create_job(f"c-{last}", replicas=1, gpusPerReplica=8, priority=1)


async def _dies_after(stage: Stage, settings: Settings, last: int) -> bool:
    """Whether the claimant had its pod before it came to that write."""
    dead = asyncio.Event()
    assert settings.kubeconfig is not None
    mortal = MortalKube.living_until(settings.kubeconfig, stage.namespace, last, dead.set)
    async with await mortal as kube:
        task = asyncio.create_task(run(settings, stop=asyncio.Event(), kube=kube))

        async def is_over() -> bool:
            return dead.is_set() or bool(await stage.pods(f"c-{last}"))

        await eventually(is_over)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    return not dead.is_set()


async def _is_sound(stage: Stage, last: int) -> None:
    """In the midst of it: whoever is asked or was evicted is named by a claim or its start."""
    claimant = await stage.status(f"c-{last}")
    claim = claimant.get("claim") or {}
    named = {
        victim["job"].partition("/")[2]
        for ask in claim.get("asks", ())
        for victim in ask["victims"]
    }
    for name in (f"a-{last}", f"b-{last}"):
        status = await stage.status(name)
        is_touched = "directive" in status or status.get("returning") or status.get("leaving")
        assert not is_touched or name in named or "placement" in claimant, (status, claimant)
        if "placement" not in status:
            assert [] == [p for p in await stage.pods(name) if p["status"]["phase"] == "Running"]
    if "placement" in claimant:
        assert all(["placement" not in await stage.status(f"{v}-{last}") for v in "ab"])


async def _is_evicted(stage: Stage, last: int) -> None:
    """In the end: the claimant has its pod, and each victim was evicted once, for it."""
    await stage.has_pods(1, f"c-{last}")
    for name in (f"a-{last}", f"b-{last}"):
        status = await stage.becomes("Pending", name, returning=True)
        assert 1 == status["restarts"]["preemption"]
        assert ["Preempted"] == [attempt["outcome"] for attempt in status["attempts"]]
        assert f"{stage.namespace}/c-{last}" == status["displaced"]["by"]
        assert "directive" not in status
        await stage.has_pods(0, name)
    assert "claim" not in await stage.status(f"c-{last}")


async def _is_put_away(stage: Stage, last: int) -> None:
    for letter in "cab":
        path = JOBS.path(stage.namespace, f"{letter}-{last}")
        await stage.kube.patch(path, {"spec": {"suspend": True}})
    for letter in "cab":
        name = f"{letter}-{last}"
        await stage.becomes("Suspended", name)
        metadata = {"finalizers": []}
        await stage.kube.patch(JOBS.path(stage.namespace, name), {"metadata": metadata})
        await stage.kube.delete(JOBS.path(stage.namespace, name))
