"""The order of things at one instant, the work of jobs, and what is fed without a file."""

import pytest

from muster.errors import InvalidSpec
from muster.simulation.job import State
from muster.simulation.outcome import outcome_of
from muster.simulation.play import play
from muster.simulation.reading import scenario_of
from playing import TWO_NODES, played, scenario, story

FULL = {"gpusPerReplica": 8}
STORIES = {
    "a completion makes room for a submission of the same instant": (
        {
            "jobs": [
                {"name": "a", "duration": "10m", **FULL},
                {"name": "b", "submit": "10m", "duration": "1m", **FULL},
            ]
        },
        [
            (0, "a", "submitted"),
            (0, "a", "started"),
            (600, "a", "finished"),
            (600, "b", "submitted"),
            (600, "b", "started"),
            (660, "b", "finished"),
        ],
    ),
    "a node that goes down takes what would have ended then": (
        {
            "settings": {"replaceFailedNodesFor": "1h"},
            "jobs": [{"name": "a", "duration": "10m", "nodes": ["n1"], **FULL}],
            "events": [
                {"at": "10m", "node": "n1", "becomes": "down"},
                {"at": "11m", "node": "n1", "becomes": "up"},
            ],
        },
        [
            (0, "a", "submitted"),
            (0, "a", "started"),
            (600, "a", "replica-lost"),
            (660, "a", "replica-replaced"),
            (660, "a", "finished"),
        ],
    ),
    "what ends at the instant of its start makes room in it": (
        {
            "jobs": [
                {"name": "a", "duration": "0s", **FULL},
                {"name": "b", "duration": "0s", **FULL},
            ]
        },
        [
            (0, "a", "submitted"),
            (0, "b", "submitted"),
            (0, "a", "started"),
            (0, "a", "finished"),
            (0, "b", "started"),
            (0, "b", "finished"),
        ],
    ),
    "work stands still while a gang lacks replicas": (
        {
            "cluster": TWO_NODES,
            "jobs": [
                {"name": "a", "replicas": 2, "duration": "10m", "nodes": ["n1", "n2"], **FULL}
            ],
            "events": [
                {"at": "5m", "node": "n2", "becomes": "down"},
                {"at": "5m30s", "node": "n2", "becomes": "up"},
            ],
        },
        [
            (0, "a", "submitted"),
            (0, "a", "started"),
            (300, "a", "replica-lost"),
            (330, "a", "replica-replaced"),
            (630, "a", "finished"),
        ],
    ),
    "a gang that is not repaired in time is requeued whole": (
        {
            "cluster": TWO_NODES,
            "jobs": [
                {"name": "a", "replicas": 2, "duration": "10m", "nodes": ["n1", "n2"], **FULL}
            ],
            "events": [
                {"at": "5m", "node": "n2", "becomes": "down"},
                {"at": "10m", "node": "n2", "becomes": "up"},
            ],
        },
        [
            (0, "a", "submitted"),
            (0, "a", "started"),
            (300, "a", "replica-lost"),
            (360, "a", "requeued"),
            (600, "a", "started"),
            (900, "a", "finished"),
        ],
    ),
    "a victim is asked before it leaves": (
        {
            "settings": {"preemptionNotice": "30s"},
            "jobs": [
                {"name": "v", "duration": "10m", **FULL},
                {"name": "h", "submit": "5m", "priority": 1, "duration": "1m", **FULL},
            ],
        },
        [
            (0, "v", "submitted"),
            (0, "v", "started"),
            (300, "h", "submitted"),
            (300, "v", "preempting"),
            (330, "v", "evicted"),
            (330, "h", "started"),
            (390, "h", "finished"),
            (390, "v", "started"),
            (660, "v", "finished"),
        ],
    ),
    "a suspended job leaves, and goes on": (
        {
            "jobs": [{"name": "a", "duration": "10m"}],
            "events": [
                {"at": "5m", "job": "a", "set": {"suspend": True}},
                {"at": "8m", "job": "a", "set": {"suspend": False}},
            ],
        },
        [
            (0, "a", "submitted"),
            (0, "a", "started"),
            (300, "a", "suspended"),
            (480, "a", "started"),
            (780, "a", "finished"),
        ],
    ),
    "a job may be resumed before it comes": (
        {
            "jobs": [{"name": "a", "submit": "5m", "suspend": True, "duration": "1m"}],
            "events": [{"at": "1m", "job": "a", "set": {"suspend": False}}],
        },
        [(300, "a", "submitted"), (300, "a", "started"), (360, "a", "finished")],
    ),
    "a drained node gives its replica to another": (
        {
            "cluster": TWO_NODES,
            "jobs": [{"name": "a", "duration": "10m", "nodes": ["n1"]}],
            "events": [{"at": "5m", "node": "n1", "becomes": "drained"}],
        },
        [
            (0, "a", "submitted"),
            (0, "a", "started"),
            (300, "a", "replica-lost"),
            (300, "a", "replica-replaced"),
            (600, "a", "finished"),
        ],
    ),
    "surplus grows at the start in the same event": (
        {"jobs": [{"name": "a", "replicas": 8, "minReplicas": 2, "duration": "1m"}]},
        [(0, "a", "submitted"), (0, "a", "started"), (60, "a", "finished")],
    ),
    "surplus is taken and given back": (
        {
            "jobs": [
                {"name": "a", "replicas": 8, "minReplicas": 2, "duration": "10m"},
                {"name": "b", "submit": "1m", "replicas": 4, "duration": "1m"},
            ]
        },
        [
            (0, "a", "submitted"),
            (0, "a", "started"),
            (60, "b", "submitted"),
            (60, "a", "shrunk"),
            (60, "b", "started"),
            (120, "b", "finished"),
            (120, "a", "grown"),
            (600, "a", "finished"),
        ],
    ),
}


@pytest.mark.parametrize("claim", STORIES)
def test_it_happens_in_that_order(claim):
    parts, want = STORIES[claim]

    found = played(**parts)

    assert (want, ()) == (story(found), found.violations)


def test_the_outcome_is_one_object():
    found = outcome_of(
        played(
            jobs=[
                {"name": "v", "gpusPerReplica": 8, "duration": "10m"},
                {"name": "h", "submit": "5m", "priority": 1, "gpusPerReplica": 8},
                {"name": "w", "submit": "6m"},
            ],
            until="10m",
        )
    )

    assert ("test", 600.0, 1, 1.0) == tuple(
        found[key] for key in ("name", "end", "evictions", "utilization")
    )
    assert found["jobs"]["v"] | {"message": "…"} == {
        "state": "Pending",
        "queue": "default",
        "submitted": 0.0,
        "starts": [0.0],
        "finished": None,
        "evictions": 1,
        "replicasLost": 0,
        "placement": [],
        "reason": "InsufficientCapacity",
        "message": "…",
    }
    assert (None, "", ["n1"]) == tuple(
        found["jobs"]["h"][key] for key in ("reason", "message", "placement")
    )
    assert found["timeline"][3] == {
        "at": 300.0,
        "job": "v",
        "event": "evicted",
        "replicas": 0,
        "placement": [],
        "by": "h",
    }


def test_it_ends_when_nothing_can_change_any_more():
    found = played(jobs=[{"name": "a", "duration": "10m"}, {"name": "b"}])

    assert (600.0, State.RUNNING) == (found.end, found.simulation.jobs["b"].state)


def test_utilization_counts_nodes_that_are_up():
    found = played(
        cluster=TWO_NODES,
        jobs=[{"name": "a", "submit": "10m", "gpusPerReplica": 8, "duration": "20m"}],
        events=[{"at": "20m", "node": "n2", "becomes": "down"}],
    )

    # 20 minutes of 8 GPUs, of 10 minutes with 16 and 10 with 8.
    assert 20 * 8 / (10 * 16 + 10 * 8) == pytest.approx(found.utilization)


def test_it_can_be_ended_early():
    whole = scenario_of(
        scenario(
            jobs=[{"name": "a", "duration": "10m"}],
            expect=[{"freeGpus": 7, "at": "1m"}, {"freeGpus": 0, "at": "9m"}],
        )
    )

    found = play(whole, until=300.0)

    assert (300.0, (), 1) == (found.end, found.shortfalls, found.skipped)


def test_a_job_that_cannot_run_there_already_is_refused_with_its_place():
    with pytest.raises(InvalidSpec) as refused:
        played(jobs=[{"name": "a", **FULL}, {"name": "b", "submit": "1m", "nodes": ["n1"]}])

    problem = "jobs[1].nodes: n1 has no room for it at 1m; choose other nodes"
    assert problem == str(refused.value)
