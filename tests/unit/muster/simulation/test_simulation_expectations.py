"""Each kind of expectation holds where it is true, and says what is true where it is not."""

import pytest

from muster.simulation.expectations import What
from playing import played

NODES = {
    "levels": ["block", "rack"],
    "nodes": [
        {"name": "n1", "gpus": 2, "labels": {"block": "b1", "rack": "r1"}},
        {"name": "n2", "gpus": 2, "labels": {"block": "b1", "rack": "r2"}},
        {"name": "n3", "gpus": 2, "labels": {"block": "b2", "rack": "r1"}},
        {"name": "n4", "gpus": 2, "badGpus": 1},
    ],
}
# v may not be evicted, so h takes the place of low; w and never wait.
JOBS = [
    {
        "name": "v",
        "replicas": 4,
        "minReplicas": 2,
        "duration": "20m",
        "nodes": ["n1", "n2", "n3", "n4"],
        "preemptible": False,
    },
    {"name": "low", "replicas": 2, "duration": "30m", "nodes": ["n1", "n2"]},
    {"name": "h", "submit": "5m", "priority": 10, "replicas": 2, "duration": "10m"},
    {"name": "w", "submit": "6m", "replicas": 4, "maxRunTime": "1h", "duration": "1h"},
    {"name": "never", "submit": "7m", "replicas": 40},
    {"name": "late", "submit": "3h", "duration": "1m"},
]
HOLDS = {
    "state": {"job": "v", "state": "Running", "at": "0s"},
    "state at the end": {"job": "v", "state": "Succeeded"},
    "startedAt": {"job": "h", "startedAt": "5m"},
    "startedAt never": {"job": "never", "startedAt": "never"},
    "finishedAt": {"job": "v", "finishedAt": "20m"},
    "finishedAt never": {"job": "never", "finishedAt": "never"},
    "evictions": {"job": "low", "evictions": 1},
    "evictions by then": {"job": "low", "evictions": 0, "at": "4m"},
    "replicasLost": {"job": "v", "replicasLost": 0},
    "replicas": {"job": "v", "replicas": 4, "at": "1m"},
    "nodes": {"job": "v", "nodes": {"n1": 1, "n2": 1, "n3": 1, "n4": 1}, "at": "1m"},
    "nodes of nobody": {"job": "w", "nodes": {}, "at": "6m"},
    "nodesWithin": {"job": "v", "nodesWithin": {"level": "block", "domains": 3}, "at": "1m"},
    "one name under two outer domains": {
        "job": "v",
        "nodesWithin": {"level": "rack", "domains": 4},
        "at": "1m",
    },
    "the level of nodes": {"job": "v", "nodesWithin": {"level": "node", "domains": 4}, "at": "1m"},
    "ranks": {"job": "v", "ranks": ["n1", "n2", "n3", "n4"], "at": "1m"},
    "ringCrossings": {"job": "v", "ringCrossings": {"level": "block", "count": 3}, "at": "1m"},
    "reason": {"job": "never", "reason": "NeverFits"},
    "predictedStart": {"job": "never", "predictedStart": "unknown"},
    "all evictions": {"evictions": 1},
    "oneOf": {"oneOf": ["v", "low"], "evictions": 1},
    "none of them": {"oneOf": ["v", "h"], "evictions": 0},
    "freeGpus": {"freeGpus": 1, "at": "0s"},
    "share": {"queue": "default", "share": 6, "at": "0s"},
    "share with a tolerance": {"queue": "default", "share": 6.4, "tolerance": 0.5, "at": "0s"},
    "several at once": {"job": "v", "state": "Running", "replicas": 4, "at": "0s"},
}
FAILS = {
    "state": (
        {"job": "v", "state": "Pending", "at": "0s"},
        "job v: state at 0s must be Pending, is Running",
    ),
    "state before the submission": (
        {"job": "h", "state": "Pending", "at": "0s"},
        "job h: state at 0s must be Pending, is not submitted",
    ),
    "startedAt": ({"job": "h", "startedAt": "6m"}, "job h: startedAt must be 6m, is 5m"),
    "started after all": (
        {"job": "h", "startedAt": "never"},
        "job h: startedAt must be never, is 5m",
    ),
    "not started": (
        {"job": "never", "startedAt": "0s"},
        "job never: startedAt must be 0s, is nev",
    ),
    "finishedAt": ({"job": "v", "finishedAt": "1h"}, "job v: finishedAt must be 1h, is 20m"),
    "evictions": ({"job": "low", "evictions": 0}, "job low: evictions must be 0, is 1"),
    "replicasLost": ({"job": "v", "replicasLost": 2}, "job v: replicasLost must be 2, is 0"),
    "replicas": ({"job": "v", "replicas": 3, "at": "0s"}, "job v: replicas at 0s must be 3, is 4"),
    "nodes": (
        {"job": "low", "nodes": {"n1": 2}, "at": "0s"},
        "job low: nodes at 0s must be {n1: 2}, is {n1: 1, n2: 1}",
    ),
    "nodesWithin": (
        {"job": "low", "nodesWithin": {"level": "rack", "domains": 1}, "at": "0s"},
        "job low: nodesWithin at 0s must be 1, is 2",
    ),
    "ranks": (
        {"job": "low", "ranks": ["n2", "n1"], "at": "0s"},
        "job low: ranks at 0s must be [n2, n1], is [n1, n2]",
    ),
    "ranks that are gone": (
        {"job": "low", "ranks": ["n1", None], "at": "0s"},
        "job low: ranks at 0s must be [n1, none], is [n1, n2]",
    ),
    "ringCrossings": (
        {"job": "low", "ringCrossings": {"level": "rack", "count": 0}, "at": "0s"},
        "job low: ringCrossings at 0s must be 0, is 2",
    ),
    "reason": (
        {"job": "never", "reason": "Fragmented"},
        "job never: reason must be Fragmented, is NeverFits",
    ),
    "reason of one that runs": (
        {"job": "v", "reason": "Fragmented", "at": "0s"},
        "job v: reason at 0s must be Fragmented, is none, it is Running",
    ),
    "reason of one that is to come": (
        {"job": "late", "reason": "Fragmented", "at": "0s"},
        "job late: reason at 0s must be Fragmented, is none, it is not submitted",
    ),
    "predictedStart": (
        {"job": "never", "predictedStart": "1h"},
        "job never: predictedStart must be 1h, is unknown",
    ),
    "predictedStart of one that runs": (
        {"job": "v", "predictedStart": "1h", "at": "0s"},
        "job v: predictedStart at 0s must be 1h, is none, it is Running",
    ),
    "all evictions": ({"evictions": 0}, "evictions must be 0, is 1"),
    "oneOf": (
        {"oneOf": ["v", "h"], "evictions": 1},
        "jobs v, h, each at most once: evictions must be 1, is 0",
    ),
    "freeGpus": ({"freeGpus": 2, "at": "0s"}, "freeGpus at 0s must be 2, is 1"),
    "share": (
        {"queue": "default", "share": 6.6, "tolerance": 0.5, "at": "0s"},
        "queue default: share at 0s must be 6.6, is 6",
    ),
}


def checked(*lines):
    return played(cluster=NODES, jobs=JOBS, expect=list(lines))


@pytest.mark.parametrize("claim", HOLDS)
def test_it_holds(claim):
    assert () == checked(HOLDS[claim]).shortfalls


@pytest.mark.parametrize("claim", FAILS)
def test_it_fails_and_says_why(claim):
    line, message = FAILS[claim]

    (shortfall,) = checked(line).shortfalls

    assert ("expect[0]", message) == (shortfall.path, shortfall.message[: len(message)])


def test_every_kind_can_fail():
    of_lines = {key for line, _ in FAILS.values() for key in line}
    assert {what.value for what in What} <= of_lines


def test_failures_come_in_the_order_of_the_file():
    found = checked({"evictions": 7}, {"evictions": 1}, {"freeGpus": 7, "at": "0s"})

    assert ["expect[0]", "expect[2]"] == [each.path for each in found.shortfalls]


def test_one_job_evicted_twice_is_not_two_jobs():
    found = played(
        jobs=[
            {"name": "low", "gpusPerReplica": 8},
            {"name": "b", "submit": "1m", "priority": 1, "gpusPerReplica": 8, "duration": "1m"},
            {"name": "c", "submit": "3m", "priority": 1, "gpusPerReplica": 8, "duration": "1m"},
        ],
        until="1h",
        expect=[{"oneOf": ["low", "b"], "evictions": 2}],
    )

    (shortfall,) = found.shortfalls
    assert "must be 2, is 2, of one job 2" in shortfall.message
