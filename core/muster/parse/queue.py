"""Queues, who may use them, and the levels of the topology."""

from collections.abc import Mapping
from dataclasses import dataclass

from muster.errors import InvalidSpec
from muster.parse.node import DEFAULT_TABLES, NodeTables
from muster.parse.quantity import seconds_of
from muster.parse.raw import (
    Raw,
    at,
    flag,
    fraction,
    number,
    required_text,
    seconds_at,
    section,
    sections,
    text,
    texts,
)
from muster.scheduling.snapshot import NODE_LEVEL, Level, Order, Queue, TieBreak


@dataclass(frozen=True, slots=True)
class QueueAccess:
    """Who may use a queue. An empty tuple allows everybody."""

    name: str
    namespaces: tuple[str, ...] = ()
    users: tuple[str, ...] = ()


def queue_of(obj: Raw, tables: NodeTables = DEFAULT_TABLES) -> Queue:
    """The queue as the scheduler sees it. Raises `InvalidSpec`."""
    metadata, spec = section(obj, "metadata", ""), section(obj, "spec", "")
    name, parent = required_text(metadata, "name", "metadata"), text(spec, "parent", "spec")
    if parent == name:
        raise InvalidSpec("spec.parent", "must name another queue")
    limit, limit_by_model = _quota(spec, "limit", tables)
    guaranteed, guaranteed_by_model = _quota(spec, "guaranteed", tables)
    return Queue(
        name=name,
        parent=parent,
        limit=limit,
        limit_by_model=limit_by_model,
        is_paused=flag(spec, "paused", "spec"),
        created=seconds_at(metadata, "creationTimestamp", "metadata") or 0.0,
        weight=fraction(spec, "weight", "spec", least=0.0, default=1.0),
        guaranteed=guaranteed or 0,
        guaranteed_by_model=guaranteed_by_model,
        order=_order(spec),
        per_user_limit=number(spec, "perUserLimit", "spec", least=0),
        min_run_time=_min_run_time(spec),
        tie_break=_tie_break(spec),
    )


def access_of(obj: Raw) -> QueueAccess:
    """Who may use the queue. Raises `InvalidSpec`."""
    metadata, spec = section(obj, "metadata", ""), section(obj, "spec", "")
    return QueueAccess(
        name=required_text(metadata, "name", "metadata"),
        namespaces=texts(spec, "namespaces", "spec"),
        users=texts(spec, "users", "spec"),
    )


def admissible(queue: QueueAccess, namespace: str, user: str) -> str | None:
    """Why a job of *user* in *namespace* may not use the queue (the reason `QueueForbidden`);
    `None` where it may. Where a queue names both namespaces and users, both must match."""
    if queue.namespaces and namespace not in queue.namespaces:
        return (
            f"queue {queue.name} takes jobs of the namespaces {', '.join(queue.namespaces)} only, "
            f"not of {namespace}"
        )
    if queue.users and user not in queue.users:
        return f"queue {queue.name} does not take jobs of {user or 'a user that is not recorded'}"
    return None


def topology_of(obj: Raw) -> tuple[Level, ...]:
    """The levels, outermost first, without the node itself. Raises `InvalidSpec`."""
    levels: list[Level] = []
    for index, raw in enumerate(sections(section(obj, "spec", ""), "levels", "spec")):
        path = at("spec.levels", index)
        level = Level(
            name=required_text(raw, "name", path),
            label=required_text(raw, "label", path),
            is_switch=flag(raw, "switch", path),
        )
        if level.name == NODE_LEVEL:
            raise InvalidSpec(at(path, "name"), "must not be node, which is always the last level")
        if any(level.name == other.name for other in levels):
            raise InvalidSpec(at(path, "name"), f"{level.name} is there twice")
        if any(level.label == other.label for other in levels):
            raise InvalidSpec(at(path, "label"), f"{level.label} is there twice")
        levels.append(level)
    return tuple(levels)


def _quota(spec: Raw, key: str, tables: NodeTables) -> tuple[int | None, dict[str, int]]:
    """GPUs in all, or for each model, by the names that nodes get too."""
    if not isinstance(spec.get(key), Mapping):
        return number(spec, key, "spec", least=0), {}
    raw, path = section(spec, key, "spec"), at("spec", key)
    amounts: dict[str, int] = {}
    for name in raw:
        amount = number(raw, name, path, least=0)
        model = tables.model_of(name)
        if model is None or amount is None:
            raise InvalidSpec(at(path, name), "must be the number of GPUs of a model")
        if model in amounts:
            raise InvalidSpec(at(path, name), f"{model} is there twice")
        amounts[model] = amount
    return None, amounts


def _order(spec: Raw) -> Order:
    name = text(spec, "order", "spec") or Order.FIFO.value
    if name not in tuple(Order):
        raise InvalidSpec("spec.order", f"must be one of {', '.join(Order)}, is {name!r}")
    return Order(name)


def _min_run_time(spec: Raw) -> float:
    asked = spec.get("minRunTimeBeforePreemption")
    return 0.0 if asked is None else float(seconds_of(asked, "spec.minRunTimeBeforePreemption"))


def _tie_break(spec: Raw) -> tuple[TieBreak, ...]:
    if spec.get("tieBreak") is None:
        return tuple(TieBreak)
    names = texts(spec, "tieBreak", "spec")
    for index, name in enumerate(names):
        if name not in tuple(TieBreak):
            problem = f"must be one of {', '.join(TieBreak)}, is {name!r}"
            raise InvalidSpec(at("spec.tieBreak", index), problem)
    return tuple(dict.fromkeys(map(TieBreak, names)))
