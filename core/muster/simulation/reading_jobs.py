"""The jobs of a scenario, from plain mappings."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any, Final

from muster.errors import InvalidSpec
from muster.parse.raw import at
from muster.scheduling.snapshot import Gang, Needs, Node, NodeRules, TopologyRequest
from muster.simulation.entries import Entry, Names, known, seconds_of
from muster.simulation.job import Work
from muster.simulation.scenario import ScenarioJob
from muster.wire import DEFAULT_QUEUE

JOB: Final = (
    "name",
    "queue",
    "submit",
    "priority",
    "preemptible",
    "replicas",
    "minReplicas",
    "gpusPerReplica",
    "cpusPerReplica",
    "duration",
    "maxRunTime",
    "durations",
    "nodeSelector",
    "nodes",
    "topology",
    "after",
    "user",
    "suspend",
)


def read_jobs(values: Sequence[Any], names: Names) -> tuple[ScenarioJob, ...]:
    """All jobs; their order decides between jobs of the same submission time."""
    found: dict[str, ScenarioJob] = {}
    entries = [Entry(value, at("jobs", number), JOB) for number, value in enumerate(values)]
    for number, entry in enumerate(entries):
        name = entry.name("name")
        if name in found:
            raise entry.wrong("name", f"there is a job {name} already; rename one")
        gang = _gang(entry, names, number)
        after = entry.text("after")
        found[name] = ScenarioJob(entry.path, gang, _work(entry, gang), after)
    for entry, job in zip(entries, found.values(), strict=True):
        if job.after:
            _check_after(entry, job, found)
    return tuple(found.values())


def _gang(entry: Entry, names: Names, number: int) -> Gang:
    replicas = entry.whole("replicas", least=1, default=1)
    min_replicas = entry.whole("minReplicas", least=1, default=replicas)
    if min_replicas > replicas:
        raise entry.wrong(
            "minReplicas", f"must be at most replicas, which is {replicas}; is {min_replicas}"
        )
    longest = entry.seconds("maxRunTime")
    if longest == 0:
        raise entry.wrong("maxRunTime", "must be longer than 0s; leave it out if it is unknown")
    gang = Gang(
        key=entry.name("name"),
        replicas=replicas,
        min_replicas=min_replicas,
        needs=Needs(
            gpus=entry.whole("gpusPerReplica", default=1),
            cpu_millis=entry.millis("cpusPerReplica") or 0,
        ),
        submitted=entry.seconds("submit") or 0.0,
        queue=known(entry.text("queue", DEFAULT_QUEUE), names.queues, entry.at("queue"), "queue"),
        priority=entry.whole("priority", least=-(2**31)),
        is_suspended=entry.flag("suspend"),
        rules=_rules(entry),
        topology=_topology(entry, names),
        user=entry.text("user"),
        sequence=number,
        is_preemptible=entry.flag("preemptible", default=True),
        max_run_time=longest,
    )
    return replace(gang, placement=_placement(entry, gang, names)) if entry.has("nodes") else gang


def _placement(entry: Entry, gang: Gang, names: Names) -> tuple[str, ...]:
    nodes, path = entry.names("nodes"), entry.at("nodes")
    if not gang.min_replicas <= len(nodes) <= gang.replicas:
        wanted = f"{gang.replicas}"
        if gang.min_replicas < gang.replicas:
            wanted = f"{gang.min_replicas} to {gang.replicas}"
        problem = f"must name a node for each of {wanted} replicas, names {len(nodes)}"
        raise InvalidSpec(path, problem)
    for number, name in enumerate(nodes):
        known(name, names.nodes, at(path, number), "node")
        if why := _why_not(names.nodes[name], gang, nodes.count(name)):
            raise InvalidSpec(at(path, number), f"{name} {why}; choose other nodes")
    if gang.is_suspended:
        raise entry.wrong("suspend", "must be left out for a job that runs already, with nodes")
    return nodes


def _why_not(node: Node, gang: Gang, replicas: int) -> str:
    """Why so many replicas cannot run there, even alone; empty if they can."""
    rules, needs = gang.rules, gang.needs
    if rules.gpu_models and node.gpu_model not in rules.gpu_models:
        return f"has no {rules.gpu_models[0]}"
    if rules.capacity_types and node.capacity_type not in rules.capacity_types:
        return f"is not {rules.capacity_types[0]}"
    if any(node.labels.get(key) != value for key, value in rules.selector):
        return "does not match the nodeSelector"
    if needs.gpus * replicas > node.gpus:
        return f"has {node.gpus} GPUs, and {replicas} replicas of {needs.gpus} need more"
    if node.cpu_millis is not None and needs.cpu_millis * replicas > node.cpu_millis:
        return f"has too few cpus for {replicas} replicas"
    if node.pods is not None and replicas > node.pods:
        return f"takes {node.pods} pods, and {replicas} replicas are more"
    return ""


def _rules(entry: Entry) -> NodeRules:
    labels = entry.labels("nodeSelector")
    model = labels.pop("gpuModel", None)
    capacity_type = labels.pop("capacityType", None)
    return NodeRules(
        selector=tuple(sorted(labels.items())),
        gpu_models=() if model is None else (model,),
        capacity_types=() if capacity_type is None else (capacity_type,),
    )


def _topology(entry: Entry, names: Names) -> TopologyRequest:
    if not entry.has("topology"):
        return TopologyRequest()
    given = Entry(
        entry.get("topology"), entry.at("topology"), ("required", "preferred", "perPart")
    )
    part_size, part_required = None, None
    if given.has("perPart"):
        part = Entry(given.get("perPart"), given.at("perPart"), ("size", "required"))
        if not part.has("size"):
            raise part.wrong("size", "is missing: how many replicas a part has")
        part_size = part.whole("size", least=1)
        part.name("required")
        part_required = _level(part, "required", names)
    return TopologyRequest(
        required=_level(given, "required", names),
        preferred=_level(given, "preferred", names),
        part_size=part_size,
        part_required=part_required,
    )


def _level(entry: Entry, name: str, names: Names) -> str | None:
    level = entry.text(name)
    return known(level, names.levels, entry.at(name), "level") if level else None


def _work(entry: Entry, gang: Gang) -> Work:
    if not entry.has("durations"):
        seconds = entry.seconds("duration")
        return Work(inf if seconds is None else seconds)
    if entry.has("duration"):
        raise entry.wrong("durations", "must not stand beside duration; leave one of them out")
    path = entry.at("durations")
    by_rank = tuple(
        seconds_of(value, at(path, rank)) for rank, value in enumerate(entry.items("durations"))
    )
    if len(by_rank) != gang.replicas:
        problem = f"must have one for each of {gang.replicas} replicas, has {len(by_rank)}"
        raise InvalidSpec(path, problem)
    return Work(by_rank=by_rank)


def _check_after(entry: Entry, job: ScenarioJob, jobs: Mapping[str, ScenarioJob]) -> None:
    known(job.after, jobs, entry.at("after"), "job")
    seen = [job.gang.key]
    while following := jobs[seen[-1]].after:
        if following in seen:
            ring = " after ".join([*seen, following])
            raise entry.wrong("after", f"makes a ring, {ring}; leave one out")
        if following not in jobs:
            return
        seen.append(following)
