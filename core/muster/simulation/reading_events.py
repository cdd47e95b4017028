"""The events of a scenario, from plain mappings."""

from collections.abc import Sequence
from typing import Any

from muster.errors import InvalidSpec
from muster.parse.raw import at
from muster.simulation.entries import Entry, Names, known
from muster.simulation.reading_queues import QUOTA, quota_of
from muster.simulation.scenario import JobEvent, NodeEvent, QueueEvent, ScenarioEvent
from muster.simulation.world import Becomes


def read_events(values: Sequence[Any], names: Names) -> tuple[ScenarioEvent, ...]:
    """All events, in their own order."""
    return tuple(_event(value, at("events", number), names) for number, value in enumerate(values))


def _event(value: object, path: str, names: Names) -> ScenarioEvent:
    entry = Entry(value, path, ("at", "node", "becomes", "queue", "job", "set"))
    if not entry.has("at"):
        raise entry.wrong("at", "is missing: when it happens")
    when = entry.seconds("at") or 0.0
    subjects = [name for name in ("node", "queue", "job") if entry.has(name)]
    if len(subjects) != 1:
        raise InvalidSpec(path, "must be about one of node, queue and job")
    deed, other = ("becomes", "set") if subjects == ["node"] else ("set", "becomes")
    if not entry.has(deed):
        raise entry.wrong(deed, f"is missing: what happens to the {subjects[0]}")
    if entry.has(other):
        raise entry.wrong(other, f"is not for a {subjects[0]}; leave it out")
    name = entry.name(subjects[0])
    if subjects == ["node"]:
        known(name, names.nodes, entry.at("node"), "node")
        becomes = entry.word("becomes", Becomes)
        return NodeEvent(when, name, Becomes(str(becomes)))
    if subjects == ["queue"]:
        known(name, names.queues, entry.at("queue"), "queue")
        return QueueEvent(when, name, quota_of(Entry(entry.get("set"), entry.at("set"), QUOTA)))
    known(name, names.jobs, entry.at("job"), "job")
    given = Entry(entry.get("set"), entry.at("set"), ("suspend",))
    if not given.has("suspend"):
        raise given.wrong("suspend", "is missing: true or false")
    return JobEvent(when, name, given.flag("suspend"))
