"""Lost replicas, drained nodes, elastic jobs, and what is under way: a case for each rule."""

from dataclasses import replace

import pytest

from muster.scheduling.cluster import Cluster
from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import Leaving, Queue
from small_clusters import AT_ONCE, NOTICE, NOW, RACKS, decided, gang, node, nodes, running

DRAINED = {"is_cordoned": True, "is_draining": True}
JUST_NOW = {"lost_at": NOW - 1}


def asked(gang_, by, ranks=None):
    """The gang, asked to leave for another."""
    return replace(gang_, leaving=(*gang_.leaving, Leaving(by, ranks, NOW + 9)))


CASES = {
    "a lost rank goes where there is room, and keeps its number": (
        Cluster.of(nodes=nodes("n1 n2", 1), gangs=[running("g", "- n1", **JUST_NOW)]),
        ["g puts 0 on n2"],
    ),
    "before any pending job that could use the same": (
        Cluster.of(
            nodes=nodes("n1 n2", 1),
            gangs=[running("g", "n1 -", **JUST_NOW), gang("f", priority=9)],
        ),
        ["g puts 1 on n2", "f waits"],
    ),
    "it is requeued whole when the time is over": (
        Cluster.of(nodes=nodes("n1", 1), gangs=[running("g", "n1 -", lost_at=NOW - 60)]),
        ["g is requeued", "g waits"],
    ),
    "and not before": (
        Cluster.of(nodes=nodes("n1", 1), gangs=[running("g", "n1 -", lost_at=NOW - 59)]),
        [],
    ),
    "an elastic one above its minimum goes on with what is left": (
        Cluster.of(
            nodes=nodes("n1", 2),
            gangs=[running("g", "n1 - n1", min_replicas=2, replicas=3, **JUST_NOW)],
        ),
        ["g goes on without 1"],
    ),
    "and grows again where there is room": (
        Cluster.of(
            nodes=nodes("n1 n2", 2),
            gangs=[running("g", "n1 - n1", min_replicas=2, replicas=3, **JUST_NOW)],
        ),
        ["g goes on without 1", "g grows on n2"],
    ),
    "parts are replaced one by one": (
        Cluster.of(
            levels=RACKS,
            nodes=[node("a1", 1, rack="r1"), *nodes("b1 b2", 1, rack="r2")],
            gangs=[
                running("g", "a1 - - b1", part_size=2, part_required="rack", **JUST_NOW),
            ],
        ),
        ["g puts 2 on b2"],
    ),
    "a replacement stays in the gang's required domain": (
        Cluster.of(
            levels=RACKS,
            nodes=[node("a1", 1, rack="r1"), node("b1", 1, rack="r2")],
            gangs=[running("g", "a1 -", required="rack", **JUST_NOW)],
        ),
        [],
    ),
    "a replacement may evict": (
        Cluster.of(
            nodes=nodes("n1 n2", 1),
            gangs=[running("g", "n1 -", priority=1, **JUST_NOW), running("low", "n2")],
        ),
        ["g takes low by priority", "g puts 1 on n2", "low waits"],
    ),
    "but only if the gang is whole with it": (
        Cluster.of(
            nodes=nodes("n1 n2", 1),
            gangs=[running("g", "n1 - -", priority=1, **JUST_NOW), running("low", "n2")],
        ),
        [],
    ),
    "a replica that has finished is not lost": (
        Cluster.of(nodes=nodes("n1 n2", 1), gangs=[running("g", "- n1", finished=(0,))]),
        [],
    ),
    "a drained node's replicas are asked to leave": (
        Cluster.of(
            nodes=[node("n1", 1, **DRAINED), node("n2", 1)],
            gangs=[running("g", "n2 n1")],
        ),
        ["g leaves with 1"],
    ),
    "a replacement keeps the limits of its queue": (
        Cluster.of(
            nodes=nodes("n1 n2", 1),
            queues=[Queue("default", limit=1)],
            gangs=[running("g", "n1 -", **JUST_NOW)],
        ),
        [],
    ),
    "an elastic job grows on what is idle": (
        Cluster.of(nodes=nodes("n1", 3), gangs=[running("e", "n1", replicas=2, min_replicas=1)]),
        ["e grows on n1"],
    ),
    "growth comes after all pending minimums": (
        Cluster.of(
            nodes=nodes("n1", 2),
            gangs=[running("e", "n1", replicas=2, min_replicas=1, priority=9), gang("g")],
        ),
        ["g starts on n1"],
    ),
    "one replica at a time in the order of the queues": (
        Cluster.of(
            nodes=nodes("n1", 4),
            queues=[Queue("a"), Queue("b")],
            gangs=[
                running("x", "n1", queue="a", replicas=4, min_replicas=1),
                running("y", "n1", queue="b", replicas=4, min_replicas=1),
            ],
        ),
        ["x grows on n1", "y grows on n1"],
    ),
    "growth within the guarantee reclaims surplus, never below the other's guarantee": (
        Cluster.of(
            nodes=nodes("n1", 4),
            queues=[Queue("a", guaranteed=2), Queue("b", guaranteed=2)],
            gangs=[
                running("x", "n1", queue="a", replicas=4, min_replicas=1),
                running("y", "n1 n1 n1", queue="b", min_replicas=1),
            ],
        ),
        ["x takes y 2 by guarantee", "x grows on n1"],
    ),
    "growth never takes a gang's minimum": (
        Cluster.of(
            nodes=nodes("n1", 4),
            queues=[Queue("a", guaranteed=2), Queue("b")],
            gangs=[
                running("x", "n1", queue="a", replicas=4, min_replicas=1),
                running("y", "n1 n1 n1", queue="b"),
            ],
        ),
        [],
    ),
    "growth takes no share": (
        Cluster.of(
            nodes=nodes("n1", 4),
            queues=[Queue("a"), Queue("b")],
            gangs=[
                running("x", "n1", queue="a", replicas=4, min_replicas=1),
                running("y", "n1 n1 n1", queue="b", min_replicas=1),
            ],
        ),
        [],
    ),
    "a paused queue starts nothing, and its jobs do not grow": (
        Cluster.of(
            nodes=nodes("n1", 4),
            queues=[Queue("a", is_paused=True)],
            gangs=[
                running("x", "n1", queue="a", replicas=4, min_replicas=1),
                gang("g", queue="a"),
            ],
        ),
        ["g waits"],
    ),
    "nobody leaves for a limit that was lowered": (
        Cluster.of(
            nodes=nodes("n1", 4),
            queues=[Queue("a", limit=1)],
            gangs=[running("x", "n1 n1 n1", queue="a", replicas=4, min_replicas=1)],
        ),
        [],
    ),
    "a user's limit counts what that user holds in the queue": (
        Cluster.of(
            nodes=nodes("n1", 8),
            queues=[Queue("a", per_user_limit=4)],
            gangs=[
                running("x", "n1 n1 n1", queue="a", user="ada"),
                gang("g", 2, queue="a", user="ada"),
                gang("h", 2, queue="a", user="bob"),
            ],
        ),
        ["h starts on n1 n1", "g waits"],
    ),
}


@pytest.mark.parametrize("claim", CASES)
def test_what_becomes_of_those_that_run(claim):
    cluster, want = CASES[claim]

    assert want == decided(cluster, AT_ONCE)


UNDER_WAY = {
    "victims are asked first, and the gang waits for them": (
        [running("v", "n1 " * 4), gang("h", 4, priority=1)],
        ["h takes v by priority", "h waits"],
    ),
    "nothing more is decided while they are leaving": (
        [asked(running("v", "n1 " * 4), "h"), gang("h", 4, priority=1, claim=("n1",) * 4)],
        ["h waits"],
    ),
    "it starts on what they freed": (
        [gang("v", 4, is_returning=True), gang("h", 4, priority=1, claim=("n1",) * 4)],
        ["h claims no more", "h starts on n1 n1 n1 n1", "v waits"],
    ),
    "a claim that is of no use any more is given up, and others are chosen": (
        [
            running("w", "n1 n1"),
            gang("h", 4, priority=1, claim=("n1",) * 4),
            gang("late", 2, submitted=9.0),
        ],
        ["h claims no more", "h takes w by priority", "h waits", "late waits"],
    ),
    "when the claimant is suspended whoever is still there stays": (
        [
            asked(running("v", "n1 " * 4), "h"),
            gang("h", 4, priority=1, claim=("n1",) * 4, is_suspended=True),
        ],
        ["h claims no more", "h waits"],
    ),
    "when the claimant is gone too": (
        [asked(running("v", "n1 " * 4), "gone")],
        ["gone claims no more"],
    ),
    "another may start while they leave only if the limits hold now as well": (
        [
            asked(running("v", "n1 n1 n1", queue="q"), "h"),
            gang("h", 1, queue="q", priority=1, claim=("n1",)),
            gang("s", 1, queue="q"),
        ],
        ["h waits", "s waits"],
    ),
}


@pytest.mark.parametrize("claim", UNDER_WAY)
def test_what_is_under_way(claim):
    gangs, want = UNDER_WAY[claim]
    cluster = Cluster.of(nodes=nodes("n1", 4), queues=[Queue("q", limit=3)], gangs=gangs)

    assert want == decided(cluster, NOTICE)


def test_who_is_asked_to_leave_a_drained_node_is_asked_once():
    drained = running("g", "n1")
    leaves = replace(drained, leaving=(Leaving("", (0,), NOW + 9),))
    cluster = Cluster.of(nodes=[node("n1", 1, **DRAINED)], gangs=[leaves])

    assert [] == decided(cluster, Policy(notice=30.0))
