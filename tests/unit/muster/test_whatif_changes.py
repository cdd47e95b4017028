"""The smallest changes that would start a job now: each is one that does."""

import pytest
from hypothesis import given

from driving import Drive
from muster.scheduling.cluster import Cluster, Objects
from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import Queue, Run
from muster.whatif.changes import changes
from muster.whatif.limits import lowest_limits
from muster.whatif.trying import Trying, Variant
from random_clusters import tried
from random_worlds import World, worlds
from small_clusters import BLOCKS, BY_MODEL, MODELS, gang, holding, node, nodes

RACKS = [*nodes("n1 n2", rack="r1", block="b1"), *nodes("n3 n4", rack="r2", block="b1")]
FULL = holding(gang("t/x", 8, is_preemptible=False), " ".join(["n1"] * 8))
HOUR = Run(started=0.0)


def suggested(things, policy=None):
    """What is suggested for `t/a`, with the patches of the job and of queues."""
    told = {"levels": BLOCKS, "nodes": [], "queues": [], "gangs": []}
    for thing in things:
        told[f"{type(thing).__name__.lower()}s"].append(thing)
    found = changes(Cluster.of(**told).objects(), policy or Policy(), 0.0, "t/a")
    return {change.what: {edit.name: dict(edit.spec) for edit in change.edits} for change in found}


CASES = {
    "nothing, where it starts as it is": ([node("n1"), gang("t/a", 8)], {}),
    "the most replicas that fit": (
        [*nodes("n1 n2"), FULL, gang("t/a", 20)],
        {"ask for 8 in place of 20 replicas": {"t/a": {"replicas": 8, "minReplicas": 8}}},
    ),
    "an elastic job starts smaller": (
        [node("n1"), gang("t/a", 20, min_replicas=10)],
        {"let it start with 8 in place of 10 replicas": {"t/a": {"minReplicas": 8}}},
    ),
    "the next wider level": (
        [*RACKS, gang("t/a", 32, required="rack", min_replicas=32)],
        {
            "ask for 16 in place of 32 replicas": {"t/a": {"replicas": 16, "minReplicas": 16}},
            "let it lie within one block in place of one rack": {
                "t/a": {"topology": {"required": "block"}}
            },
        },
    ),
    "no level, where the wider ones do not help": (
        [*RACKS, node("n5", rack="r3", block="b2"), gang("t/a", 40, required="block")],
        {
            "ask for 32 in place of 40 replicas": {"t/a": {"replicas": 32, "minReplicas": 32}},
            "let it only prefer one block": {
                "t/a": {"topology": {"required": None, "preferred": "block"}}
            },
        },
    ),
    "a level that there is not is left out": (
        [node("n1"), gang("t/a", 8, required="moon")],
        {
            "let it lie within one node in place of one moon": {
                "t/a": {"topology": {"required": "node"}}
            }
        },
    ),
    "parts within wider levels": (
        [*RACKS, gang("t/a", 24, part_size=24, part_required="rack")],
        {
            "ask for 16 in place of 24 replicas": {"t/a": {"replicas": 16, "minReplicas": 16}},
            "let each part lie within one block in place of one rack": {
                "t/a": {"topology": {"perPart": {"required": "block"}}}
            },
        },
    ),
    "another GPU model, one more before any": (
        [*MODELS, gang("t/a", 18, gpu_models=("H100",), min_replicas=18)],
        {
            "ask for 16 in place of 18 replicas": {"t/a": {"replicas": 16, "minReplicas": 16}},
            "also allow A100": {"t/a": {"gpuModels": ["H100", "A100"]}},
        },
    ),
    "capacity of any type": (
        [node("n1", capacity_type="spot"), gang("t/a", 1, capacity_types=("on-demand",))],
        {"allow any capacity type": {"t/a": {"capacityTypes": None}}},
    ),
    "nodes with any labels": (
        [node("n1"), gang("t/a", 1, selector=(("zone", "x"),))],
        {
            "drop its node selector and node affinity": {
                "t/a": {
                    "template": {
                        "spec": {"nodeSelector": None, "affinity": {"nodeAffinity": None}}
                    }
                }
            }
        },
    ),
    "all limits on the way, each as far as needed": (
        [
            *nodes("n1 n2"),
            Queue("o", limit=7),
            Queue("q", parent="o", limit=4),
            gang("t/a", 8, queue="q", min_replicas=8),
        ],
        {
            "ask for 4 in place of 8 replicas": {"t/a": {"replicas": 4, "minReplicas": 4}},
            "raise the limit of queue q from 4 to 8 GPUs and raise the limit of queue o from 7 to "
            "8 GPUs": {"q": {"limit": 8}, "o": {"limit": 8}},
        },
    ),
    "the limit of one model": (
        [*MODELS, *BY_MODEL, gang("t/a", 9, queue="q", gpu_models=("H100",))],
        {
            "ask for 8 in place of 9 replicas": {"t/a": {"replicas": 8, "minReplicas": 8}},
            "raise the limit on H100 of queue q from 8 to 9 GPUs": {"q": {"limit": {"H100": 9}}},
        },
    ),
    "the limit of each user": (
        [
            node("n1"),
            Queue("q", per_user_limit=3),
            holding(gang("t/x", 2, queue="q", user="ada"), "n1 n1"),
            gang("t/a", 2, queue="q", user="ada"),
        ],
        {
            "ask for 1 in place of 2 replicas": {"t/a": {"replicas": 1, "minReplicas": 1}},
            "raise the limit for each user of queue q from 3 to 4 GPUs": {
                "q": {"perUserLimit": 4}
            },
        },
    ),
    "what was stopped goes on": (
        [node("n1"), Queue("q", is_paused=True), gang("t/a", 1, queue="q", is_suspended=True)],
        {"resume the job and resume queue q": {"t/a": {"suspend": False}, "q": {"paused": False}}},
    ),
    "what waits for another job need not": (
        [node("n1"), gang("t/a", 1, held_back="waits for t/b")],
        {"let it not come after another job": {"t/a": {"after": None}}},
    ),
    "what is stopped and too large is told both": (
        [node("n1"), gang("t/a", 9, is_suspended=True)],
        {
            "resume the job and ask for 8 in place of 9 replicas": {
                "t/a": {"suspend": False, "replicas": 8, "minReplicas": 8}
            }
        },
    ),
    "what only a reservation keeps out may backfill": (
        [
            *nodes("n1 n2"),
            holding(gang("t/x", 8, max_run_time=3600.0, run=HOUR), " ".join(["n1"] * 8)),
            gang("t/big", 16, submitted=1.0),
            gang("t/a", 1, submitted=2.0, is_preemptible=False),
        ],
        {
            "let it be preemptible": {"t/a": {"preemptible": True}},
            "declare a maxRunTime of 1h": {"t/a": {"maxRunTime": "3600s"}},
        },
    ),
}


@pytest.mark.parametrize("claim", CASES)
def test_suggested_is(claim):
    things, want = CASES[claim]

    assert want == suggested(things)


def test_two_changes_are_told_where_no_single_one_is_enough():
    spot = nodes("n1 n2", 4, capacity_type="spot")
    asked = gang("t/a", 12, capacity_types=("on-demand",))

    assert {
        "allow any capacity type and ask for 8 in place of 12 replicas": {
            "t/a": {"capacityTypes": None, "replicas": 8, "minReplicas": 8}
        }
    } == suggested([*spot, asked])


def test_who_would_have_to_leave_is_told():
    running = [holding(gang("t/x", 8), " ".join(["n1"] * 8)), gang("t/a", 9, priority=1)]
    cluster = Cluster.of(nodes=nodes("n1"), gangs=running)
    (change,) = changes(cluster.objects(), Policy(notice=30.0), 0.0, "t/a")

    assert ("ask for 8 in place of 9 replicas", ["t/x"]) == (
        change.what,
        [victim.gang for victim in change.victims],
    )


def test_parts_and_a_level_around_them_may_have_to_go_together():
    apart = [node("n1", 4, rack="r1", block="b1"), node("n2", 4, rack="r2", block="b2")]
    asked = gang("t/a", 8, required="block", part_size=8, part_required="rack")

    assert suggested([*apart, asked])["require no level at all"] == {
        "t/a": {"topology": {"required": None, "perPart": None}}
    }


def test_a_limit_is_not_told_where_time_ran_out_before_it_was_found():
    things = Cluster.of(
        nodes=nodes("n1"), queues=[Queue("q", limit=4)], gangs=[gang("t/a", 8, queue="q")]
    )
    tries = iter([True, True, False])
    trying = Trying(things.objects(), Policy(), 0.0, goes_on=lambda: next(tries))
    quotas = trying.cluster.snapshot().quotas

    assert lowest_limits(Variant(trying.gangs["t/a"]), trying, quotas) is None
    assert trying.gave_up


def test_a_job_that_runs_needs_no_change():
    assert {} == suggested([node("n1"), holding(gang("t/a", 1), "n1")])


def starts(objects: Objects, policy: Policy, now: float, key: str) -> bool:
    """Whether a driver that knows nothing of this package starts the job in that cluster."""
    told = World(objects.nodes, objects.queues, objects.gangs, objects.foreign, policy, now)
    drive = Drive(told)
    drive.cluster = Cluster.restored(objects)
    drive.settle()
    return drive.gangs[key].placement is not None


@given(worlds())
@tried(100)
def test_each_change_that_is_made_starts_the_job(world):
    policy = Policy(
        leaves_at_once=True,
        reservation=world.policy.reservation,
        usage_half_life=world.policy.usage_half_life,
        restart_time=world.policy.restart_time,
    )
    drive = Drive(World(world.nodes, world.queues, world.gangs, world.foreign, policy, world.now))
    waiting = [wait.gang for wait in drive.settle().waiting]
    objects = drive.cluster.objects()
    # Two of them, so that more worlds are seen.
    for key in waiting[:2]:
        assert not starts(objects, policy, drive.now, key)
        for change in changes(objects, policy, drive.now, key):
            assert change.starts
            assert change.what
            assert starts(change.objects, policy, drive.now, key), change.what
