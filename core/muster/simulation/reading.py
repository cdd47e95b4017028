"""A scenario from plain mappings, as YAML or JSON gives them. Raises `InvalidSpec` with a path.

What is read here: the whole, the settings and the cluster; the other `reading_` modules read the
rest.
"""

from collections.abc import Iterable
from typing import Final

from muster.errors import InvalidSpec
from muster.parse.raw import at
from muster.scheduling.snapshot import NODE_LEVEL, Level, Node
from muster.simulation.entries import Entry, Names
from muster.simulation.reading_events import read_events
from muster.simulation.reading_expect import read_expectations
from muster.simulation.reading_jobs import read_jobs
from muster.simulation.reading_queues import read_queues
from muster.simulation.scenario import Scenario, Settings
from muster.wire import DEFAULT_QUEUE

FIELDS: Final = (
    "name",
    "about",
    "settings",
    "cluster",
    "queues",
    "jobs",
    "events",
    "until",
    "expect",
)
SETTINGS: Final = (
    "reservation",
    "preemptionNotice",
    "checkpointOnPreemption",
    "usageHalfLife",
    "replaceFailedNodesFor",
)
NODE: Final = (
    "name",
    "count",
    "prefix",
    "gpus",
    "labels",
    "gpuModel",
    "capacityType",
    "cpus",
    "pods",
    "badGpus",
)
_CAPACITY_TYPES: Final = ("spot", "on-demand")
_NODES_MAX: Final = 100_000


def scenario_of(value: object) -> Scenario:
    """The scenario that *value* describes. Raises `InvalidSpec`."""
    entry = Entry(value, "", FIELDS)
    name = entry.name("name")
    cluster = Entry(entry.get("cluster") or {}, "cluster", ("levels", "nodes"))
    levels = _levels(cluster)
    nodes = _nodes(cluster)
    queues = read_queues(entry)
    names = Names(
        levels=(*(level.name for level in levels), NODE_LEVEL),
        nodes={node.name: node for node in nodes},
        queues=tuple(dict.fromkeys((*(queue.name for queue in queues), DEFAULT_QUEUE))),
    )
    jobs = read_jobs(entry.items("jobs"), names)
    until = entry.seconds("until")
    names = names.with_jobs(job.gang.key for job in jobs)
    return Scenario(
        name=name,
        about=entry.text("about"),
        settings=_settings(entry),
        levels=levels,
        nodes=nodes,
        queues=queues,
        jobs=jobs,
        events=read_events(entry.items("events"), names),
        until=until,
        expect=read_expectations(entry.items("expect"), names, until),
    )


def _settings(entry: Entry) -> Settings:
    given = Entry(entry.get("settings") or {}, "settings", SETTINGS)
    default = Settings()
    return Settings(
        reservation=given.flag("reservation", default=default.reservation),
        notice=given.seconds("preemptionNotice") or default.notice,
        keeps_work=given.flag("checkpointOnPreemption", default=default.keeps_work),
        usage_half_life=given.seconds("usageHalfLife") or default.usage_half_life,
        replace_failed_for=_or(given.seconds("replaceFailedNodesFor"), default.replace_failed_for),
    )


def _levels(cluster: Entry) -> tuple[Level, ...]:
    found: list[Level] = []
    for number, name in enumerate(cluster.names("levels")):
        path = at("cluster.levels", number)
        if name == NODE_LEVEL:
            raise InvalidSpec(path, "must not be node, which is always the last level; remove it")
        if any(name == level.name for level in found):
            raise InvalidSpec(path, f"{name} is there twice; remove one")
        found.append(Level(name=name, label=name))
    return tuple(found)


def _nodes(cluster: Entry) -> tuple[Node, ...]:
    found: dict[str, Node] = {}
    for number, value in enumerate(cluster.items("nodes")):
        entry = Entry(value, at("cluster.nodes", number), NODE)
        for name in _node_names(entry):
            if name in found:
                field = "name" if entry.has("name") else "prefix"
                raise entry.wrong(field, f"there is a node {name} already; rename one")
            found[name] = _node(entry, name)
            if len(found) > _NODES_MAX:
                raise entry.wrong("count", f"must not make more than {_NODES_MAX} nodes in all")
    return tuple(found.values())


def _node_names(entry: Entry) -> Iterable[str]:
    if entry.has("name") == entry.has("prefix"):
        raise InvalidSpec(entry.path, "must have either a name, or a prefix and a count")
    if entry.has("name"):
        if entry.has("count"):
            raise entry.wrong("count", "goes with a prefix; a name is for one node")
        return (entry.name("name"),)
    if not entry.has("count"):
        raise entry.wrong("count", "is missing: how many nodes with this prefix there are")
    prefix, count = entry.name("prefix"), entry.whole("count", least=1)
    return (f"{prefix}{number}" for number in range(1, count + 1))


def _node(entry: Entry, name: str) -> Node:
    if not entry.has("gpus"):
        raise entry.wrong("gpus", "is missing: how many GPUs a node has; 0 for none")
    gpus, bad_gpus = entry.whole("gpus"), entry.whole("badGpus")
    if bad_gpus > gpus:
        raise entry.wrong("badGpus", f"must be at most gpus, which is {gpus}; is {bad_gpus}")
    return Node(
        name=name,
        gpus=gpus - bad_gpus,
        bad_gpus=bad_gpus,
        labels=entry.labels("labels"),
        gpu_model=entry.text("gpuModel") or None,
        capacity_type=entry.word("capacityType", _CAPACITY_TYPES),
        cpu_millis=entry.millis("cpus"),
        pods=entry.whole("pods") if entry.has("pods") else None,
    )


def _or(value: float | None, default: float) -> float:
    return default if value is None else value
