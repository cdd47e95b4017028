"""What the policy promises to whoever waits: the guarantee, and that nobody starves."""

from collections import Counter
from dataclasses import replace

from hypothesis import assume, given

from books import Books
from driving import Drive
from entitlements import Standing
from feasible import fits
from histories import History, Story
from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import Gang, Needs, Node, Queue, Run
from random_clusters import tried
from random_worlds import START, Dice, Mix, World, gang_of, nodes_of, rolls, seated
from witnesses import standing_of

SIMPLE = Mix(nodes=4, has_models=False, has_resources=False, has_topology=False)
HAPPENS = 8


def lent_out(dice: Dice) -> World:
    """Guarantees that the cluster can keep, and jobs of one GPU a replica that may be moved."""
    nodes = tuple(Node(f"n{number}", 4) for number in range(1, dice.pick(3, 2, 4)))
    left = sum(node.gpus for node in nodes)
    queues, org = [], 0
    for name, parent in (("a", "org"), ("b", "org"), ("c", None)):
        guaranteed = min(dice.pick(0, 1, 2, 3, 4), left)
        left -= guaranteed
        org += guaranteed if parent else 0
        weight = dice.pick(1.0, 2.0, 0.0, 9.0)
        queues.append(Queue(name, parent, weight=weight, guaranteed=guaranteed))
    queues.append(Queue("org", guaranteed=org))
    gangs: list[Gang] = []
    for number in range(dice.pick(4, 5, 6, 7, 8, 9)):
        gang = gang_of(dice, f"g{number}", SIMPLE)
        gang = replace(
            gang,
            queue=dice.pick("a", "b", "c"),
            needs=Needs(1),
            is_preemptible=True,
            is_suspended=False,
            held_back="",
        )
        if dice.one_in(2):
            gang = seated(gang, nodes, queues, gangs, (), dice.pick(*range(256)))
        gangs.append(gang)
    policy = Policy(reservation=dice.one_in(2), leaves_at_once=True)
    return World(nodes, tuple(queues), tuple(gangs), (), policy)


@tried(200)
@given(rolls(300).map(lent_out))
def test_whoever_asks_within_the_guarantee_gets_it(world):
    story = Story(History(world, (), ()), is_minimal=False)
    story.settle()
    drive = story.drive
    held = standing_of(drive).books().now.queue
    waiting = Counter(gang.queue for gang in drive.gangs.values() if gang.is_pending)
    for gang in drive.gangs.values():
        # Another of its own queue may be first in line, and may ask for more than the guarantee.
        if gang.is_pending and waiting[gang.queue] == 1:
            path = [gang.queue, *(["org"] if gang.queue in {"a", "b"} else [])]
            asks = gang.min_replicas * gang.needs.gpus
            assert any(held[q] + asks > drive.queues[q].guaranteed for q in path), gang.key


def stream(dice: Dice) -> tuple[World, list[Gang]]:
    """Jobs that end or may be moved, a gang that fits the empty cluster, and who comes later."""
    nodes = tuple(replace(node, is_ready=True) for node in nodes_of(dice, SIMPLE))
    queue = Queue("default", limit=dice.pick(None, None, 8, 6))
    gangs: list[Gang] = []
    for number in range(dice.pick(2, 3, 4, 5, 6)):
        plain = replace(gang_of(dice, f"r{number}", SIMPLE), queue="default", user="")
        plain = replace(plain, min_replicas=plain.replicas, priority=dice.pick(0, 1, 2))
        gang = seated(plain, nodes, (queue,), gangs, (), dice.pick(*range(256)))
        if gang.placement is not None:
            may_be_moved = gang.is_preemptible and gang.priority < 2
            declared = None if may_be_moved and dice.one_in(2) else 100.0 * dice.pick(1, 2, 3)
            run = Run(START - 50.0)
            gangs.append(replace(gang, run=run, max_run_time=declared and declared + 50.0))
    big = replace(gang_of(dice, "big", SIMPLE), queue="default", user="", priority=2)
    big = replace(big, is_suspended=False, held_back="", min_replicas=big.replicas)
    later = []
    for number in range(HAPPENS):
        small = replace(gang_of(dice, f"s{number}", SIMPLE), queue="default", user="")
        limit = dice.pick(None, 30.0, 70.0, 500.0)
        if not limit and not small.is_preemptible:
            limit = 500.0
        later.append(replace(small, priority=dice.pick(0, 1), max_run_time=limit))
    policy = Policy(reservation=True, leaves_at_once=True)
    return World(nodes, (queue,), (*gangs, big), (), policy), later


@tried(100)
@given(rolls(400).map(stream))
def test_a_gang_whose_way_is_blocked_only_by_jobs_that_end_starts(case):
    world, later = case
    empty = Standing({n.name: n for n in world.nodes}, {q.name: q for q in world.queues}, {}, 0.0)
    assume(fits(world.gangs[-1], Books(empty.nodes, empty.queues, ())))
    blockers = [gang for gang in world.gangs if gang.placement is not None]
    story = Story(History(world, (), ()), is_minimal=False)
    drive = story.drive
    story.settle()
    for step in range(1, 12):
        end_who_is_due(drive, START + 50.0 * step)
        if step <= len(later):
            drive.submit(later[step - 1])
        story.settle()

    assert "big" in drive.starts
    # Everybody who ran had ended by then, or could have been moved.
    latest = max((due(drive, gang) for gang in blockers), default=START)
    assert drive.starts["big"][0] <= max(latest, START)


def due(drive: Drive, gang: Gang) -> float:
    if gang.max_run_time is None or gang.run is None:
        return START
    return gang.run.started + gang.max_run_time


def end_who_is_due(drive: Drive, now: float) -> None:
    """Jobs end exactly when they declared, those of one instant together."""
    while True:
        running = [gang for gang in drive.gangs.values() if gang.placement is not None]
        ends = sorted((due(drive, g), g.key) for g in running if g.max_run_time is not None)
        if not ends or ends[0][0] > now:
            break
        drive.pass_until(ends[0][0], drive.settle)
        for end, key in ends:
            if end == ends[0][0]:
                drive.end(key)
        drive.settle()
    drive.pass_until(now, drive.settle)
