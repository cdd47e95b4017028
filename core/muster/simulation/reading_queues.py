"""The queues of a scenario, from plain mappings."""

from collections.abc import Mapping
from typing import Any, Final

from muster.parse.raw import at
from muster.scheduling.snapshot import Order, Queue, TieBreak
from muster.simulation.entries import Entry, known
from muster.wire import DEFAULT_QUEUE

QUOTA: Final = (
    "weight",
    "guaranteed",
    "limit",
    "order",
    "perUserLimit",
    "minRunTimeBeforePreemption",
    "paused",
    "tieBreak",
)
"""The settings of a queue, which an event may change too."""


def read_queues(entry: Entry) -> tuple[Queue, ...]:
    """The queues; one named default where the scenario has none."""
    if not entry.has("queues"):
        return (Queue(DEFAULT_QUEUE),)
    found: dict[str, Queue] = {}
    entries: dict[str, Entry] = {}
    for number, value in enumerate(entry.items("queues")):
        each = Entry(value, at("queues", number), ("name", "parent", *QUOTA))
        name = each.name("name")
        if name in found:
            raise each.wrong("name", f"there is a queue {name} already; rename one")
        entries[name] = each
        found[name] = Queue(name=name, parent=each.text("parent") or None, **quota_of(each))
    for name, each in entries.items():
        _check_parents(name, each, found)
    return tuple(found.values())


def _check_parents(name: str, entry: Entry, queues: Mapping[str, Queue]) -> None:
    seen = {name}
    parent = queues[name].parent
    if parent is not None:
        known(parent, queues, entry.at("parent"), "queue")
    while parent is not None and parent in queues:
        if parent in seen:
            ring = ", ".join(sorted(seen))
            raise entry.wrong("parent", f"makes a ring of {ring}; leave out one of the parents")
        seen.add(parent)
        parent = queues[parent].parent


def quota_of(entry: Entry) -> Mapping[str, Any]:
    """The settings of a queue that are given, as fields of `Queue`."""
    fields: dict[str, Any] = {}
    for name, total, by_model in (
        ("guaranteed", "guaranteed", "guaranteed_by_model"),
        ("limit", "limit", "limit_by_model"),
    ):
        if not entry.has(name):
            continue
        is_by_model = isinstance(entry.get(name), Mapping)
        nothing = 0 if total == "guaranteed" else None
        fields[total] = nothing if is_by_model else entry.whole(name)
        fields[by_model] = entry.counts(name) if is_by_model else {}
    if entry.has("weight"):
        fields["weight"] = entry.number("weight", least=0, default=1.0)
    if (order := entry.word("order", Order)) is not None:
        fields["order"] = Order(order)
    if entry.has("perUserLimit"):
        fields["per_user_limit"] = entry.whole("perUserLimit")
    if (shield := entry.seconds("minRunTimeBeforePreemption")) is not None:
        fields["min_run_time"] = shield
    if entry.has("paused"):
        fields["is_paused"] = entry.flag("paused")
    if entry.has("tieBreak"):
        fields["tie_break"] = tuple(
            TieBreak(known(word, list(TieBreak), entry.at("tieBreak"), "tie break"))
            for word in entry.names("tieBreak")
        )
    return fields
