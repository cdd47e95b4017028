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
    """The settings of a queue that are given, as fields of `Queue`; an empty limit is none."""
    fields: dict[str, Any] = {**_limits_of(entry)}
    if entry.has("weight"):
        fields["weight"] = entry.number("weight", least=0, default=1.0)
    if (order := entry.word("order", Order)) is not None:
        fields["order"] = Order(order)
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


def _limits_of(entry: Entry) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if entry.names_field("guaranteed"):
        fields["guaranteed"] = _total(entry, "guaranteed") or 0
        fields["guaranteed_by_model"] = _by_model(entry, "guaranteed")
    if entry.names_field("limit"):
        fields["limit"] = _total(entry, "limit")
        fields["limit_by_model"] = _by_model(entry, "limit")
    if entry.names_field("perUserLimit"):
        fields["per_user_limit"] = _total(entry, "perUserLimit")
    return fields


def _total(entry: Entry, name: str) -> int | None:
    is_total = entry.has(name) and not _is_by_model(entry, name)
    return entry.whole(name) if is_total else None


def _by_model(entry: Entry, name: str) -> dict[str, int]:
    return entry.counts(name) if _is_by_model(entry, name) else {}


def _is_by_model(entry: Entry, name: str) -> bool:
    return name != "perUserLimit" and isinstance(entry.get(name), Mapping)
