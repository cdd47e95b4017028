"""What changed between the inputs of two cycles: little, where the cluster itself is large.

`applied(before, difference(before, after)) == after` for the objects that a cluster gives, which
come in the order of their names. With it each decision can be kept with its inputs at the cost of
what changed, not of what exists.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from muster.scheduling.cluster import Objects
from muster.scheduling.plan import Plan
from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import Gang, Level, Needs, Node, Queue

T = TypeVar("T")
Foreign = tuple[str, str, Needs]


@dataclass(frozen=True, slots=True)
class Difference:
    """What is new or different, as it is after; and the names of what is gone."""

    nodes: tuple[Node, ...] = ()
    queues: tuple[Queue, ...] = ()
    gangs: tuple[Gang, ...] = ()
    foreign: tuple[Foreign, ...] = ()
    gone: tuple[tuple[str, str], ...] = ()
    """What kind it was of, and its name."""
    levels: tuple[Level, ...] | None = None
    """Where they changed."""
    changed: float = 0.0
    usage: tuple[tuple[str, float], ...] = ()
    usage_by_model: tuple[tuple[str, str, float], ...] = ()
    usage_at: float = 0.0


@dataclass(frozen=True, slots=True)
class Step:
    """A decision, told by what changed since an earlier one."""

    id: str
    after: str
    """The id of the earlier one."""
    changes: Difference
    policy: Policy
    now: float
    plan: Plan


@dataclass(frozen=True, slots=True)
class _Kind(Generic[T]):
    """One sort of objects in a cluster."""

    name: str
    of: Callable[[Objects], tuple[T, ...]]
    key: Callable[[T], str]


_KINDS: tuple[_Kind[Any], ...] = (
    _Kind("nodes", lambda objects: objects.nodes, lambda node: node.name),
    _Kind("queues", lambda objects: objects.queues, lambda queue: queue.name),
    _Kind("gangs", lambda objects: objects.gangs, lambda gang: gang.key),
    _Kind("foreign", lambda objects: objects.foreign, lambda pod: pod[0]),
)


def difference(before: Objects, after: Objects) -> Difference:
    """What to change in *before* to come to *after*."""
    news: dict[str, tuple[Any, ...]] = {}
    gone: list[tuple[str, str]] = []
    for kind in _KINDS:
        old, new = _named(kind, before), _named(kind, after)
        news[kind.name] = tuple(
            each
            for name, each in new.items()
            if old.get(name) is not each and old.get(name) != each
        )
        gone += [(kind.name, name) for name in old if name not in new]
    return Difference(
        **news,
        gone=tuple(gone),
        levels=None if after.levels == before.levels else after.levels,
        changed=after.changed,
        usage=after.usage,
        usage_by_model=after.usage_by_model,
        usage_at=after.usage_at,
    )


def applied(before: Objects, changes: Difference) -> Objects:
    """*before* with *changes* made."""
    gone = set(changes.gone)
    now: dict[str, tuple[Any, ...]] = {}
    for kind in _KINDS:
        named = {
            name: each
            for name, each in _named(kind, before).items()
            if (kind.name, name) not in gone
        }
        named |= {kind.key(each): each for each in getattr(changes, kind.name)}
        now[kind.name] = tuple(named[name] for name in sorted(named))
    return Objects(
        **now,
        levels=before.levels if changes.levels is None else changes.levels,
        changed=changes.changed,
        usage=changes.usage,
        usage_by_model=changes.usage_by_model,
        usage_at=changes.usage_at,
    )


def _named(kind: _Kind[T], objects: Objects) -> Mapping[str, T]:
    return {kind.key(each): each for each in kind.of(objects)}
