"""Queues and topologies that make no sense: each is told so, and everybody else goes on."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from clusters import RunningCluster
from custom_objects import an_object
from eventually import eventually
from muster_kube import QUEUES, TOPOLOGIES, ApiNotFound, Resource
from operators import Stage, kubelet, operating, operator_settings, staged

pytestmark = pytest.mark.integration


class Queues:
    """Queues that are gone after the test."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._made: list[str] = []

    def named(self, name: str) -> str:
        return f"{self._stage.namespace}-{name}"

    async def create(self, name: str, **spec: Any) -> None:
        if "parent" in spec:
            spec["parent"] = self.named(spec["parent"])
        self._made.append(self.named(name))
        await self._stage.kube.create(QUEUES.path(), an_object(QUEUES, self.named(name), spec))

    async def change(self, name: str, **spec: Any) -> None:
        await self._stage.kube.patch(QUEUES.path(name=self.named(name)), {"spec": spec})

    async def delete(self, name: str) -> None:
        await self._stage.kube.delete(QUEUES.path(name=self.named(name)))

    async def clear(self) -> None:
        for name in self._made:
            try:
                await self._stage.kube.delete(QUEUES.path(name=name))
            except ApiNotFound:
                continue


@pytest.fixture
async def stage(cluster: RunningCluster, namespace: str) -> AsyncIterator[Stage]:
    async with staged(cluster.kubeconfig, namespace) as stage, kubelet(stage):
        await stage.add_nodes(1)
        async with operating(operator_settings(cluster.kubeconfig_of("muster-operator"))):
            yield stage


@pytest.fixture
async def queues(stage: Stage) -> AsyncIterator[Queues]:
    queues = Queues(stage)
    yield queues
    await queues.clear()


async def test_rings_and_unknown_parents_hold_nobody_up(stage: Stage, queues: Queues) -> None:
    await queues.create("a", parent="b")
    await queues.create("b", parent="a")
    await queues.create("c", parent="nobody")
    for name, reason in {"a": "ParentCycle", "b": "ParentCycle", "c": "UnknownParent"}.items():
        condition = await _is(stage, QUEUES, queues.named(name), "Valid", "False", reason)
        assert "until" in condition["message"]
    await stage.create_job("one", queue=queues.named("a"), replicas=1)
    await stage.create_job("two", replicas=1)
    await stage.becomes("Starting", "one")
    await stage.becomes("Starting", "two")
    await queues.change("a", parent=None)
    await _is(stage, QUEUES, queues.named("a"), "Valid", "True", "Valid")
    await _is(stage, QUEUES, queues.named("b"), "Valid", "True", "Valid")


async def test_a_guarantee_above_the_cluster_is_told(stage: Stage, queues: Queues) -> None:
    await queues.create("greedy", guaranteed=1_000_000)
    name = queues.named("greedy")
    await _is(stage, QUEUES, name, "Valid", "False", "GuaranteeAboveCluster")
    await stage.create_job(queue=name)
    await stage.becomes("Starting")


async def test_a_limit_below_use_makes_nobody_leave(stage: Stage, queues: Queues) -> None:
    await queues.create("vision", limit=8)
    name = queues.named("vision")
    await stage.create_job(queue=name)
    await stage.has_pods(2)
    await stage.set_pods("Running")
    await stage.becomes("Running")
    await queues.change("vision", limit=4)
    condition = await _is(stage, QUEUES, name, "WithinLimit", "False", "LimitBelowUse")
    assert "its jobs hold 8 GPUs, the limit is 4" in condition["message"]
    await stage.create_job("next", queue=name, replicas=1, gpusPerReplica=1)
    await stage.becomes("Pending", "next", reason="QueueLimit")

    async def is_told() -> bool:
        status = (await stage.kube.get(QUEUES.path(name=name)))["status"]
        assert {"held": 8, "heldByModel": {"H100": 8}} == status["usage"]
        assert {"jobs": 1, "gpus": 1} == status["pending"]
        return True

    await eventually(is_told)
    await stage.set_pods("Succeeded")
    await stage.becomes("Starting", "next")
    await _is(stage, QUEUES, name, "WithinLimit", "True", "WithinLimit")


async def test_a_queue_that_is_deleted_keeps_what_runs(stage: Stage, queues: Queues) -> None:
    await queues.create("gone")
    name = queues.named("gone")
    await stage.create_job(queue=name)
    await stage.has_pods(2)
    await stage.set_pods("Running")
    why = (await stage.becomes("Running"))["message"]
    await queues.delete("gone")
    await stage.becomes(
        "Running",
        message=f"queue {name} is gone; the job goes on, and counts against no quota. Should it "
        "stop, it waits until there is a queue of that name",
    )
    await stage.create_job("late", queue=name)
    await stage.becomes("Pending", "late", reason="UnknownQueue")
    await queues.create("gone")
    await stage.becomes("Running", message=why)


async def test_labels_that_do_not_nest_are_told(stage: Stage) -> None:
    mine = f"r-{stage.namespace}"
    await stage.add_nodes(1, rack=mine, block="b1")
    await stage.add_nodes(1, rack=mine, block="b2")
    condition = await _is(stage, TOPOLOGIES, "default", "Valid", "False", "OverlappingLevels")
    assert f"rack {mine} lies in 2 blocks (b1, b2)" in condition["message"]
    await stage.create_job(replicas=2, gpusPerReplica=8, topology={"required": "block"})
    await stage.becomes("Pending")
    await stage.create_job("small")
    await stage.becomes("Starting", "small")
    await stage.remove_node(stage.nodes[-1])
    await _is(stage, TOPOLOGIES, "default", "Valid", "True", "Valid")


async def test_a_status_that_says_the_same_is_not_written_again(
    stage: Stage, queues: Queues
) -> None:
    await queues.create("calm")
    await _is(stage, QUEUES, queues.named("calm"), "Valid", "True", "Valid")
    path = QUEUES.path(name=queues.named("calm"))
    version = (await stage.kube.get(path))["metadata"]["resourceVersion"]
    await stage.create_job("train")
    await stage.becomes("Starting")
    assert version == (await stage.kube.get(path))["metadata"]["resourceVersion"]


async def _is(
    stage: Stage, resource: Resource, name: str, kind: str, status: str, reason: str
) -> dict[str, Any]:
    """The condition of an object, once it is so."""

    async def probe() -> dict[str, Any]:
        found = await stage.kube.get(resource.path(name=name))
        conditions = {c["type"]: c for c in (found.get("status") or {}).get("conditions") or ()}
        condition: dict[str, Any] = conditions.get(kind, {})
        assert (status, reason) == (condition.get("status"), condition.get("reason")), condition
        return condition

    return await eventually(probe)
