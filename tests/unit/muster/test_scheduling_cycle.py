"""What a cycle decides besides the place: turns, limits, elastic starts, and the reasons."""

from dataclasses import replace

import pytest

from muster.scheduling.cluster import Cluster
from muster.scheduling.cycle import plan_cycle
from muster.scheduling.plan import Wait, WaitReason
from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import Needs, Queue, Taint, Toleration
from small_clusters import BLOCKS, RACKS, gang, holding, messages, node, nodes, outcome, planned

ORG = [Queue("org", limit=4), Queue("q", parent="org", limit=4)]
BY_MODEL = [Queue("q", limit_by_model={"H100": 8, "A100": 4})]
MODELS = [*nodes("h1 h2", gpu_model="H100"), node("a1", gpu_model="A100")]
GIB = 1 << 30

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
        {"y": "n1", "x": "InsufficientCapacity"},
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
        {"y": "n1", "x": "InsufficientCapacity", "old": "InsufficientCapacity"},
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
        {"g": "InsufficientCapacity"},
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
        {"a": "Suspended", "b": "Suspended", "c": "InsufficientCapacity"},
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
        {"g": "InsufficientCapacity"},
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


MESSAGES = {
    "the free GPUs are counted": (
        Cluster.of(nodes=nodes("n1"), gangs=[holding(gang("h", 5), "n1 " * 5), gang("g", 2, 2)]),
        "needs 4 GPUs; 3 GPUs free",
    ),
    "nodes out of service are counted": (
        Cluster.of(nodes=[node("n1", 1), node("n2", is_ready=False)], gangs=[gang("g", 2)]),
        "needs 2 GPUs; 1 GPU free (1 node not ready or cordoned)",
    ),
    "CPU may be what is short": (
        Cluster.of(
            nodes=[node("n1", cpu_millis=4000)],
            foreign=[("p", "n1", Needs(0, 1500))],
            gangs=[gang("g", 2, 1, cpu_millis=2000)],
        ),
        "needs 4 CPUs; 2.5 CPUs free",
    ),
    "memory may be what is short": (
        Cluster.of(
            nodes=[node("n1", memory_bytes=4 * GIB)],
            foreign=[("p", "n1", Needs(0, 0, GIB))],
            gangs=[gang("g", 1, 1, memory_bytes=4 * GIB)],
        ),
        "needs 4.0 GiB of memory; 3.0 GiB of memory free",
    ),
    "pod slots may be what is short": (
        Cluster.of(
            nodes=[node("n1", pods=2)],
            foreign=[("p", "n1", Needs())],
            gangs=[gang("g", 2, 1)],
        ),
        "needs 2 pod slots; 1 pod slot free",
    ),
    "pieces are counted": (
        Cluster.of(
            nodes=nodes("n1 n2", 4),
            gangs=[holding(gang("h", 2), "n1 n2"), gang("g", 3, 2)],
        ),
        "needs 3 replicas of 2 GPUs; 6 GPUs are free in all, in pieces that hold 2",
    ),
    "pieces without GPUs": (
        Cluster.of(
            nodes=[node("n1", 0, cpu_millis=3000), node("n2", 0, cpu_millis=3000)],
            foreign=[("p", "n1", Needs(0, 1000)), ("q", "n2", Needs(0, 1000))],
            gangs=[gang("g", 1, 0, cpu_millis=3000)],
        ),
        "needs 1 replica; enough is free in all, in pieces that hold 0",
    ),
    "the roomiest domain is named": (
        Cluster.of(
            levels=RACKS,
            nodes=[*nodes("n1 n2", 2, rack="r1"), *nodes("n3 n4", 2, rack="r2")],
            gangs=[
                holding(gang("h"), "n1"),
                holding(gang("i", 2), "n3 n3"),
                gang("g", 4, required="rack"),
            ],
        ),
        "needs 4 replicas in one rack; the roomiest, r1, holds 3",
    ),
    "parts that do not fit are named": (
        Cluster.of(
            levels=BLOCKS,
            nodes=[
                *nodes("n1 n2", 1, block="b1", rack="r1"),
                *nodes("n3 n4", 1, block="b1", rack="r2"),
            ],
            gangs=[
                holding(gang("h"), "n1"),
                gang("g", 3, required="block", part_size=2, part_required="rack", priority=-1),
                gang("x", 3, part_size=3, part_required="rack", required="block"),
            ],
        ),
        "needs 1 part of 3 replicas, each in one rack, all in one block; there is room for 0, "
        "even empty",
    ),
    "a limit that is lower than the job is never passed": (
        Cluster.of(
            nodes=nodes("n1"), queues=[Queue("q", limit=4)], gangs=[gang("g", 5, queue="q")]
        ),
        "needs 5 GPUs; the limit of queue q is 4",
    ),
    "limits on all models are lower than the job": (
        Cluster.of(
            nodes=MODELS,
            queues=[Queue("q", limit_by_model={"H100": 1, "A100": 1})],
            gangs=[gang("g", 2, queue="q")],
        ),
        "needs 2 replicas of 1 GPU; the limits on A100, H100 are lower",
    ),
    "the empty cluster is too small": (
        Cluster.of(nodes=nodes("n1 n2"), gangs=[gang("g", 3, 8)]),
        "needs 3 replicas of 8 GPUs; the empty cluster has room for 2",
    ),
    "what the queue holds is told": (
        Cluster.of(
            nodes=nodes("n1"),
            queues=[Queue("q", limit=4)],
            gangs=[holding(gang("h", 3, queue="q"), "n1 n1 n1"), gang("g", 2, queue="q")],
        ),
        "needs 2 GPUs; queue q holds 3 of at most 4",
    ),
    "what the queue holds of the model is told": (
        Cluster.of(
            nodes=MODELS,
            queues=BY_MODEL,
            gangs=[
                holding(gang("h", 8, queue="q"), "h1 " * 8),
                gang("g", 2, queue="q", gpu_models=("H100",)),
            ],
        ),
        "needs 2 GPUs; queue q holds 8 of at most 8 H100",
    ),
    "what keeps the nodes out is counted": (
        Cluster.of(
            nodes=[*MODELS, node("b1", gpu_model="B200", taints=(Taint("x"),))],
            gangs=[gang("g", gpu_models=("B200",))],
        ),
        "no node matches (3 nodes: another GPU model; 1 node: a taint that is not tolerated)",
    ),
    "a cluster without nodes says so": (
        Cluster.of(gangs=[gang("g")]),
        "no node matches; there are none",
    ),
    "a suspended job": (Cluster.of(gangs=[gang("g", is_suspended=True)]), "the job is suspended"),
    "a paused queue": (
        Cluster.of(queues=[Queue("default", is_paused=True)], gangs=[gang("g")]),
        "queue default is paused",
    ),
    "an unknown queue": (Cluster.of(gangs=[gang("g", queue="q")]), "there is no queue q"),
    "an unknown level": (
        Cluster.of(gangs=[gang("g", required="pod")]),
        "the cluster has no topology level pod",
    ),
    "one node": (Cluster.of(nodes=nodes("n1"), gangs=[gang("g", 8)]), "8 GPUs on 1 node"),
    "one GPU in one rack": (
        Cluster.of(levels=RACKS, nodes=nodes("n1", rack="r1"), gangs=[gang("g")]),
        "1 GPU on 1 node in rack r1",
    ),
    "several racks of a block": (
        Cluster.of(
            levels=BLOCKS,
            nodes=[
                node("n1", block="b1", rack="r1"),
                *nodes("n2 n3", block="b1", rack="r2"),
            ],
            gangs=[gang("g", 3, 8)],
        ),
        "24 GPUs on 3 nodes over 2 racks in block b1",
    ),
    "a level that nodes lack is left out": (
        Cluster.of(levels=BLOCKS, nodes=nodes("n1 n2", rack="r1"), gangs=[gang("g", 2, 8)]),
        "16 GPUs on 2 nodes in rack r1",
    ),
    "a level that all nodes lack is left out": (
        Cluster.of(levels=RACKS, nodes=nodes("n1 n2"), gangs=[gang("g", 2, 8)]),
        "16 GPUs on 2 nodes",
    ),
    "without GPUs replicas are counted": (
        Cluster.of(nodes=nodes("n1"), gangs=[gang("g", 2, 0)]),
        "2 replicas on 1 node",
    ),
}


@pytest.mark.parametrize(("given", "want"), MESSAGES.values(), ids=MESSAGES)
def test_message(given, want):
    assert want in messages(planned(given)).values()


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
