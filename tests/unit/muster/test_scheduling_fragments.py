"""Which free GPUs nobody who waits can use."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.scheduling.cluster import Cluster
from muster.scheduling.fragments import fragmented_gpus, free_gpus, held_by
from muster.scheduling.snapshot import Queue
from random_clusters import tried
from small_clusters import gang, holding, node, nodes

FIVE = [node("n1", 8), holding(gang("x", 3), "n1 n1 n1")]
CASES = {
    "where nobody waits, nothing is fragmented": ([node("n1", 5)], {}),
    "a replica of four leaves one of five": ([node("n1", 5), gang("a", 9, 4)], {"n1": 1}),
    "a smaller one that waits takes the rest": (
        [node("n1", 5), gang("a", 9, 4), gang("b", 1, 1)],
        {},
    ),
    "what is held is not free": ([*FIVE, gang("a", 9, 4)], {"n1": 1}),
    "three and two fill what two twos do not": (
        [node("n1", 5), gang("a", 9, 3), gang("b", 9, 2)],
        {},
    ),
    "equal jobs ask once": ([node("n1", 5), gang("a", 9, 4), gang("b", 9, 4)], {"n1": 1}),
    "more of one kind than fits does not help": (
        [node("n1", 6, pods=9), gang("a", 9, 2), gang("b", 9, 4)],
        {},
    ),
    "another model is of no use": (
        [
            node("n1", 4, gpu_model="A100"),
            node("n2", 4, gpu_model="H100"),
            gang("a", 9, 2, gpu_models=("H100",)),
        ],
        {"n1": 4},
    ),
    "GPUs without CPUs are of no use": (
        [node("n1", 4, cpu_millis=1000), gang("a", 9, 1, cpu_millis=1000)],
        {"n1": 3},
    ),
    "who fits no node does not wait for these": ([node("n1", 5), gang("a", 1, 9)], {}),
    "who fits none now, but a node that is down, does": (
        [node("n1", 5), node("n2", 8, is_ready=False), gang("a", 1, 8)],
        {"n1": 5},
    ),
    "nodes that are down or cordoned have nothing free": (
        [node("n1", 5, is_cordoned=True), node("n2", 3, is_ready=False), gang("a", 9, 2)],
        {},
    ),
    "who is suspended does not wait": ([node("n1", 5), gang("a", 9, 4, is_suspended=True)], {}),
    "nor who is in a paused queue": (
        [node("n1", 5), Queue("q", is_paused=True), gang("a", 9, 4, queue="q")],
        {},
    ),
    "nor who comes after another job": (
        [node("n1", 5), gang("a", 9, 4, held_back="waits for b")],
        {},
    ),
    "who needs no GPUs fills nothing": ([node("n1", 5), gang("a", 9, 0)], {}),
    "without nodes there is nothing": ([gang("a", 9, 4)], {}),
}


def cluster_of(things):
    kinds = {"Node": "nodes", "Queue": "queues", "Gang": "gangs"}
    told = {kind: [] for kind in kinds.values()}
    for thing in things:
        told[kinds[type(thing).__name__]].append(thing)
    return Cluster.of(**told)


@pytest.mark.parametrize("claim", CASES)
def test_fragments(claim):
    things, want = CASES[claim]

    assert want == fragmented_gpus(cluster_of(things).snapshot())


@given(st.integers(0, 12), st.lists(st.integers(1, 6), min_size=1, max_size=4, unique=True))
@tried(100)
def test_no_choice_of_replicas_fills_more(free, sizes):
    waiting = [gang(f"g{size}", 99, size) for size in sizes]
    snapshot = Cluster.of(nodes=[node("n1", free), node("n2", 99)], gangs=waiting).snapshot()
    sums = (
        sum(size * times for size, times in zip(sizes, choice, strict=True))
        for choice in product(*(range(free // size + 1) for size in sizes))
    )
    best = max(total for total in sums if total <= free)

    assert free - best == fragmented_gpus(snapshot).get("n1", 0)


def test_free_gpus_are_those_a_job_could_get():
    down = node("n3", 8, is_ready=False)
    cluster = Cluster.of(nodes=[*nodes("n1 n2"), down], gangs=[holding(gang("x", 2, 2), "n1 n1")])

    assert {"n1": 4, "n2": 8, "n3": 0} == free_gpus(cluster.snapshot())


def test_who_holds_what_on_each_node():
    lost = replace(gang("w", 2), placement=("", "n2"))
    gangs = [
        lost,
        holding(gang("x", 3, 2), "n1 n1 n2"),
        holding(gang("y", 1, 1), "n1"),
        gang("z", 1),
    ]
    snapshot = Cluster.of(nodes=nodes("n1 n2"), gangs=gangs).snapshot()

    assert {"n1": {"x": 4, "y": 1}, "n2": {"w": 1, "x": 2}} == held_by(snapshot)
