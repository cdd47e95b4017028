"""Three queues, 200 gangs, preemption and reclaim, a rack lost: every gang whole all the time."""

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from custom_objects import an_object
from eventually import eventually
from gang_watch import GangWatch, watching
from muster import wire
from muster_kube import JOBS, NODES, QUEUES, Kube
from muster_local import lifecycle
from muster_local.shape import Options
from operators import operating, operator_settings

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

_NODES = 32
_RACK = "kwok-rack-0001"
_QUEUES: dict[str, dict[str, Any]] = {
    # Half of the cluster is guaranteed to who comes last.
    "late": {"guaranteed": 128, "weight": 1},
    "early": {"guaranteed": 32, "weight": 2},
    "lent": {"weight": 1, "limit": 200},
}


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cluster of fake nodes in two racks, and nothing else."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MUSTER_HOME", str(tmp_path_factory.mktemp("kwok")))
        options = Options("gangs", nodes=0, gpus=8, kwok_nodes=_NODES, no_platform=True)
        try:
            yield lifecycle.up(options).kubeconfig
        finally:
            lifecycle.down("gangs")


async def test_two_hundred_gangs_of_three_queues_stay_whole(kubeconfig: Path) -> None:
    settings = operator_settings(
        kubeconfig, preemption_notice=1.0, forecast_every=5.0, whole_within=4.0
    )
    draw = random.Random(4)
    async with await Kube.connect(kubeconfig, connections=64) as kube:
        for name, spec in _QUEUES.items():
            await kube.create(QUEUES.path(), an_object(QUEUES, name, spec))
        async with watching(kube, "default", 8) as watch, operating(settings):
            await _submit(kube, [_gang(n, "lent", draw) for n in range(80)])
            await _submit(kube, [_gang(n, "early", draw) for n in range(80, 120)])
            await eventually(lambda: len(watch.placed) >= 40, within=60)
            await _submit(kube, [_gang(n, "late", draw) for n in range(120, 200)])
            await eventually(lambda: len(watch.evicted) >= 3, within=60)
            await _lose_rack(kube)
            await eventually(lambda: _are_over(watch), within=300)
    problems = watch.end()
    assert not problems, "\n".join(problems[:20])
    assert {"Succeeded": 200} == Counter(watch.phases.values())
    assert {"guarantee", "priority"} <= watch.rights
    lost = [key for key, outcome in watch.outcomes.items() if outcome == "Lost"]
    assert lost, "the rack had gangs on it"


def _gang(number: int, queue: str, draw: random.Random) -> dict[str, Any]:
    """A gang of up to 32 GPUs for some seconds; one in eight is elastic."""
    replicas = draw.choice((1, 1, 2, 2, 4, 4))
    elastic = {"minReplicas": max(1, replicas // 2)} if number % 8 == 0 else {}
    topology = {"topology": {"required": "rack"}} if number % 5 == 0 else {}
    seconds = draw.randint(2, 8)
    return {
        "apiVersion": wire.API_VERSION,
        "kind": "TrainingJob",
        "metadata": {"name": f"gang-{number}", "namespace": "default"},
        "spec": {
            "queue": queue,
            "replicas": replicas,
            **elastic,
            **topology,
            "gpusPerReplica": draw.choice((2, 4, 4, 8)),
            "priority": draw.choice((0, 0, 0, 1, 2)),
            "maxRunTime": "1m",
            "restarts": {"infrastructure": 50, "user": 50},
            "template": {
                "metadata": {
                    "annotations": {"pod-complete.stage.kwok.x-k8s.io/delay": f"{seconds}s"}
                },
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{"name": "main", "image": "fake", "command": ["train"]}],
                },
            },
        },
    }


async def _submit(kube: Kube, jobs: list[dict[str, Any]]) -> None:
    await asyncio.gather(*(kube.create(JOBS.path("default"), job) for job in jobs))


async def _lose_rack(kube: Kube) -> None:
    """Half of the cluster is gone at once, with whatever runs there."""
    nodes, _ = await kube.list(NODES.path(), query={"labelSelector": f"muster.dev/rack={_RACK}"})
    assert _NODES // 2 == len(nodes)
    await asyncio.gather(
        *(kube.delete(NODES.path(name=node["metadata"]["name"])) for node in nodes)
    )


def _are_over(watch: GangWatch) -> bool:
    over = sum(phase in ("Succeeded", "Failed", "Cancelled") for phase in watch.phases.values())
    assert over == 200, Counter(watch.phases.values())
    return True
