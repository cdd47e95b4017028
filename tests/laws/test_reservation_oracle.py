"""When a gang that waits can start, and who may start behind it, against trying everything."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import inf

from hypothesis import assume, given

from books import Books
from brute_force import could_start, ended_by, ends
from driving import Drive
from entitlements import Standing
from feasible import fits
from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import Gang, Needs, Queue, Run, TopologyRequest
from random_clusters import tried
from random_worlds import START, Dice, Mix, World, nodes_of, rolls, seated, topology_of
from witnesses import standing_of

PLAIN = Mix(nodes=4, has_models=False, has_resources=False)


def puzzle(dice: Dice) -> World:
    """Jobs that run and end at some time, *first*, which cannot start yet, and *behind* it."""
    nodes = tuple(replace(node, is_ready=True) for node in nodes_of(dice, PLAIN))
    queue = Queue("default", limit=dice.pick(None, None, None, 6, 9))
    gangs: list[Gang] = []
    for number in range(dice.pick(2, 3, 4, 5)):
        gang = Gang(
            key=f"r{number}",
            replicas=(replicas := dice.pick(1, 2, 3, 4)),
            min_replicas=replicas,
            needs=Needs(dice.pick(1, 2, 3)),
            submitted=0.0,
            priority=dice.pick(2, 0, 3),
            is_preemptible=dice.one_in(3),
        )
        gang = seated(gang, nodes, (queue,), gangs, (), dice.pick(*range(256)))
        if gang.placement is not None:
            left = dice.pick(None, 10.0, 20.0, 30.0)
            eta = dice.pick(None, None, START + 15.0)
            gangs.append(
                replace(gang, run=Run(START - 100.0, eta=eta), max_run_time=left and 100.0 + left)
            )
    first = Gang(
        key="first",
        replicas=(replicas := dice.pick(1, 2, 3, 4)),
        min_replicas=replicas,
        needs=Needs(dice.pick(1, 2, 3)),
        submitted=START,
        priority=2,
        topology=replace(topology_of(dice), part_size=None)
        if dice.one_in(3)
        else TopologyRequest(),
    )
    behind = Gang(
        key="behind",
        replicas=(replicas := dice.pick(1, 2, 3)),
        min_replicas=replicas,
        needs=Needs(dice.pick(1, 2)),
        submitted=START,
        is_preemptible=False,
        max_run_time=dice.pick(None, 5.0, 15.0, 20.0, 25.0, 1000.0),
    )
    policy = Policy(reservation=True, leaves_at_once=True)
    return World(nodes, (queue,), (*gangs, first, behind), (), policy)


puzzles = rolls(200).map(puzzle)


@tried(400)
@given(puzzles)
def test_the_reserved_time_is_the_earliest_and_nobody_behind_makes_it_later(world):
    drive = Drive(world)
    standing = standing_of(drive)
    assume(fits(drive.gangs["first"], alone(standing).books()))
    assume(could_start(standing, drive.gangs["first"]) is None)
    reserved = reserved_time(standing)
    plan = drive.plan()
    waits = {wait.gang: wait for wait in plan.waiting}

    assert "first" in waits
    if waits["first"].predicted_start is not None:
        assert reserved == waits["first"].predicted_start
    may_start = [where for where in places(standing) if is_backfill(standing, where, reserved)]
    starts = {admit.gang: admit.nodes for admit in plan.admitted}
    if "behind" in starts:
        assert is_backfill(standing, starts["behind"], reserved)
    else:
        assert [] == may_start


def alone(standing: Standing) -> Standing:
    return replace(standing, gangs={"first": standing.gangs["first"]})


def reserved_time(standing: Standing) -> float:
    """The earliest end with which it has room, of what is free or may be evicted by then."""
    times = sorted({ends(gang, standing.now) for gang in standing.gangs.values()} - {inf})
    for time in times:
        if could_start(ended_by(standing, time), standing.gangs["first"]) is not None:
            return time
    return inf


def places(standing: Standing) -> Iterator[tuple[str, ...]]:
    """All ways to place the one behind on what is idle."""
    gang = standing.gangs["behind"]
    names = sorted(standing.nodes)
    for counts in product(range(gang.replicas + 1), repeat=len(names)):
        if sum(counts) != gang.replicas:
            continue
        where = tuple(name for name, n in zip(names, counts, strict=True) for _ in range(n))
        placed = replace(gang, placement=where)
        others = [other for other in standing.gangs.values() if other.key != gang.key]
        books = Books(standing.nodes, standing.queues, [*others, placed])
        if not any(books.over(placed, where)):
            yield where


def is_backfill(standing: Standing, where: tuple[str, ...], reserved: float) -> bool:
    """Whether, running there to its end, it leaves the start of the first one as it is."""
    behind, first = standing.gangs["behind"], standing.gangs["first"]
    end = inf if behind.max_run_time is None else standing.now + behind.max_run_time
    if reserved == inf:
        could_use = {
            name for name, node in standing.nodes.items() if node.gpus >= first.needs.gpus
        }
        return end < inf or not could_use & set(where)
    if end <= reserved:
        return True
    run = Run(standing.now)
    placed = replace(behind, placement=where, run=run, is_preemptible=False)
    then = ended_by(replace(standing, gangs={**standing.gangs, "behind": placed}), reserved)
    return could_start(then, first) is not None
