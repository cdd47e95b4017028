"""Which nodes a cycle counts on, and how large elastic jobs start."""

import pytest

from muster.scheduling.cluster import Cluster
from muster.scheduling.snapshot import Needs, Queue, Taint, Toleration
from small_clusters import GIB, RACKS, gang, holding, node, nodes, outcome, planned

CASES = {
    # Nodes
    "a node that is down or cordoned starts nothing": (
        Cluster.of(
            nodes=[node("n1", is_ready=False), node("n2", is_cordoned=True), node("n3", 1)],
            gangs=[gang("g"), gang("h", 2)],
        ),
        {"g": "n3", "h": "InsufficientCapacity"},
    ),
    "down and cordoned nodes count as up for what can never fit": (
        Cluster.of(
            nodes=[
                node(
                    "n1",
                    is_ready=False,
                    taints=(Taint("node.kubernetes.io/not-ready", "", "NoSchedule"),),
                ),
                node("n2", 1),
            ],
            gangs=[gang("g", 9), gang("h", 10)],
        ),
        {"g": "InsufficientCapacity", "h": "NeverFits"},
    ),
    "other people's pods take their part": (
        Cluster.of(
            nodes=[node("n1", 8, cpu_millis=8000, memory_bytes=8 * GIB, pods=3)],
            foreign=[("x/p", "n1", Needs(2, 1000, GIB))],
            gangs=[gang("a", 7), gang("b", 2, 1, cpu_millis=3500)],
        ),
        {"a": "NeverFits", "b": "n1 n1"},
    ),
    "for what can never fit, other people's pods count as gone": (
        Cluster.of(
            nodes=[node("n1", 8)],
            foreign=[("x/p", "n1", Needs(2))],
            gangs=[gang("a", 7)],
        ),
        {"a": "InsufficientCapacity"},
    ),
    "a pod elsewhere that is not ours takes nothing here": (
        Cluster.of(nodes=nodes("n1", 1), foreign=[("x/p", "gone", Needs(8))], gangs=[gang("a")]),
        {"a": "n1"},
    ),
    "CPU, memory and pod slots bind as GPUs do": (
        Cluster.of(
            nodes=[
                node("n1", 8, cpu_millis=4000),
                node("n2", 8, memory_bytes=4 * GIB),
                node("n3", 8, pods=4),
            ],
            gangs=[gang("g", 12, 1, cpu_millis=1000, memory_bytes=GIB)],
        ),
        {"g": "n1 n1 n1 n1 n2 n2 n2 n2 n3 n3 n3 n3"},
    ),
    "a taint keeps out who does not tolerate it": (
        Cluster.of(
            nodes=[node("n1", taints=(Taint("dedicated", "ml"),))],
            gangs=[gang("a"), gang("b", tolerations=(Toleration("dedicated", "Exists"),))],
        ),
        {"a": "NoMatchingNodes", "b": "n1"},
    ),
    "the selector and the capacity type choose the node": (
        Cluster.of(
            nodes=[
                node("n1", capacity_type="spot"),
                node("n2", capacity_type="on-demand", rack="r2"),
            ],
            gangs=[
                gang("a", capacity_types=("spot",)),
                gang("b", selector=(("rack", "r2"),)),
                gang("c", selector=(("rack", "r2"),), capacity_types=("spot",)),
            ],
        ),
        {"a": "n1", "b": "n2", "c": "NoMatchingNodes"},
    ),
    "a node that shrank below what is held there takes nothing": (
        Cluster.of(
            nodes=[node("n1", 1), node("n2", 2)],
            gangs=[holding(gang("h", 2), "n1 n1"), gang("g", 2), gang("i", 2, submitted=1.0)],
        ),
        {"g": "n2 n2", "i": "InsufficientCapacity"},
    ),
    "a gang on nodes that nobody knows disturbs nobody": (
        Cluster.of(nodes=nodes("n1", 1), gangs=[holding(gang("h", 2), "gone lost"), gang("g")]),
        {"g": "n1"},
    ),
    # Elastic jobs
    "an elastic job takes all that is there when it starts": (
        Cluster.of(nodes=nodes("n1", 6), gangs=[gang("e", 8, min_replicas=2)]),
        {"e": "n1 n1 n1 n1 n1 n1"},
    ),
    "growth comes after the minimums of all others": (
        Cluster.of(
            nodes=nodes("n1"), gangs=[gang("e", 8, min_replicas=2), gang("g", 4, submitted=1.0)]
        ),
        {"e": "n1 n1 n1 n1", "g": "n1 n1 n1 n1"},
    ),
    "the first elastic job in order grows first": (
        Cluster.of(
            nodes=nodes("n1"),
            gangs=[gang("e", 6, min_replicas=2), gang("f", 6, min_replicas=1, submitted=1.0)],
        ),
        {"e": "n1 n1 n1 n1 n1 n1", "f": "n1 n1"},
    ),
    "growth keeps the limit": (
        Cluster.of(
            nodes=nodes("n1"),
            queues=[Queue("q", limit=5)],
            gangs=[gang("e", 8, min_replicas=2, queue="q")],
        ),
        {"e": "n1 n1 n1 n1 n1"},
    ),
    "growth keeps the required rack": (
        Cluster.of(
            levels=RACKS,
            nodes=[node("n1", 2, rack="r1"), node("n2", 3, rack="r2")],
            gangs=[gang("e", 8, min_replicas=1, required="rack")],
        ),
        {"e": "n2 n2 n2"},
    ),
    "a running elastic job keeps its size": (
        Cluster.of(nodes=nodes("n1"), gangs=[holding(gang("e", 8, min_replicas=2), "n1 n1")]),
        {},
    ),
    "what growth moved out of the way is used at once": (
        Cluster.of(
            levels=RACKS,
            nodes=[node("n1", 2, rack="r1"), node("n2", 3, rack="r2")],
            gangs=[
                gang("e", 3, min_replicas=2, required="rack"),
                holding(gang("h", 1), "gone"),
                gang("g", 3, submitted=1.0),
                gang("s", 2, submitted=2.0, priority=-1, selector=(("rack", "r1"),)),
            ],
        ),
        {"e": "n1 n1", "g": "n2 n2 n2", "s": "InsufficientCapacity"},
    ),
    "a job that waited for the place that growth left starts in the same cycle": (
        Cluster.of(
            levels=RACKS,
            nodes=[node("n1", 2, rack="r1"), node("n2", 4, rack="r2")],
            gangs=[
                gang("e", 3, min_replicas=2),
                gang("s", 2, submitted=1.0, selector=(("rack", "r1"),)),
            ],
        ),
        {"e": "n2 n2 n2", "s": "n1 n1"},
    ),
}


@pytest.mark.parametrize(("given", "want"), CASES.values(), ids=CASES)
def test_cycle(given, want):
    assert want == outcome(planned(given))
