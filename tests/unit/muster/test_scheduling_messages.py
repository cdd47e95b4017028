"""What a cycle tells each gang: why it waits, or where it starts."""

import pytest

from muster.scheduling.cluster import Cluster
from muster.scheduling.snapshot import Needs, Queue, Taint
from small_clusters import (
    BLOCKS,
    BY_MODEL,
    GIB,
    MODELS,
    RACKS,
    gang,
    holding,
    messages,
    node,
    nodes,
    planned,
)

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
    "a resource that is scarcer than GPUs is named": (
        Cluster.of(
            nodes=[node(f"n{i}", cpu_millis=4000) for i in range(20)],
            gangs=[gang("g", 2, cpu_millis=5000)],
        ),
        "needs 2 replicas of 1 GPU with 5 CPUs each; the empty cluster has room for 0",
    ),
    "memory of a gang without GPUs is named": (
        Cluster.of(
            nodes=[node("n1", memory_bytes=1 << 30)],
            gangs=[gang("g", 1, 0, memory_bytes=1 << 31)],
        ),
        "needs 1 replica with 2.0 GiB of memory each; the empty cluster has room for 0",
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
