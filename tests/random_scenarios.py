"""Random scenarios with everything in them: queues in a tree, elastic and partitioned gangs, nodes
that come and go, suspensions, notices, limits. The same seed gives the same scenario.
"""

from collections.abc import Sequence
from random import Random
from typing import Any

Json = dict[str, Any]


def scenario(seed: int) -> Json:
    """A scenario as plain values."""
    dice = Random(seed)
    nodes = [_node(dice, number) for number in range(dice.randint(1, 6))]
    queues = [_queue(dice, number) for number in range(dice.randint(1, 4))]
    jobs = _running(dice, nodes, queues)
    jobs += [_job(dice, number, queues) for number in range(dice.randint(2, 14))]
    events = [_event(dice, nodes, queues, jobs) for _ in range(dice.choice([0, 0, 1, 2, 5, 8]))]
    return {
        "name": f"random-{seed}",
        "settings": _settings(dice),
        "cluster": {"levels": ["block", "rack"], "nodes": nodes},
        "queues": queues,
        "jobs": jobs,
        "events": events,
        "until": "6h",
    }


def _maybe(dice: Random, chance: float, **fields: Any) -> Json:
    return fields if dice.random() < chance else {}


def _minutes(dice: Random, least: int, most: int) -> str:
    return f"{dice.randint(least, most)}m"


def _settings(dice: Random) -> Json:
    return (
        _maybe(dice, 0.4, preemptionNotice=dice.choice(["30s", "60s", "5m"]))
        | _maybe(dice, 0.2, checkpointOnPreemption=False)
        | _maybe(dice, 0.3, usageHalfLife=dice.choice(["10m", "1h", "24h"]))
        | _maybe(dice, 0.2, reservation=False)
        | _maybe(dice, 0.3, replaceFailedNodesFor=dice.choice(["0s", "5m", "20m"]))
    )


def _node(dice: Random, number: int) -> Json:
    rack = dice.randint(1, 3)
    return (
        {"name": f"n{number}", "gpus": dice.choice([1, 2, 4, 8])}
        | {"labels": {"block": f"b{rack % 2}", "rack": f"r{rack}"}}
        | _maybe(dice, 0.4, gpuModel=dice.choice(["H100", "A100"]))
        | _maybe(dice, 0.4, capacityType=dice.choice(["spot", "on-demand"]))
        | _maybe(dice, 0.2, cpus=dice.randint(1, 8))
        | _maybe(dice, 0.2, pods=dice.randint(1, 6))
        | _maybe(dice, 0.2, badGpus=1)
    )


def _queue(dice: Random, number: int) -> Json:
    by_model = {"H100": dice.randint(0, 6), "A100": dice.randint(0, 4)}
    return (
        {"name": f"q{number}"}
        | (_maybe(dice, 0.4, parent=f"q{dice.randint(0, number - 1)}") if number else {})
        | _maybe(dice, 0.5, guaranteed=dice.choice([dice.randint(0, 8), by_model]))
        | _maybe(dice, 0.4, limit=dice.choice([dice.randint(2, 16), {"H100": 4}]))
        | _maybe(dice, 0.3, weight=dice.choice([0, 0.5, 2, 10]))
        | _maybe(dice, 0.3, order=dice.choice(["attained-service", "shortest-remaining"]))
        | _maybe(dice, 0.2, perUserLimit=dice.randint(1, 6))
        | _maybe(dice, 0.2, minRunTimeBeforePreemption=_minutes(dice, 1, 10))
        | _maybe(dice, 0.1, paused=True)
    )


def _running(dice: Random, nodes: Sequence[Json], queues: Sequence[Json]) -> list[Json]:
    """Jobs that run at the start, where there is room for them."""
    free = {
        node["name"]: node["gpus"] - node.get("badGpus", 0)
        for node in nodes
        if not {"cpus", "pods"} & set(node)
    }
    jobs = []
    for number in range(dice.randint(0, 4)):
        placement = []
        for _ in range(dice.randint(1, 3)):
            if room := [name for name, gpus in free.items() if gpus]:
                placement.append(dice.choice(room))
                free[placement[-1]] -= 1
        if placement:
            jobs.append(
                {"name": f"r{number}", "replicas": len(placement), "nodes": placement}
                | {"queue": dice.choice(queues)["name"], "priority": dice.choice([0, 0, 1])}
                | _maybe(dice, 0.7, duration=_minutes(dice, 5, 60))
                | _maybe(dice, 0.5, maxRunTime=_minutes(dice, 5, 60))
                | _maybe(dice, 0.3, minReplicas=1)
            )
    return jobs


def _job(dice: Random, number: int, queues: Sequence[Json]) -> Json:
    replicas = dice.randint(1, 6)
    return (
        {"name": f"j{number}", "queue": dice.choice(queues)["name"], "replicas": replicas}
        | {"submit": _minutes(dice, 0, 30), "gpusPerReplica": dice.choice([1, 1, 1, 2, 4])}
        | _maybe(dice, 0.3, minReplicas=dice.randint(1, replicas))
        | _maybe(dice, 0.4, priority=dice.choice([-1, 1, 5]))
        | _maybe(dice, 0.15, preemptible=False)
        | _work(dice, replicas)
        | _maybe(dice, 0.3, topology=_topology(dice))
        | _maybe(dice, 0.2, nodeSelector=_selector(dice))
        | _maybe(dice, 0.2, cpusPerReplica=dice.choice([1, 2]))
        | (_maybe(dice, 0.1, after=f"j{dice.randint(0, number - 1)}") if number else {})
        | _maybe(dice, 0.3, user=dice.choice(["ada", "bob"]))
        | _maybe(dice, 0.05, suspend=True)
    )


def _work(dice: Random, replicas: int) -> Json:
    minutes, off = dice.randint(1, 40), dice.choice([0, 0, 0, 5, -3])
    if dice.random() < 0.1:
        return {"durations": [_minutes(dice, 0, 20) for _ in range(replicas)]}
    return _maybe(dice, 0.8, duration=f"{minutes}m") | _maybe(
        dice, 0.5, maxRunTime=f"{max(1, minutes + off)}m"
    )


def _topology(dice: Random) -> Json:
    level = dice.choice(["block", "rack", "node"])
    return dice.choice(
        [
            {"required": level},
            {"preferred": level},
            {"required": "block", "preferred": "rack"},
            {"perPart": {"size": dice.randint(1, 3), "required": level}},
        ]
    )


def _selector(dice: Random) -> Json:
    return dice.choice(
        [
            {"gpuModel": dice.choice(["H100", "A100"])},
            {"capacityType": dice.choice(["spot", "on-demand"])},
        ]
    )


def _event(
    dice: Random, nodes: Sequence[Json], queues: Sequence[Json], jobs: Sequence[Json]
) -> Json:
    # Not at the very start, where a node that goes down could not hold what runs there.
    at = {"at": _minutes(dice, 1, 60)}
    kind = dice.random()
    if kind < 0.6:
        becomes = dice.choice(["down", "up", "up", "drained"])
        return at | {"node": dice.choice(nodes)["name"], "becomes": becomes}
    if kind < 0.75:
        changes: list[Json] = [
            {"limit": dice.randint(0, 10)},
            {"limit": None},
            {"paused": dice.random() < 0.5},
            {"guaranteed": dice.randint(0, 6)},
        ]
        return at | {"queue": dice.choice(queues)["name"], "set": dice.choice(changes)}
    return at | {"job": dice.choice(jobs)["name"], "set": {"suspend": dice.random() < 0.5}}
