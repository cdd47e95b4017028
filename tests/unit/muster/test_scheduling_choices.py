"""Whom a gang takes where it has a choice, who goes first, and what is given back."""

import pytest

from muster.scheduling.cluster import Cluster
from muster.scheduling.fair_share import share_of
from muster.scheduling.order import level_of
from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import Order, Queue
from small_clusters import (
    NOW,
    RACKS,
    RESERVED,
    decided,
    gang,
    node,
    nodes,
    running,
)

HIGH = gang("h", 4, priority=1)
INF = float("inf")


def pair(first: dict, second: dict, **of_both: object) -> Cluster:
    """Two jobs of 4 GPUs, one of which has to leave."""
    jobs = [
        running(name, "n1 " * 4 if name == "a" else "n2 " * 4, **{**of_both, **more})
        for name, more in (("a", first), ("b", second))
    ]
    return Cluster.of(nodes=nodes("n1 n2", 4), gangs=[*jobs, HIGH])


VICTIMS = {
    "the one that has run for less time": (pair({}, {"ago": 60}), "b"),
    "the one whose checkpoint is newer": (pair({"saved": NOW - 9}, {"ago": 60}), "a"),
    "of equal work the lower priority": (
        Cluster.of(
            nodes=nodes("n1 n2", 4),
            gangs=[
                running("a", "n1 " * 4, priority=1),
                running("b", "n2 " * 4),
                gang("h", 4, priority=2),
            ],
        ),
        "b",
    ),
    "of equal work and priority the one that was started last": (
        pair({"saved": NOW - 5}, {"saved": NOW - 5, "ago": 60}),
        "b",
    ),
    "of equals the first by name": (pair({}, {}), "a"),
    "two cheap ones rather than one dear one": (
        Cluster.of(
            nodes=nodes("n1 n2", 4),
            gangs=[
                running("dear", "n1 " * 4, ago=900),
                running("x", "n2 n2", ago=60),
                running("y", "n2 n2", ago=60),
                HIGH,
            ],
        ),
        "x y",
    ),
    "of equal work fewer jobs": (
        Cluster.of(
            nodes=nodes("n1 n2", 4),
            gangs=[
                running("x", "n1 n1"),
                running("y", "n1 n1"),
                running("z", "n2 " * 4),
                HIGH,
            ],
        ),
        "z",
    ),
    "of equal work and jobs the one that frees fewer GPUs beyond the need": (
        Cluster.of(
            nodes=nodes("n1 n2", 8),
            gangs=[
                running("wide", "n1 " * 8, ago=30),
                running("fixed", "n2 n2", is_preemptible=False),
                running("tight", "n2 " * 6, ago=40),
                gang("h", 6, priority=1),
            ],
        ),
        "tight",
    ),
    "surplus, which costs nothing, rather than a whole gang": (
        Cluster.of(
            nodes=nodes("n1 n2", 4),
            gangs=[
                running("cheap", "n1 " * 4, ago=1),
                running("elastic", "n2 " * 4, min_replicas=2),
                gang("h", 2, priority=1),
            ],
        ),
        "elastic 2,3",
    ),
    "all in one rack where a rack is required": (
        Cluster.of(
            levels=RACKS,
            nodes=[*nodes("a1 a2", 4, rack="r1"), *nodes("b1 b2", 4, rack="r2")],
            gangs=[
                running("a", "a1 " * 4, ago=50),
                running("b", "a2 " * 4, ago=40),
                running("c", "b1 " * 4, ago=30),
                running("d", "b2 " * 4, ago=99),
                gang("h", 2, 4, priority=1, required="rack"),
            ],
        ),
        "a b",
    ),
    "what is idle counts together with who leaves": (
        Cluster.of(
            nodes=nodes("n1 n2 n3", 4),
            gangs=[
                running("a", "n1 " * 4),
                running("b", "n2 " * 4, ago=60),
                gang("h", 2, 4, priority=1),
            ],
        ),
        "b",
    ),
    "nobody where even all together would not do": (
        Cluster.of(
            nodes=nodes("n1 n2", 4),
            gangs=[
                running("a", "n1 " * 4),
                running("b", "n2 " * 4, is_preemptible=False),
                gang("h", 2, 4, priority=1),
            ],
        ),
        "",
    ),
}


@pytest.mark.parametrize("claim", VICTIMS)
def test_who_leaves(claim):
    cluster, want = VICTIMS[claim]
    taken = [line for line in decided(cluster) if line.startswith("h takes")]
    victims = " ".join(
        " ".join(word for word in part.split() if word not in {"h", "takes"}).split(" by ")[0]
        for line in taken
        for part in line.split(" and ")
    )

    assert want == victims


def test_a_restart_costs_time_too():
    dear = Policy(reservation=False, leaves_at_once=True, restart_time=600.0)
    cluster = Cluster.of(
        nodes=nodes("n1 n2", 4),
        gangs=[
            running("one", "n1 " * 4, ago=400),
            running("x", "n2", ago=100),
            running("y", "n2 n2 n2", ago=500),
            gang("h", 4, priority=1),
        ],
    )

    # 4 x 400 against 100 + 3 x 500, which is as much; the time of a restart is the same for both.
    assert "h takes one by priority" == decided(cluster, dear)[0]


TURNS = {
    "the lowest share first": (
        [Queue("a"), Queue("b")],
        [running("x", "n1", queue="a"), gang("y", queue="a"), gang("z", 2, queue="b")],
        "z",
    ),
    "looked at again after each job": (
        [Queue("a"), Queue("b")],
        [gang("a1", queue="a"), gang("a2", queue="a"), gang("b1", queue="b", submitted=9.0)],
        "a1 b1 a2",
    ),
    "a queue below its guarantee before one above it": (
        [Queue("a", guaranteed=2), Queue("b", weight=9.0)],
        [running("x", "n1", queue="a"), gang("y", queue="a", submitted=9.0), gang("z", queue="b")],
        "y z",
    ),
    "a share is beside the weight": (
        [Queue("a", weight=4.0), Queue("b")],
        [
            running("x", "n1", queue="a"),
            running("w", "n1", queue="b"),
            gang("y", queue="a", submitted=9.0),
            gang("z", queue="b"),
        ],
        "y z",
    ),
    "weight 0 goes last once it holds anything": (
        [Queue("a", weight=0.0), Queue("b")],
        [
            running("x", "n1", queue="a"),
            running("w", "n1 n1", queue="b"),
            gang("y", queue="a"),
            gang("z", queue="b", submitted=9.0),
        ],
        "z y",
    ),
    "level by level from the root": (
        # b itself holds nothing, but org is further up than c.
        [Queue("org"), Queue("a", "org"), Queue("b", "org"), Queue("c")],
        [
            running("x", "n1 n1", queue="a"),
            running("w", "n1", queue="c"),
            gang("y", queue="b"),
            gang("z", queue="c", submitted=9.0),
        ],
        "z y",
    ),
    "equal shares go by the age of their head jobs, then by name": (
        [Queue("a"), Queue("b")],
        [gang("y", queue="b"), gang("z", queue="a")],
        "y z",
    ),
    "who was evicted goes to the head of its priority": (
        [],
        [
            gang("old"),
            gang("back", submitted=9.0, is_returning=True),
            gang("high", priority=1, submitted=9.0),
        ],
        "high back old",
    ),
    "attained-service: who has held least goes first, by levels": (
        [Queue("default", order=Order.ATTAINED_SERVICE)],
        [gang("x", attained=3600.0), gang("y", submitted=9.0, attained=3599.0), gang("z")],
        "z y x",
    ),
    "shortest-remaining: who has least to do goes first, and who says nothing last": (
        [Queue("default", order=Order.SHORTEST_REMAINING)],
        [
            gang("silent"),
            gang("long", submitted=1.0, max_run_time=500.0),
            gang("far", submitted=9.0, max_run_time=900.0, ran=800.0),
        ],
        "far long silent",
    ),
    "priority before any order": (
        [Queue("default", order=Order.SHORTEST_REMAINING)],
        [gang("short", max_run_time=5.0), gang("long", max_run_time=500.0, priority=1)],
        "long short",
    ),
}


@pytest.mark.parametrize("claim", TURNS)
def test_whose_turn_it_is(claim):
    queues, gangs, want = TURNS[claim]
    room = sum(len(g.placement or ()) for g in gangs) + 2 + (len(want.split()) > 2)
    words = decided(Cluster.of(nodes=nodes("n1", room), queues=queues, gangs=gangs))

    assert want.split() == [line.split()[0] for line in words if " starts " in line]


SHARES = {
    "nothing held, nothing guaranteed": ((0, 0, 1.0), 0.0),
    "usage beside the weight where nothing is guaranteed": ((6, 0, 4.0), 1.5),
    "what is above the guarantee beside the weight": ((6, 2, 2.0), 2.0),
    "what lacks beside the guarantee": ((1, 4, 9.0), -0.75),
    "the guarantee itself": ((4, 4, 2.0), 0.0),
    "nothing of a guarantee": ((0, 4, 2.0), -1.0),
    "no end of it above the guarantee with weight 0": ((5, 4, 0.0), INF),
    "but not at it": ((4, 4, 0.0), 0.0),
    "decayed usage is no whole number": ((0.5, 0, 2.0), 0.25),
}


@pytest.mark.parametrize("claim", SHARES)
def test_the_share_of_a_queue(claim):
    asked, want = SHARES[claim]

    assert want == share_of(*asked)


def test_levels_of_attained_service_grow_fourfold():
    hours = [0, 0.99, 1, 3.99, 4, 15.9, 16, 63, 64]

    assert [0, 0, 1, 1, 2, 2, 3, 3, 4] == [level_of(3600 * hour) for hour in hours]


def test_a_job_that_cannot_start_stops_nobody_who_uses_another_model():
    cluster = Cluster.of(
        nodes=[node("h1", 4, gpu_model="H100"), node("a1", 4, gpu_model="A100")],
        gangs=[
            running("x", "h1", is_preemptible=False),
            gang("big", 4, gpu_models=("H100",)),
            gang("small", gpu_models=("A100",), is_preemptible=False, submitted=9.0),
            gang("other", gpu_models=("H100",), is_preemptible=False, submitted=9.0),
        ],
    )

    assert ["small starts on a1", "big waits", "other waits"] == decided(cluster, RESERVED)
