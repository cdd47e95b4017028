"""Queues, who may use them, and the levels of the topology."""

from collections.abc import Mapping
from dataclasses import dataclass

from muster.errors import InvalidSpec
from muster.parse.node import DEFAULT_TABLES, NodeTables
from muster.parse.raw import (
    Raw,
    at,
    flag,
    number,
    required_text,
    seconds_at,
    section,
    sections,
    text,
    texts,
)
from muster.scheduling.snapshot import NODE_LEVEL, Level, Queue


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
    by_model = isinstance(spec.get("limit"), Mapping)
    return Queue(
        name=name,
        parent=parent,
        limit=None if by_model else number(spec, "limit", "spec", least=0),
        limit_by_model=_limits(section(spec, "limit", "spec"), tables) if by_model else {},
        is_paused=flag(spec, "paused", "spec"),
        created=seconds_at(metadata, "creationTimestamp", "metadata") or 0.0,
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


def _limits(raw: Raw, tables: NodeTables) -> dict[str, int]:
    """GPUs for each model, by the names that nodes get too."""
    limits: dict[str, int] = {}
    for key in raw:
        limit = number(raw, key, "spec.limit", least=0)
        model = tables.model_of(key)
        if model is None or limit is None:
            raise InvalidSpec(at("spec.limit", key), "must be the number of GPUs of a model")
        if model in limits:
            raise InvalidSpec(at("spec.limit", key), f"{model} is there twice")
        limits[model] = limit
    return limits
