"""What could leave at most, queue by queue: cheap conditions that any set of victims must meet.

Most gangs that may not start are refused by these, before a single victim is looked at: it would
not fit if everybody left who may be moved at all, or everybody from the queues that it may take
from, or as much of each queue as its rights allow.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from muster.scheduling.amounts import RESOURCES, Amounts, taken_by
from muster.scheduling.holders import Holder
from muster.scheduling.tree import Index


@dataclass(frozen=True, slots=True, eq=False)
class Movables:
    """The preemptible holders of one queue at one priority."""

    nodes: Index
    """The node of each holding; one holder has as many as it is on nodes."""
    amounts: Amounts
    """What is held there, a column for each holding."""
    gpus: int
    most_gpus: int
    """Of the largest holder."""
    has_surplus: bool


def movables_of(holders: Iterable[Holder]) -> dict[int, Movables]:
    """Those of one queue, by priority."""
    by_priority: dict[int, list[Holder]] = {}
    for holder in holders:
        if holder.gang.is_preemptible and not holder.is_asked:
            by_priority.setdefault(holder.gang.priority, []).append(holder)
    return {priority: _movables(some) for priority, some in by_priority.items()}


def freed(groups: Sequence[Movables], size: int) -> Amounts:
    """What all of these hold on each of *size* nodes."""
    if not groups:
        return np.zeros((RESOURCES, size), dtype=np.int64)
    nodes = np.concatenate([group.nodes for group in groups])
    return freed_on(nodes, np.concatenate([group.amounts for group in groups], axis=1), size)


def freed_on(nodes: Sequence[int] | Index, amounts: Amounts, size: int) -> Amounts:
    """The sum of *amounts*, a column for each of *nodes*, on each of *size* nodes."""
    total: Amounts = np.zeros((RESOURCES, size), dtype=np.int64)
    nodes = np.asarray(nodes, dtype=np.intp)
    for resource in range(RESOURCES):
        np.add.at(total[resource], nodes, amounts[resource])
    return total


def _movables(holders: Sequence[Holder]) -> Movables:
    nodes: list[int] = []
    columns: list[tuple[int, int, int, int]] = []
    for holder in holders:
        gpus, cpu, memory, pods = taken_by(holder.gang.needs)
        for node, n in holder.spread().items():
            nodes.append(node)
            columns.append((gpus * n, cpu * n, memory * n, pods * n))
    sizes = [holder.gpus for holder in holders]
    return Movables(
        nodes=np.array(nodes, dtype=np.intp),
        amounts=np.array(columns, dtype=np.int64).reshape(-1, RESOURCES).T,
        gpus=sum(sizes),
        most_gpus=max(sizes),
        has_surplus=any(holder.surplus for holder in holders),
    )
