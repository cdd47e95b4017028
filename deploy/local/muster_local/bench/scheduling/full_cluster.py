"""The shapes of a full cluster of 100,000 GPUs with 10,000 jobs pending in 200 queues.

Ten departments of twenty queues, with guarantees and weights at both levels. All 12,500 nodes are
full. In every rack of 16 nodes, 9 hold jobs that may not be evicted. A fifth of the queues holds
less than its guarantee and asks for gangs of whole racks' halves within it: for these reclaim is
searched through the whole cluster and refused by topology. The others have what is theirs and
more, in proportion to their weights; their jobs of 1 to 128 GPUs, of five users a queue, are
judged by their shares. What is measured finds a cluster at rest, in which nobody is left to start
or to evict, rebuilt from its objects so that no answer is kept.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count, islice
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
_OF_SINGLES: Final = 0.2
"""Of the jobs on one node: those that are eight jobs of one GPU instead."""
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
    held = _held([queue for queue in queues if queue.parent is None], own, size * GPUS)
    gangs = [*_fill(held, size), *_wanted(own, 10_000 // part)]
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


def _held(departments: Sequence[Queue], own: Sequence[Queue], whole: int) -> dict[str, int]:
    """GPUs of each queue: all of them fill the cluster, and shares are as equal as they can be."""
    held = {}
    weights = [department.weight for department in departments]
    surplus = _dealt(whole - sum(each.guaranteed for each in departments), weights)
    for department, more in zip(departments, surplus, strict=True):
        mine = [(n, q) for n, q in enumerate(own) if q.parent == department.name]
        rich = [queue for number, queue in mine if not _is_short(number)]
        for number, queue in mine:
            lacks = _SHORT_OF if _is_short(number) else 0
            held[queue.name] = max(0, queue.guaranteed - lacks)
        left = department.guaranteed + more - sum(held[queue.name] for _, queue in mine)
        parts = _dealt(left, [queue.weight for queue in rich])
        for queue, part in zip(rich, parts, strict=True):
            held[queue.name] += part
    return held


def _dealt(gpus: int, weights: Sequence[float]) -> list[int]:
    """In proportion to the weights, what is left one by one to the first."""
    dealt = [int(gpus * weight / sum(weights)) for weight in weights]
    for place in range(gpus - sum(dealt)):
        dealt[place] += 1
    return dealt


def _fill(held: dict[str, int], size: int) -> Iterator[Gang]:
    """Running jobs of 1 to 8 whole nodes, and of single GPUs, that fill all nodes."""
    dice = random.Random(1)
    fixed = [place for place in range(size) if _is_fixed(place)]
    loose = [place for place in range(size) if not _is_fixed(place)]
    places = {True: iter(fixed), False: iter(loose)}
    names = (f"r{number}" for number in count())
    singles: list[str] = []
    """Queues of the GPUs that make no whole node of one queue."""
    for queue, mine in held.items():
        left = mine // GPUS
        singles += [queue] * (mine % GPUS)
        while left:
            is_fixed = dice.random() < _FIXED / RACK
            spots = list(islice(places[is_fixed], min(left, dice.choice((1, 1, 1, 2, 4, 8)))))
            spots = spots or list(islice(places[not is_fixed], 1))
            left -= len(spots)
            if len(spots) == 1 and dice.random() < _OF_SINGLES:
                yield from (_running(next(names), queue, spots, 1, dice) for _ in range(GPUS))
            else:
                yield _running(next(names), queue, spots, GPUS, dice)
    for place in (*places[True], *places[False]):
        for queue in singles[:GPUS]:
            yield _running(next(names), queue, [place], 1, dice)
        del singles[:GPUS]


def _is_fixed(place: int) -> bool:
    return place % RACK < _FIXED


def _running(name: str, queue: str, spots: Sequence[int], each: int, dice: random.Random) -> Gang:
    began = NOW - HOUR * dice.uniform(1, 50)
    gang = replace(
        pending(name, queue, len(spots), gpus(each), began),
        is_preemptible=not _is_fixed(spots[0]),
        max_run_time=HOUR * dice.randint(60, 200) if dice.random() < 0.7 else None,
        priority=max(_PRIORITIES),
    )
    return running(gang, [node(place) for place in spots], began)


def _wanted(own: Sequence[Queue], number: int) -> Iterator[Gang]:
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
