"""The cluster as it is kept between cycles: changed in place, and read as frozen snapshots."""

import os
import subprocess
import sys
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import pytest

from muster.scheduling.cluster import Cluster
from muster.scheduling.kept import Kept
from muster.scheduling.room import Memo
from muster.scheduling.snapshot import Level, Needs, NodeRules, Queue, Taint
from muster.scheduling.trial import Trial
from small_clusters import (
    RACKS,
    carry_out,
    gang,
    holding,
    node,
    nodes,
    outcome,
    planned,
)

FULL = holding(gang("h", 8), "n1 " * 8)

STEPS = {
    "a gang that is placed takes its nodes": (
        lambda c: c.upsert_gang(FULL),
        "InsufficientCapacity",
    ),
    "a gang that is gone gives them back": (
        lambda c: (c.upsert_gang(FULL), c.remove_gang("h")),
        "n1",
    ),
    "of two gangs on a node one may go": (
        lambda c: (
            c.upsert_gang(holding(gang("h", 4), "n1 " * 4)),
            c.upsert_gang(holding(gang("i", 4), "n1 " * 4)),
            c.remove_gang("h"),
        ),
        "n1",
    ),
    "a gang without GPUs counts against no limit": (
        lambda c: (
            c.upsert_queue(Queue("default", limit=1)),
            c.upsert_gang(holding(gang("h", 2, 0), "n1 n1")),
        ),
        "n1",
    ),
    "the last gang of a queue may go": (
        lambda c: (
            c.upsert_queue(Queue("q")),
            c.upsert_gang(gang("h", 8, queue="q", priority=1, submitted=-1.0)),
            c.remove_gang("h"),
        ),
        "n1",
    ),
    "a gang that is requeued gives them back and waits": (
        lambda c: (c.upsert_gang(FULL), c.upsert_gang(replace(FULL, placement=None, replicas=9))),
        "n1",
    ),
    "a gang that shrinks gives back the difference": (
        lambda c: (c.upsert_gang(FULL), c.upsert_gang(holding(FULL, "n1 " * 7))),
        "n1",
    ),
    "a gang that grows takes the difference": (
        lambda c: (c.upsert_gang(holding(FULL, "n1 " * 7)), c.upsert_gang(FULL)),
        "InsufficientCapacity",
    ),
    "a gang that moves takes the other node": (
        lambda c: (c.upsert_gang(FULL), c.upsert_gang(holding(FULL, "n2 " * 8))),
        "n1",
    ),
    "an empty placement holds nothing": (
        lambda c: (c.upsert_gang(FULL), c.upsert_gang(holding(FULL, "")), c.remove_gang("h")),
        "n1",
    ),
    "a node that goes takes its room with it": (
        lambda c: c.remove_node("n1"),
        "NoMatchingNodes",
    ),
    "a node that comes back finds what was placed there": (
        lambda c: (c.upsert_gang(FULL), c.remove_node("n1"), c.upsert_node(node("n1"))),
        "InsufficientCapacity",
    ),
    "a gang may be placed before its node is known": (
        lambda c: (c.remove_node("n1"), c.upsert_gang(FULL), c.upsert_node(node("n1"))),
        "InsufficientCapacity",
    ),
    "a node that is cordoned takes nothing": (
        lambda c: c.upsert_node(node("n1", is_cordoned=True)),
        "InsufficientCapacity",
    ),
    "a node that is tainted takes nobody who does not tolerate it": (
        lambda c: c.upsert_node(node("n1", taints=(Taint("x"),))),
        "NoMatchingNodes",
    ),
    "somebody else's pod takes its part and gives it back": (
        lambda c: (c.upsert_foreign("p", "n1", Needs(8)), c.remove_foreign("p")),
        "n1",
    ),
    "somebody else's pod that moves is counted once": (
        lambda c: (
            c.upsert_foreign("p", "n2", Needs(8)),
            c.upsert_foreign("p", "n1", Needs(8)),
            c.upsert_foreign("p", "n1", Needs(8)),
        ),
        "InsufficientCapacity",
    ),
    "what is not there can be removed": (
        lambda c: (
            c.remove_node("x"),
            c.remove_gang("x"),
            c.remove_queue("x"),
            c.remove_foreign("x"),
        ),
        "n1",
    ),
    "a queue that is paused holds its jobs": (
        lambda c: c.upsert_queue(Queue("default", is_paused=True)),
        "Suspended",
    ),
    "a queue that goes leaves the default one as it is without it": (
        lambda c: (c.upsert_queue(Queue("default", is_paused=True)), c.remove_queue("default")),
        "n1",
    ),
    "a lowered limit makes nobody leave and lets nobody in": (
        lambda c: (
            c.upsert_gang(holding(gang("h", 2), "n1 n1")),
            c.upsert_queue(Queue("default", limit=1)),
        ),
        "QueueLimit",
    ),
    "what a queue holds follows a new parent": (
        lambda c: (
            c.upsert_queue(Queue("org", limit=2)),
            c.upsert_gang(holding(gang("h", 2), "n1 n1")),
            c.upsert_queue(Queue("default", parent="org")),
        ),
        "QueueLimit",
    ),
    "a model that becomes known counts against its limit": (
        lambda c: (
            c.upsert_queue(Queue("default", limit_by_model={"H100": 2})),
            c.upsert_gang(holding(gang("h", 2), "n1 n1")),
            planned(c),
            c.upsert_node(node("n1", gpu_model="H100")),
        ),
        "QueueLimit",
    ),
    "a model that goes with its node counts no more": (
        lambda c: (
            c.upsert_queue(Queue("default", limit_by_model={"H100": 2})),
            c.upsert_gang(holding(gang("h", 2), "n2 n2")),
            c.upsert_node(node("n2", gpu_model="H100")),
            c.remove_node("n2"),
        ),
        "n1",
    ),
}


@pytest.mark.parametrize(("change", "want"), STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("is_warm", [False, True], ids=["cold", "warm"])
def test_changes_in_place(change, want, is_warm):
    cluster = Cluster.of(nodes=nodes("n1"), gangs=[gang("g")])
    if is_warm:
        planned(cluster)

    change(cluster)

    assert want == outcome(planned(cluster))["g"]
    assert () == cluster.audit()


def test_levels_may_change_while_gangs_wait():
    cluster = Cluster.of(
        nodes=[node("n1", 1, rack="r1"), node("n2", 1, rack="r1"), node("n3", 1)],
        gangs=[gang("g", 2, required="rack")],
    )
    assert {"g": "UnknownTopologyLevel"} == outcome(planned(cluster))

    cluster.set_levels(RACKS)
    assert {"g": "n1 n2"} == outcome(planned(cluster))

    cluster.set_levels([Level("rack", "elsewhere")])
    assert {"g": "NeverFits"} == outcome(planned(cluster))
    assert () == cluster.audit()


def test_a_node_may_move_to_another_rack():
    cluster = Cluster.of(
        levels=RACKS,
        nodes=[node("n1", 1, rack="r1"), node("n2", 1, rack="r2")],
        gangs=[gang("g", 2, required="rack")],
    )
    assert {"g": "NeverFits"} == outcome(planned(cluster))

    cluster.upsert_node(node("n2", 1, rack="r1"))
    assert {"g": "n1 n2"} == outcome(planned(cluster))


def test_labels_may_change_without_the_topology():
    cluster = Cluster.of(nodes=nodes("n1"), gangs=[gang("g", selector=(("disk", "ssd"),))])
    assert {"g": "NoMatchingNodes"} == outcome(planned(cluster))

    cluster.upsert_node(node("n1", labels={"disk": "ssd"}))
    assert {"g": "n1"} == outcome(planned(cluster))


def test_a_snapshot_is_the_same_until_something_changes():
    cluster = Cluster.of(nodes=nodes("n1"), queues=[Queue("q")], gangs=[gang("g"), FULL])
    cluster.upsert_foreign("p", "n1", Needs(1))
    before = cluster.snapshot()

    cluster.upsert_node(node("n1"))
    cluster.upsert_queue(Queue("q"))
    cluster.upsert_gang(gang("g"))
    cluster.upsert_foreign("p", "n1", Needs(1))
    cluster.set_levels(())

    assert before is cluster.snapshot()


def test_a_snapshot_cannot_be_changed_and_does_not_change():
    cluster = Cluster.of(nodes=nodes("n1"), queues=[Queue("q")], gangs=[gang("g")])
    snapshot = cluster.snapshot()
    before = planned(cluster)
    with pytest.raises(ValueError, match="read-only"):
        snapshot.free[0, 0] = 9
    with pytest.raises(FrozenInstanceError):
        snapshot.version = 9

    cluster.upsert_gang(FULL)
    cluster.remove_node("n1")
    cluster.remove_queue("q")

    assert [[8], [1 << 60], [1 << 60], [1 << 60]] == snapshot.free.tolist()
    assert before == planned_of(snapshot)


def planned_of(snapshot):
    class Still:
        def snapshot(self):
            return snapshot

    return planned(Still())


def test_an_older_snapshot_gives_the_older_plan():
    cluster = Cluster.of(nodes=nodes("n1"), gangs=[gang("g")])
    older = cluster.snapshot()
    cluster.upsert_gang(FULL)
    newer = cluster.snapshot()

    assert {"g": "InsufficientCapacity"} == outcome(planned_of(newer))
    assert {"g": "n1"} == outcome(planned_of(older))
    assert {"g": "InsufficientCapacity"} == outcome(planned_of(newer))


def test_a_thousand_further_passes_change_nothing():
    waiting = [gang(f"w{number}", 3, 2, submitted=float(number)) for number in range(5)]
    cluster = Cluster.of(nodes=nodes("n1 n2", 4), gangs=waiting)
    carry_out(cluster, planned(cluster), waiting)
    settled = planned(cluster)

    for number in range(1000):
        if number % 3 == 0:
            # What is watched comes again, as after every resync.
            cluster.remove_gang("w4")
            cluster.upsert_gang(waiting[4])
        assert settled == planned(cluster)


def test_of_what_is_kept_the_oldest_goes_first():
    kept = Kept[str](2)
    assert "a" == kept.put(1, "a")
    kept.put(2, "b")
    kept.put(1, "A")
    kept.put(3, "c")

    assert ["A", None, "c"] == [kept.get(number) for number in (1, 2, 3)]


def test_a_plan_does_not_depend_on_what_was_kept():
    cluster = Cluster.of(nodes=nodes("n1 n2"), gangs=[gang("a", 5), gang("b", 4), gang("c", 9)])
    planned(cluster)
    cluster.upsert_gang(holding(gang("h", 3), "n1 n1 n1"))
    warm = cluster.snapshot()

    assert planned_of(warm) == planned_of(replace(warm, memo=Memo()))


def test_a_plan_is_the_same_in_every_process():
    program = """
import sys
sys.path[:0] = sys.argv[1:]
from muster.scheduling.snapshot import Queue
from small_clusters import *
from muster.scheduling.cluster import Cluster
cluster = Cluster.of(
    levels=BLOCKS,
    nodes=[node(f"n{n}", n % 5, block=f"b{n % 2}", rack=f"r{n % 6}") for n in range(30)],
    queues=[Queue(f"q{n}", limit=9) for n in range(4)],
    gangs=[gang(f"g{n}", n % 7 + 1, n % 3, queue=f"q{n % 5}", gpu_models=()) for n in range(60)],
)
print(planned(cluster))
print(cluster.snapshot().facts())
"""
    tests = str(Path(__file__).parents[2])
    seen = {
        subprocess.run(
            [sys.executable, "-c", program, tests],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("1", "2", "3")
    }

    assert 1 == len(seen)


def test_an_audit_names_what_is_wrong():
    cluster = Cluster.of(nodes=nodes("n1"), gangs=[FULL])
    cluster._ledger.hold(Needs(1), {"n1": 1})
    cluster.upsert_queue(Queue("q"))

    (difference,) = cluster.audit()

    assert difference.startswith("free: kept {'n1': [-1, ")


def test_gangs_that_ask_the_same_share_one_question():
    same = [gang("a", 2), gang("b", 2), gang("c", 3)]
    cluster = Cluster.of(gangs=same)
    (lane,) = cluster.snapshot().pending.values()
    assert lane[0].question is lane[1].question is not lane[2].question

    cluster.remove_gang("a")
    cluster.remove_gang("b")
    cluster.upsert_gang(gang("d", 2, selector=NodeRules().selector))
    (lane,) = cluster.snapshot().pending.values()
    assert [3, 2] == [pending.question.replicas for pending in lane]


def test_a_trial_gives_back_what_was_taken_since_the_mark():
    snapshot = Cluster.of(nodes=nodes("n1", gpu_model="H100"), queues=[Queue("q")]).snapshot()
    trial = Trial(snapshot)
    trial.take("q", Needs(2), {0: 1})
    mark = trial.mark()
    trial.take("q", Needs(3), {0: 2})
    trial.give("q", Needs(2), {0: 1})
    assert 2 == trial.free[0, 0]
    assert {("q", "H100"): 6} == trial.held.by_model

    trial.rollback(mark)

    assert 6 == trial.free[0, 0]
    assert {"q": 2} == trial.held.total
    assert 6 == trial.field(Needs(1), NodeRules()).total
