"""When a cycle runs, and what becomes of its plan."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from eventually import eventually, stays
from muster.scheduling.cycle import plan_cycle
from muster.scheduling.plan import Admit, Plan
from muster_operator.cache import Cache
from muster_operator.cycles import Cycles
from muster_operator.metrics import Metrics
from muster_operator.settings import Settings

Raw = dict[str, Any]


class Desk:
    """Cycles over a cache with one node of eight GPUs."""

    def __init__(self, plan: Callable[..., Plan] = plan_cycle) -> None:
        self.marked: list[tuple[str, bool]] = []
        self.cache = Cache(
            has_scheduler=False,
            on_job=lambda uid, *, is_urgent=True: None,
            on_capacity=lambda: None,
            clock=lambda: 0.0,
        )
        settings = Settings(quiet=0.01, patience=0.05)
        self.cycles = Cycles(settings, self.cache, self, Metrics(), lambda: 0.0, plan)
        self.cache.around_changed("queues", _object("default", 1, spec={}))
        amounts = {"cpu": "64", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": "8"}
        ready = [{"type": "Ready", "status": "True"}]
        node = _object("n0", 2, status={"allocatable": amounts, "conditions": ready})
        self.cache.around_changed("nodes", node)

    def mark(self, key: str, *, is_urgent: bool = True) -> None:
        self.marked.append((key, is_urgent))

    def job(self, name: str, version: int, replicas: int = 8) -> None:
        template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec = {"replicas": replicas, "gpusPerReplica": 1, "template": template}
        raw = _object(name, version, spec=spec)
        raw["metadata"] |= {
            "namespace": "team",
            "creationTimestamp": f"2026-01-0{version - 2}T00:00:00Z",
        }
        self.cache.job_changed(raw)


def _object(name: str, version: int, **rest: Any) -> Raw:
    return {"metadata": {"name": name, "uid": name, "resourceVersion": str(version)}, **rest}


def test_what_is_admitted_is_urgent_and_counts_at_once() -> None:
    desk = Desk()
    desk.job("first", 3)
    desk.job("second", 4)
    desk.cycles.cycle()

    assert [("first", True), ("second", False)] == desk.marked
    decision = desk.cache.jobs["first"].decision
    assert decision is not None
    assert isinstance(decision.start, Admit)
    assert desk.cache.jobs["second"].words is not None

    desk.cycles.cycle()

    assert 2 == len(desk.marked)


async def test_many_triggers_make_one_cycle() -> None:
    runs: list[float] = []
    desk = Desk(lambda *_: runs.append(0.0) or Plan())
    task = asyncio.create_task(desk.cycles.run())
    for _ in range(20):
        desk.cycles.trigger()
    await eventually(lambda: len(runs) == 1)
    await stays(lambda: len(runs) == 1, during=0.1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_endless_triggers_do_not_hold_it_up() -> None:
    runs: list[float] = []
    desk = Desk(lambda *_: runs.append(0.0) or Plan())
    task = asyncio.create_task(desk.cycles.run())

    async def trigger() -> bool:
        desk.cycles.trigger()
        return len(runs) >= 2

    await eventually(trigger, every=0.002)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_mistake_in_a_plan_is_told_and_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    fails = [True, False]

    def plan(*_: object) -> Plan:
        if fails.pop(0):
            raise RuntimeError("a mistake")
        return Plan()

    desk = Desk(plan)
    task = asyncio.create_task(desk.cycles.run())
    with caplog.at_level(logging.ERROR):
        desk.cycles.trigger()
        await eventually(lambda: not fails)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert "cycle-failed" in caplog.text
