"""The shapes of a full cluster of 100,000 GPUs with 10,000 jobs pending in 200 queues.

Ten departments of twenty queues, with guarantees and weights at both levels. All 12,500 nodes are
full. In every rack of 16 nodes, 9 hold jobs that may not be evicted. A fifth of the queues holds
less than its guarantee and asks for gangs of whole racks' halves within it: for these reclaim is
searched through the whole cluster and refused by topology. The others have what is theirs and
more, in proportion to their weights; their jobs of 1 to 128 GPUs, of five users a queue, are
judged by their shares. The jobs that a pass would start or evict for are dealt with before: what
is measured finds a cluster at rest, rebuilt from its objects so that no answer is kept.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from muster.scheduling.cycle import plan_cycle
from muster.scheduling.plan import Plan, Wait
from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import Gang, Queue, TopologyRequest
from muster_local.bench.scheduling.one_gang import Wrong
from muster_local.bench.scheduling.scenes import (
    GPUS,
    HOUR,
    NOW,
    RACK,
    Scene,
    gpus,
    node,
    nodes,
    pending,
    running,
)
from muster_local.bench.scheduling.stopwatch import Measured, Stopwatch, measured

POLICY: Final = Policy(leaves_at_once=True, restart_time=60.0)
_DEPARTMENTS: Final = 10
_QUEUES: Final = 20
_FIXED: Final = 9
"""Nodes of each rack whose jobs may not be evicted."""
_SHORT_OF: Final = 128
"""GPUs that a queue below its guarantee lacks."""
_PRIORITIES: Final = (0, 0, 0, 10)
"""Of pending jobs; those that run have the highest."""
_PASSES: Final = 50
_ENDS: Final = 30


def full(part: int) -> Measured:
    """One pass that gives each of the 10,000 jobs its reason."""
    scene = at_rest(part)
    watch = Stopwatch()
    watch.settle()
    plan = watch.time(lambda: _pass(scene))
    waiting = sum(isinstance(each, Wait) for each in plan.decisions)
    pendings = sum(gang.is_pending for gang in scene.gangs.values())
    if plan.deeds or waiting != pendings:
        raise Wrong(f"{waiting} of {pendings} jobs have a reason, {len(plan.deeds)} deeds")
    return measured(watch, reasons=waiting)


def next_pass(part: int) -> Measured:
    """A job ends, and the pass after it is carried out; thirty of them, one after the other."""
    scene = at_rest(part)
    _pass(scene)
    ends = random.Random(2).sample(sorted(k for k, g in scene.gangs.items() if g.placement), _ENDS)
    watch = Stopwatch()
    settled = []

    def end(key: str) -> int:
        scene.end(key)
        return scene.carry_out(_pass(scene), NOW)

    for key in ends:
        if scene.gangs[key].is_pending:
            continue
        watch.settle()
        more = watch.time(lambda: end(key))  # noqa: B023 -- called at once
        rest = Stopwatch()
        while more:
            more = rest.time(lambda: scene.carry_out(_pass(scene), NOW))
        settled.append(watch.samples[-1] + sum(rest.samples))
    return measured(watch, until_settled_mean_ms=round(sum(settled) / len(settled) * 1e3, 4))


def at_rest(part: int) -> Scene:
    """The full cluster when the scheduler has nothing to do in it."""
    size = 12_500 // part // RACK * RACK
    departments = max(1, _DEPARTMENTS // part)
    queues = list(_tree(departments, size * GPUS))
    own = [queue for queue in queues if queue.parent is not None]
    held = _held(own, {q.name: q for q in queues}, size * GPUS)
    gangs = [*_fill(held, size), *_wanted(own, held, 10_000 // part)]
    scene = Scene.of(nodes(size), queues, gangs)
    for _ in range(_PASSES):
        if not scene.carry_out(_pass(scene), NOW):
            return scene.anew()
    raise Wrong(f"the cluster is not at rest after {_PASSES} passes")


def _pass(scene: Scene) -> Plan:
    return plan_cycle(scene.cluster.snapshot(), POLICY, NOW)


def _tree(departments: int, whole: int) -> Iterator[Queue]:
    """Four fifths of the GPUs are guaranteed; weights from 1 to 3 and from 1 to 4."""
    guaranteed = whole * 4 // 5 // departments
    for number in range(departments):
        department = f"d{number}"
        yield Queue(department, guaranteed=guaranteed, weight=1 + number % 3)
        weights = [1 + each % 4 for each in range(_QUEUES)]
        for each, weight in enumerate(weights):
            mine = guaranteed * weight // sum(weights)
            yield Queue(f"{department}-q{each}", department, guaranteed=mine, weight=weight)


def _is_short(number: int) -> bool:
    return number % 5 == 4


def _held(own: Sequence[Queue], queues: dict[str, Queue], whole: int) -> dict[str, int]:
    """GPUs of each queue, whole nodes; all of them together fill the cluster."""
    held = {
        queue.name: max(0, queue.guaranteed - _SHORT_OF) // GPUS * GPUS
        for number, queue in enumerate(own)
        if _is_short(number)
    }
    rich = [queue for number, queue in enumerate(own) if not _is_short(number)]
    left = whole - sum(held.values()) - sum(queue.guaranteed // GPUS * GPUS for queue in rich)
    above = {q.name: q.weight * queues[q.parent or ""].weight for q in rich}
    for queue in rich:
        more = int(left * above[queue.name] / sum(above.values()))
        held[queue.name] = (queue.guaranteed // GPUS + more // GPUS) * GPUS
    rest = whole - sum(held.values())
    for queue in rich[: rest // GPUS]:
        held[queue.name] += GPUS
    return held


def _fill(held: dict[str, int], size: int) -> Iterator[Gang]:
    """Running jobs of 1 to 8 whole nodes, and of single GPUs, that fill all nodes."""
    dice = random.Random(1)
    fixed = [place for place in range(size) if place % RACK < _FIXED]
    loose = [place for place in range(size) if place % RACK >= _FIXED]
    places, number = {True: iter(fixed), False: iter(loose)}, 0
    for queue, mine in held.items():
        left = mine // GPUS
        while left:
            is_fixed = dice.random() < _FIXED / RACK
            spots = list(islice(places[is_fixed], min(left, dice.choice((1, 1, 1, 2, 4, 8)))))
            if not spots:
                is_fixed = not is_fixed
                spots = list(islice(places[is_fixed], 1))
            left -= len(spots)
            began = NOW - HOUR * dice.uniform(1, 50)
            each = gpus(1) if len(spots) == 1 and dice.random() < 0.2 else gpus(GPUS)
            for names in _placements(spots, each.gpus):
                gang = pending(f"r{number}", queue, len(names), each, began)
                limit = HOUR * dice.randint(60, 200) if dice.random() < 0.7 else None
                gang = replace(
                    gang,
                    is_preemptible=not is_fixed,
                    max_run_time=limit,
                    priority=max(_PRIORITIES),
                )
                yield running(gang, names, began)
                number += 1


def _placements(spots: Sequence[int], gpus: int) -> list[list[str]]:
    names = [node(place) for place in spots]
    return [names] if gpus == GPUS else [names] * GPUS


def _wanted(own: Sequence[Queue], held: dict[str, int], number: int) -> Iterator[Gang]:
    """Pending jobs, equally many a queue."""
    dice = random.Random(3)
    for job in range(number):
        place = job % len(own)
        queue, submitted = own[place], NOW - 10.0 * (number - job)
        if _is_short(place):
            size, needs = RACK // 2 + dice.randint(0, 3), gpus(GPUS)
            topology = TopologyRequest(required="rack")
        else:
            size, each = dice.choice(((1, 1), (1, 2), (1, 4), (1, 8), (2, 8), (4, 8), (16, 8)))
            needs = gpus(each)
            topology = dice.choice((TopologyRequest(), TopologyRequest(preferred="block")))
        gang = pending(f"p{job}", queue.name, size, needs, submitted)
        yield replace(
            gang,
            topology=topology,
            user=f"{queue.name}-{dice.randrange(5)}",
            priority=dice.choice(_PRIORITIES),
            max_run_time=HOUR * dice.randint(1, 48) if dice.random() < 0.7 else None,
        )
