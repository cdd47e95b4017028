"""A scenario is read from plain mappings."""

from math import inf

import pytest

from muster.errors import InvalidSpec
from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import Level, NodeRules, Order, Queue, TopologyRequest
from muster.simulation.entries import duration_of, seconds_of
from muster.simulation.job import Work
from muster.simulation.reading import scenario_of
from muster.simulation.scenario import JobEvent, NodeEvent, QueueEvent
from muster.simulation.world import Becomes
from playing import scenario

DURATIONS = {
    "0s": 0.0,
    "90s": 90.0,
    "5m": 300.0,
    "1h30m": 5400.0,
    "1d": 86_400.0,
    "1.5h": 5400.0,
    "250ms": 0.25,
    "1m0.5s": 60.5,
    0: 0.0,
}


@pytest.mark.parametrize("text", DURATIONS)
def test_a_duration_is_read(text):
    assert DURATIONS[text] == seconds_of(text, "")


@pytest.mark.parametrize("text", ["", "5", "-5s", "5 m", "m", "1h-30m", "½h", None, True, [], 5.5])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(InvalidSpec, match="must be a duration"):
        seconds_of(text, "a")


WORDS = {0.0: "0s", 90.0: "1m30s", 5400.0: "1h30m", 0.25: "0.25s", 90_000.0: "25h", -60.0: "-1m"}


@pytest.mark.parametrize("seconds", WORDS)
def test_a_duration_is_told(seconds):
    assert WORDS[seconds] == duration_of(seconds)


def test_what_is_left_out_has_its_default():
    found = scenario_of({"name": "x", "jobs": [{"name": "a"}]})

    (job,) = found.jobs
    assert (1, 1, 1, 0.0, 0, True, "default") == (
        job.gang.replicas,
        job.gang.min_replicas,
        job.gang.needs.gpus,
        job.gang.submitted,
        job.gang.priority,
        job.gang.is_preemptible,
        job.gang.queue,
    )
    assert (None, Work(inf), "") == (job.gang.placement, job.work, job.after)
    assert (Queue("default"),) == found.queues
    assert Policy(leaves_at_once=True) == found.settings.policy


def test_settings_are_the_knobs_of_the_core():
    found = scenario_of(
        scenario(
            settings={
                "reservation": False,
                "preemptionNotice": "30s",
                "checkpointOnPreemption": False,
                "usageHalfLife": "1h",
                "replaceFailedNodesFor": "0s",
            }
        )
    )

    assert not found.settings.keeps_work
    assert found.settings.policy == Policy(
        reservation=False,
        leaves_at_once=False,
        notice=30.0,
        usage_half_life=3600.0,
        replace_failed_for=0.0,
    )


def test_nodes_and_queues_are_read():
    found = scenario_of(
        scenario(
            cluster={
                "levels": ["block", "rack"],
                "nodes": [
                    {"count": 2, "prefix": "w", "gpus": 8, "badGpus": 1, "labels": {"rack": 1}},
                    {"name": "n", "gpus": 0, "gpuModel": "H100", "capacityType": "spot"},
                    {"name": "c", "gpus": 1, "cpus": 1.5, "pods": 110},
                ],
            },
            queues=[
                {"name": "q", "guaranteed": {"H100": 8}, "limit": {"H100": 16}},
                {"name": "r", "parent": "q", "weight": 0.5, "guaranteed": 4, "limit": 8},
                {
                    "name": "s",
                    "order": "attained-service",
                    "perUserLimit": 2,
                    "minRunTimeBeforePreemption": "1m",
                    "paused": True,
                    "tieBreak": ["spot"],
                },
            ],
        )
    )

    assert (Level("block", "block"), Level("rack", "rack")) == found.levels
    assert ["w1", "w2", "n", "c"] == [node.name for node in found.nodes]
    assert (7, 1, {"rack": "1"}) == (
        found.nodes[0].gpus,
        found.nodes[0].bad_gpus,
        found.nodes[0].labels,
    )
    assert ("H100", "spot") == (found.nodes[2].gpu_model, found.nodes[2].capacity_type)
    assert (1500, 110) == (found.nodes[3].cpu_millis, found.nodes[3].pods)
    q, r, s = found.queues
    assert (0, {"H100": 8}, None, {"H100": 16}) == (
        q.guaranteed,
        q.guaranteed_by_model,
        q.limit,
        q.limit_by_model,
    )
    assert ("q", 0.5, 4, 8) == (r.parent, r.weight, r.guaranteed, r.limit)
    assert (Order.ATTAINED_SERVICE, 2, 60.0, True, ("spot",)) == (
        s.order,
        s.per_user_limit,
        s.min_run_time,
        s.is_paused,
        s.tie_break,
    )


def test_jobs_and_events_are_read():
    found = scenario_of(
        scenario(
            cluster={"levels": ["rack"], "nodes": [{"name": "n1", "gpus": 8}]},
            jobs=[
                {
                    "name": "a",
                    "replicas": 4,
                    "minReplicas": 2,
                    "nodes": ["n1", "n1"],
                    "topology": {
                        "required": "rack",
                        "preferred": "node",
                        "perPart": {"size": 2, "required": "node"},
                    },
                    "durations": ["1s", "2s", "3s", "4s"],
                    "maxRunTime": "1h",
                    "user": "ada",
                },
                {
                    "name": "b",
                    "after": "a",
                    "priority": -5,
                    "preemptible": False,
                    "cpusPerReplica": 2,
                    "nodeSelector": {"gpuModel": "H100", "capacityType": "spot", "zone": "z"},
                },
            ],
            events=[
                {"at": "1m", "node": "n1", "becomes": "drained"},
                {"at": "2m", "queue": "default", "set": {"limit": 4, "paused": True}},
                {"at": "3m", "job": "b", "set": {"suspend": False}},
                {"at": "4m", "queue": "default", "set": {"limit": None, "perUserLimit": None}},
            ],
        )
    )

    a, b = found.jobs
    assert (("n1", "n1"), "ada", 3600.0) == (a.gang.placement, a.gang.user, a.gang.max_run_time)
    assert TopologyRequest("rack", "node", 2, "node") == a.gang.topology
    assert Work(by_rank=(1.0, 2.0, 3.0, 4.0)) == a.work
    assert ("a", -5, False, 2000) == (
        b.after,
        b.gang.priority,
        b.gang.is_preemptible,
        b.gang.needs.cpu_millis,
    )
    rules = NodeRules((("zone", "z"),), gpu_models=("H100",), capacity_types=("spot",))
    assert (rules, 0, 1) == (b.gang.rules, a.gang.sequence, b.gang.sequence)
    assert found.events == (
        NodeEvent(60.0, "n1", Becomes.DRAINED),
        QueueEvent(120.0, "default", {"limit": 4, "limit_by_model": {}, "is_paused": True}),
        JobEvent(180.0, "b", is_suspended=False),
        QueueEvent(
            240.0, "default", {"limit": None, "limit_by_model": {}, "per_user_limit": None}
        ),
    )
