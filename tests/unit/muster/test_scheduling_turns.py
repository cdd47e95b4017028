"""Whose turn it is in a cycle, which limits bind, and in which order it decides."""

from dataclasses import replace

import pytest

from muster.scheduling.cluster import Cluster
from muster.scheduling.cycle import plan_cycle
from muster.scheduling.plan import Wait, WaitReason
from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import Queue
from small_clusters import (
    BY_MODEL,
    MODELS,
    gang,
    holding,
    node,
    nodes,
    outcome,
    planned,
)

ORG = [Queue("org", limit=4), Queue("q", parent="org", limit=4)]

CASES = {
    # Turns
    "higher priority goes first": (
        Cluster.of(
            nodes=nodes("n1"), gangs=[gang("a", 8), gang("b", 8, priority=1, submitted=9.0)]
        ),
        {"b": "n1 " * 7 + "n1", "a": "InsufficientCapacity"},
    ),
    "earlier submission goes first among equals": (
        Cluster.of(
            nodes=nodes("n1", 1), gangs=[gang("a", submitted=2.0), gang("b", submitted=1.0)]
        ),
        {"b": "n1", "a": "InsufficientCapacity"},
    ),
    "the name decides last, its numbers as numbers": (
        Cluster.of(nodes=nodes("n1", 1), gangs=[gang("g10"), gang("g9")]),
        {"g9": "n1", "g10": "InsufficientCapacity"},
    ),
    "between queues the oldest head goes first, whatever its priority": (
        Cluster.of(
            nodes=nodes("n1", 1),
            queues=[Queue("a"), Queue("b")],
            gangs=[gang("x", queue="a", submitted=2.0, priority=9), gang("y", queue="b")],
        ),
        {"y": "n1", "x": "QueueShare"},
    ),
    "the head of a queue hides what is behind it": (
        Cluster.of(
            nodes=nodes("n1", 1),
            queues=[Queue("a"), Queue("b")],
            gangs=[
                gang("x", queue="a", submitted=3.0, priority=9),
                gang("old", queue="a", submitted=1.0),
                gang("y", queue="b", submitted=2.0),
            ],
        ),
        {"y": "n1", "x": "QueueShare", "old": "QueueShare"},
    ),
    # Queues
    "a replica counts once against the limit, a refused job not at all": (
        Cluster.of(
            nodes=[node("n1", gpu_model="H100")],
            queues=ORG,
            gangs=[
                gang("a", 3, queue="q"),
                gang("d", queue="q", gpu_models=("A100",)),
                gang("e", queue="q", submitted=1.0),
                gang("f", queue="q", submitted=2.0),
            ],
        ),
        {"a": "n1 n1 n1", "d": "NoMatchingNodes", "e": "n1", "f": "QueueLimit"},
    ),
    "a limit above the queue binds it": (
        Cluster.of(
            nodes=nodes("n1"),
            queues=[Queue("org", limit=4), Queue("p", parent="org"), Queue("q", parent="org")],
            gangs=[holding(gang("h", 3, queue="p"), "n1 n1 n1"), gang("g", 2, queue="q")],
        ),
        {"g": "QueueLimit"},
    ),
    "a limit per model binds that model and no other": (
        Cluster.of(
            nodes=MODELS,
            queues=BY_MODEL,
            gangs=[
                holding(gang("big", 8, queue="q"), "h1 " * 8),
                gang("more", queue="q", gpu_models=("H100",)),
                gang("other", 4, queue="q", gpu_models=("A100",)),
                gang("fifth", queue="q", gpu_models=("A100",), submitted=1.0),
                gang("none", queue="q", gpu_models=("B200",)),
            ],
        ),
        {
            "more": "QueueLimit",
            "other": "a1 a1 a1 a1",
            "fifth": "QueueLimit",
            "none": "NoMatchingNodes",
        },
    ),
    "a job that may use any model takes the one that its queue may have": (
        Cluster.of(
            nodes=MODELS,
            queues=BY_MODEL,
            gangs=[holding(gang("big", 8, queue="q"), "h1 " * 8), gang("g", 4, queue="q")],
        ),
        {"g": "a1 a1 a1 a1"},
    ),
    "where only the barred model has room, the limit is the reason": (
        Cluster.of(
            nodes=MODELS,
            queues=[*BY_MODEL, Queue("p")],
            gangs=[
                holding(gang("big", 8, queue="q"), "h1 " * 8),
                holding(gang("all", 8, queue="p"), "a1 " * 8),
                gang("g", 4, queue="q"),
            ],
        ),
        {"g": "QueueLimit"},
    ),
    "where no model has room, the limit of one is not the reason": (
        Cluster.of(
            nodes=MODELS,
            queues=[*BY_MODEL, Queue("p")],
            gangs=[
                holding(gang("big", 8, queue="q"), "h1 " * 8),
                holding(gang("all", 16, queue="p"), "a1 " * 8 + "h2 " * 8),
                gang("g", 4, queue="q"),
            ],
        ),
        {"g": "QueueShare"},
    ),
    "a job without GPUs passes no limit": (
        Cluster.of(
            nodes=nodes("n1"), queues=[Queue("q", limit=0)], gangs=[gang("g", 2, 0, queue="q")]
        ),
        {"g": "n1 n1"},
    ),
    "a paused queue starts nothing and keeps what runs": (
        Cluster.of(
            nodes=nodes("n1"),
            queues=[Queue("q", is_paused=True), Queue("r", parent="q")],
            gangs=[
                holding(gang("h", 4, queue="q"), "n1 n1 n1 n1"),
                gang("a", queue="q"),
                gang("b", queue="r"),
                gang("c", 5),
            ],
        ),
        {"a": "Suspended", "b": "Suspended", "c": "QueueShare"},
    ),
    "a suspended job waits and holds up nobody": (
        Cluster.of(
            nodes=nodes("n1", 1), gangs=[gang("a", is_suspended=True), gang("b", submitted=1.0)]
        ),
        {"a": "Suspended", "b": "n1"},
    ),
    "a queue that is not there takes no job": (
        Cluster.of(nodes=nodes("n1"), gangs=[gang("g", queue="q")]),
        {"g": "UnknownQueue"},
    ),
    "a job whose queue went away keeps its place": (
        Cluster.of(
            nodes=nodes("n1"), gangs=[holding(gang("h", 8, queue="gone"), "n1 " * 8), gang("g")]
        ),
        {"g": "QueueShare"},
    ),
    "a ring of parents and a parent that is not there count each queue once": (
        Cluster.of(
            nodes=nodes("n1"),
            queues=[
                Queue("a", parent="b", limit=2),
                Queue("b", parent="a", limit=3),
                Queue("c", parent="gone", limit=1),
            ],
            gangs=[gang("x", 2, queue="a"), gang("y", 2, queue="b"), gang("z", queue="c")],
        ),
        {"x": "n1 n1", "y": "QueueLimit", "z": "n1"},
    ),
}


@pytest.mark.parametrize(("given", "want"), CASES.values(), ids=CASES)
def test_cycle(given, want):
    assert want == outcome(planned(given))


def test_positions_count_those_who_still_wait_in_their_own_queue():
    cluster = Cluster.of(
        nodes=nodes("n1", 1),
        queues=[Queue("q")],
        gangs=[
            gang("a", submitted=1.0),
            gang("b", 2, submitted=2.0),
            gang("c", submitted=3.0),
            gang("d", queue="q", submitted=4.0),
        ],
    )

    assert {"b": 1, "c": 2, "d": 1} == {w.gang: w.position for w in planned(cluster).waiting}


def test_decisions_come_in_the_order_in_which_they_were_taken():
    cluster = Cluster.of(nodes=nodes("n1", 1), gangs=[gang("c"), gang("b", 2), gang("a", 1)])

    assert ["a", "b", "c"] == [decision.gang for decision in planned(cluster).decisions]


def test_beyond_the_bound_gangs_with_further_questions_keep_the_reason_that_they_had():
    cluster = Cluster.of(gangs=[gang("a", 1), gang("b", 1), gang("c", 2), gang("d", 3)])

    plan = plan_cycle(cluster.snapshot(), Policy(max_explained=2), 0.0)

    assert ["a", "b", "c"] == [wait.gang for wait in plan.waiting]


def test_nothing_depends_on_the_time():
    snapshot = Cluster.of(nodes=nodes("n1"), gangs=[gang("a", 9), gang("b", 3)]).snapshot()

    assert plan_cycle(snapshot, Policy(), 0.0) == plan_cycle(snapshot, Policy(), 1e9)


def test_the_reasons_are_those_of_the_end_of_the_cycle():
    cluster = Cluster.of(nodes=nodes("n1"), gangs=[gang("a", 9), gang("b", 8)])
    cluster.upsert_node(node("n2", 4))
    cluster.upsert_gang(gang("a", 9, submitted=1.0))

    assert Wait("a", WaitReason.INSUFFICIENT_CAPACITY, "needs 9 GPUs; 4 GPUs free", 1) in (
        planned(cluster).decisions
    )


def test_a_gang_that_was_suspended_and_goes_on_keeps_its_turn():
    cluster = Cluster.of(nodes=nodes("n1", 1), gangs=[gang("b", submitted=2.0)])
    first = gang("a", submitted=1.0, is_suspended=True)
    cluster.upsert_gang(first)
    assert {"a": "Suspended", "b": "n1"} == outcome(planned(cluster))

    cluster.upsert_gang(replace(first, is_suspended=False))
    assert {"a": "n1", "b": "InsufficientCapacity"} == outcome(planned(cluster))
