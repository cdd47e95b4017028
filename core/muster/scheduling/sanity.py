"""What is wrong with queues and the topology as they stand together, and what happens meanwhile.

Nothing here stops anybody: a queue or a label that makes no sense costs a sentence on the object,
and the scheduler goes on with what can be made of it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from muster.scheduling.quota import Held
from muster.scheduling.snapshot import Level, Node, Queue
from muster.scheduling.tree import natural
from muster.scheduling.wording import gpus_of, number_of

VALID: Final = "Valid"
"""The condition type: the spec can be followed as it is."""
WITHIN_LIMIT: Final = "WithinLimit"
"""The condition type: no more is held than the limit allows."""
_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with an object."""

    type: str
    """The condition that does not hold."""
    reason: str
    message: str
    """What is wrong, and what happens meanwhile."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """GPUs of all nodes, those that are down or cordoned too."""

    total: int = 0
    by_model: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, nodes: Iterable[Node]) -> "Capacity":
        """What *nodes* have, GPUs that are out of order aside."""
        total, by_model = 0, dict[str, int]()
        for node in nodes:
            total += node.gpus
            if node.gpu_model is not None:
                by_model[node.gpu_model] = by_model.get(node.gpu_model, 0) + node.gpus
        return cls(total, by_model)


def queue_findings(
    queues: Mapping[str, Queue], held: Held, capacity: Capacity
) -> Mapping[str, tuple[Finding, ...]]:
    """What is wrong with each queue, by name; those that are in order are left out."""
    children: dict[str | None, list[Queue]] = {}
    for name in sorted(queues, key=natural):
        queue = queues[name]
        parent = queue.parent if queue.parent in queues else None
        children.setdefault(parent, []).append(queue)
    found = {
        name: (
            *_of_parents(queue, queues),
            *_of_itself(queue),
            *_of_siblings(queue, queues, children, capacity),
            *_of_use(queue, held),
        )
        for name, queue in queues.items()
    }
    return {name: found[name] for name in sorted(found) if found[name]}


def topology_findings(levels: Sequence[Level], nodes: Iterable[Node]) -> tuple[Finding, ...]:
    """What is wrong with the labels of the nodes that have GPUs."""
    bearing = sorted(
        (node for node in nodes if node.gpus or node.bad_gpus),
        key=lambda node: (natural(node.name), node.name),
    )
    if not bearing:
        return ()
    return (*_unlabelled(levels, bearing), *_overlapping(levels, bearing))


def orphan_words(queue: str) -> str:
    """What a job hears that holds GPUs of a queue that is gone."""
    return (
        f"queue {queue} is gone; the job goes on, and counts against no quota. Should it stop, it "
        "waits until there is a queue of that name"
    )


def _of_parents(queue: Queue, queues: Mapping[str, Queue]) -> Iterator[Finding]:
    parent = queue.parent
    if parent is None:
        return
    if parent not in queues:
        message = (
            f"spec.parent: there is no queue {parent}; until there is, {queue.name} stands alone, "
            "bound by its own quota only"
        )
        yield Finding(VALID, "UnknownParent", message)
        return
    ring = _ring(queue, queues)
    if ring:
        message = (
            f"spec.parent: {' -> '.join((*ring, ring[0]))} is a ring; until it is broken, each of "
            "them counts as above the others, and the limits of all bind each"
        )
        yield Finding(VALID, "ParentCycle", message)


def _ring(queue: Queue, queues: Mapping[str, Queue]) -> tuple[str, ...]:
    """The queues from this one up to itself again; empty where the way up ends."""
    way: list[str] = []
    current: str | None = queue.name
    while current is not None and current in queues and current not in way:
        way.append(current)
        current = queues[current].parent
    return tuple(way) if current == queue.name else ()


def _of_itself(queue: Queue) -> Iterator[Finding]:
    if queue.weight < 0:
        message = f"spec.weight: must not be negative, is {queue.weight:g}; it counts as 0"
        yield Finding(VALID, "NegativeWeight", message)
    if queue.limit is not None and queue.limit < queue.guaranteed:
        yield _below_guarantee(queue.limit, queue.guaranteed, "")
    for model in sorted(queue.limit_by_model):
        limit = queue.limit_by_model[model]
        guaranteed = queue.guaranteed_by_model.get(model, 0)
        if limit < guaranteed:
            yield _below_guarantee(limit, guaranteed, f".{model}")


def _below_guarantee(limit: int, guaranteed: int, where: str) -> Finding:
    message = (
        f"spec.limit{where}: {limit} is below what the queue is guaranteed, {guaranteed}; the "
        "limit holds"
    )
    return Finding(VALID, "LimitBelowGuarantee", message)


def _of_siblings(
    queue: Queue,
    queues: Mapping[str, Queue],
    children: Mapping[str | None, Sequence[Queue]],
    capacity: Capacity,
) -> Iterator[Finding]:
    """Guarantees that the queue and its siblings cannot all have."""
    above = queues.get(queue.parent) if queue.parent is not None else None
    siblings = children[above.name if above is not None else None]
    for model in (None, *sorted(queue.guaranteed_by_model)):
        if not _guaranteed(queue, model):
            continue
        together = sum(_guaranteed(each, model) for each in siblings)
        what = f"{together} {model} GPUs" if model else gpus_of(together)
        if above is None:
            yield from _beyond_cluster(together, what, model, capacity)
        else:
            yield from _beyond_parent(above, together, what, model)


def _beyond_cluster(
    together: int, what: str, model: str | None, capacity: Capacity
) -> Iterator[Finding]:
    most = capacity.total if model is None else capacity.by_model.get(model, 0)
    if together > most:
        message = (
            f"spec.guaranteed: the queues without a parent are guaranteed {what} together, the "
            f"cluster has {most}; not all can have theirs at once, and the one with the lowest "
            "share goes first"
        )
        yield Finding(VALID, "GuaranteeAboveCluster", message)


def _beyond_parent(above: Queue, together: int, what: str, model: str | None) -> Iterator[Finding]:
    most = _guaranteed(above, model)
    # A parent that is guaranteed nothing may still have children that reclaim from each other.
    if most and together > most:
        message = (
            f"spec.guaranteed: the queues below {above.name} are guaranteed {what} together, it "
            f"itself {most}; they reclaim theirs from each other, and no more than that from "
            "queues elsewhere"
        )
        yield Finding(VALID, "GuaranteeAboveParent", message)
    limit = above.limit if model is None else above.limit_by_model.get(model)
    if limit is not None and together > limit:
        message = (
            f"spec.guaranteed: the queues below {above.name} are guaranteed {what} together, its "
            f"limit is {limit}; the limit holds"
        )
        yield Finding(VALID, "GuaranteeAboveLimit", message)


def _guaranteed(queue: Queue, model: str | None) -> int:
    return queue.guaranteed if model is None else queue.guaranteed_by_model.get(model, 0)


def _of_use(queue: Queue, held: Held) -> Iterator[Finding]:
    limits = {model: queue.limit_by_model[model] for model in sorted(queue.limit_by_model)}
    used = {model: held.by_model.get((queue.name, model), 0) for model in limits}
    pairs = [(model, used[model], limits[model]) for model in limits]
    if queue.limit is not None:
        pairs.insert(0, ("", held.total.get(queue.name, 0), queue.limit))
    for model, use, limit in pairs:
        if use > limit:
            where, what = (f".{model}", f"{use} {model} GPUs") if model else ("", gpus_of(use))
            message = (
                f"spec.limit{where}: its jobs hold {what}, the limit is {limit}; nobody has to "
                "leave, and nothing starts until they hold less"
            )
            yield Finding(WITHIN_LIMIT, "LimitBelowUse", message)


def _unlabelled(levels: Sequence[Level], nodes: Sequence[Node]) -> Iterator[Finding]:
    for level in levels:
        without = [node.name for node in nodes if level.label not in node.labels]
        if len(without) == len(nodes):
            message = (
                f"no node with GPUs has the label {level.label}; jobs that require one "
                f"{level.name} do not start"
            )
            yield Finding(VALID, "MissingLabels", message)
        elif without:
            message = (
                f"{number_of(len(without), 'node')} with GPUs {_have(without)} no label "
                f"{level.label} ({_some(without)}); jobs that require one {level.name} are not "
                "placed there"
            )
            yield Finding(VALID, "MissingLabels", message)


def _overlapping(levels: Sequence[Level], nodes: Sequence[Node]) -> Iterator[Finding]:
    for depth in range(1, len(levels)):
        outer, inner = levels[depth - 1], levels[depth]
        around: dict[str, dict[str, None]] = {}
        for node in nodes:
            value, where = node.labels.get(inner.label), node.labels.get(outer.label)
            if value is not None and where is not None:
                around.setdefault(value, {})[where] = None
        torn = {value: list(places) for value, places in around.items() if len(places) > 1}
        if torn:
            value, places = next(iter(torn.items()))
            message = (
                f"{inner.name} {value} lies in {number_of(len(places), outer.name)} "
                f"({_some(places)}){_and_more(len(torn) - 1)}; each part counts as a "
                f"{inner.name} of its own"
            )
            yield Finding(VALID, "OverlappingLevels", message)


def _have(names: Sequence[str]) -> str:
    return "has" if len(names) == 1 else "have"


def _some(names: Sequence[str]) -> str:
    rest = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")


def _and_more(count: int) -> str:
    return f", and so do {count} more" if count else ""
