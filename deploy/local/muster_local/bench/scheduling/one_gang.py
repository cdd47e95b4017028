"""The shapes that ask about one gang at a time, on a few thousand GPUs or in a row on many.

*part* is the fraction of the full size: 1, or 10 for a tenth. Each function checks that the core
decided what the shape is about, so that no figure is of something else.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from muster.scheduling.cycle import plan_cycle
from muster.scheduling.plan import Plan, Preempt, Wait, WaitReason
from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import Gang, Queue, TopologyRequest
from muster_local.bench.scheduling.scenes import (
    GPUS,
    HOUR,
    NOW,
    Scene,
    gpus,
    node,
    nodes,
    pending,
    running,
    singles,
)
from muster_local.bench.scheduling.stopwatch import Measured, Stopwatch, measured

POLICY: Final = Policy(notice=120.0, restart_time=60.0)
_REPEATS: Final = 20


class Wrong(AssertionError):
    """The core decided something else than what the shape is about."""


def gangs_on_5000_nodes(part: int) -> Measured:
    """3,000 gangs of 3 pods of 4 GPUs that prefer a rack, on 5,000 nodes: 90 % full at the end."""
    scene = Scene.of(nodes(5_000 // part), [Queue("q")], [])
    watch = Stopwatch()
    watch.settle()

    def decide(gang: Gang) -> None:
        scene.submit(gang)
        scene.carry_out(plan_cycle(scene.cluster.snapshot(), POLICY, NOW), NOW)

    for number in range(3_000 // part):
        gang = pending(f"g{number}", "q", 3, gpus(4), float(number))
        watch.time(lambda: decide(replace(gang, topology=TopologyRequest(preferred="rack"))))  # noqa: B023
        if scene.gangs[gang.key].is_pending:
            raise Wrong(f"{gang.key} did not start")
    return measured(watch)


def preferred_512(part: int) -> Measured:
    """One gang of 512 pods of one GPU that prefers a block, on 512 nodes with 0 to 7 free GPUs."""
    size = 512 // part

    def build(seed: int) -> tuple[Scene, Gang]:
        dice = random.Random(seed)
        busy = [
            running(pending(f"b{place}", "q", 1, gpus(held), 0.0), [node(place)], NOW - HOUR)
            for place in range(size)
            if (held := dice.randint(0, GPUS - 1))
        ]
        gang = pending("big", "q", size, gpus(1), NOW)
        wish = TopologyRequest(preferred="block")
        return Scene.of(nodes(size), [Queue("q")], busy), replace(gang, topology=wish)

    def check(plan: Plan) -> None:
        if [size] != [len(admit.nodes) for admit in plan.admitted]:
            raise Wrong(f"the gang did not start: {plan.decisions}")

    return _repeated(build, check)


def verdict_of_4000_jobs(part: int) -> Measured:
    """Ten pods of 8 GPUs within their queue's guarantee, on 500 nodes full of single-GPU jobs.

    The queues of the running jobs are above their guarantee, so that reclaim is tried; but only
    nine nodes can be emptied: on every other one there is a job that may not be evicted.
    """
    size, others = 500 // part, 8

    def build(seed: int) -> tuple[Scene, Gang]:
        dice = random.Random(seed)
        can_be_emptied = set(dice.sample(range(size), 9))
        jobs = [
            replace(
                job,
                queue=f"other{number % others}",
                is_preemptible=number % GPUS != place % GPUS or place in can_be_emptied,
            )
            for number, (place, job) in enumerate(_by_place(size))
        ]
        whole = size * GPUS
        queues = [Queue("mine", guaranteed=whole // 5)]
        queues += [Queue(f"other{n}", guaranteed=whole // 20) for n in range(others)]
        return Scene.of(nodes(size), queues, jobs), pending("mine", "mine", 10, gpus(8), NOW)

    def check(plan: Plan) -> None:
        reasons = [each.reason for each in plan.decisions if isinstance(each, Wait)]
        if reasons != [WaitReason.INSUFFICIENT_CAPACITY] or len(plan.decisions) != 1:
            raise Wrong(f"the gang should wait for capacity: {plan.decisions}")

    return _repeated(build, check)


def reclaim_of_2000_gpus(part: int) -> Measured:
    """250 pods of 8 GPUs, within the guarantee, take half of 500 nodes from 4,000 jobs."""
    size = 500 // part

    def build(seed: int) -> tuple[Scene, Gang]:
        half = size * GPUS // 2
        places = list(range(size))
        random.Random(seed).shuffle(places)
        queues = [Queue("mine", guaranteed=half), Queue("other", guaranteed=half)]
        scene = Scene.of(nodes(size), queues, singles("other", places))
        return scene, pending("mine", "mine", size // 2, gpus(8), NOW)

    def check(plan: Plan) -> None:
        victims = [v for deed in plan.deeds if isinstance(deed, Preempt) for v in deed.victims]
        if len(victims) != size * GPUS // 2:
            raise Wrong(f"{len(victims)} jobs were to leave instead of {size * GPUS // 2}")

    return _repeated(build, check)


def _by_place(size: int) -> Iterator[tuple[int, Gang]]:
    return ((number // GPUS, job) for number, job in enumerate(singles("job", range(size))))


def _repeated(
    build: Callable[[int], tuple[Scene, Gang]], check: Callable[[Plan], None]
) -> Measured:
    """One pass for the gang on each of several clusters, none of which was asked before."""
    watch = Stopwatch()
    for seed in range(_REPEATS):
        scene, gang = build(seed)
        watch.settle()

        def decide(scene: Scene = scene, gang: Gang = gang) -> Plan:
            scene.submit(gang)
            return plan_cycle(scene.cluster.snapshot(), POLICY, NOW)

        check(watch.time(decide))
    return measured(watch)
