"""What could leave at most, queue by queue: cheap conditions that any set of victims must meet.

Most gangs that may not start are refused by these, before a single victim is looked at: it would
not fit if everybody left who may be moved at all, or everybody from the queues that it may take
from, or as much of each queue as its rights allow.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from muster.scheduling.amounts import GPUS, RESOURCES, Amounts, taken_by
from muster.scheduling.holders import Holder
from muster.scheduling.tree import Index


@dataclass(frozen=True, slots=True, eq=False)
class Movables:
    """The preemptible holders of one queue at one priority."""

    nodes: Index
    """The nodes that they hold something on, each once."""
    amounts: Amounts
    """What they hold there, a column for each node."""
    most_on_node: int
    """GPUs."""
    gpus: int
    """Of all of them."""
    most_gpus: int
    """Of the largest holder."""
    least_gpus: int
    """Of the smallest holder."""
    surplus_gpus: int
    """Of replicas beyond the minimum."""

    @property
    def has_surplus(self) -> bool:
        """Whether one of them has more than its minimum."""
        return self.surplus_gpus > 0

    def may_give(self, gpus: float) -> bool:
        """Whether one of them could leave if no more than so many GPUs may."""
        return self.has_surplus or self.least_gpus <= gpus

    def capped(self, gpus: float) -> "Movables":
        """The same with at most so many GPUs on each node."""
        if gpus >= self.most_on_node:
            return self
        amounts = self.amounts.copy()
        amounts[GPUS] = np.minimum(amounts[GPUS], int(max(gpus, 0)))
        return replace(self, amounts=amounts, most_on_node=int(max(gpus, 0)))


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
    on_node: dict[int, list[int]] = {}
    sizes: list[int] = []
    surplus = 0
    # Spelt out rank by rank: this is done anew for a queue whenever one of its gangs changes.
    for holder in holders:
        needs = holder.gang.needs
        gpus, cpu, memory, pods = taken_by(needs)
        for node in holder.nodes:
            if node < 0:
                continue
            held = on_node.get(node)
            if held is None:
                on_node[node] = [gpus, cpu, memory, pods]
            else:
                held[0] += gpus
                held[1] += cpu
                held[2] += memory
                held[3] += pods
        sizes.append(holder.gpus)
        if holder.gang.min_replicas < len(holder.nodes):
            surplus += holder.surplus * needs.gpus
    amounts = np.array(list(on_node.values()), dtype=np.int64).reshape(-1, RESOURCES).T
    return Movables(
        nodes=np.array(list(on_node), dtype=np.intp),
        amounts=amounts,
        most_on_node=int(amounts[GPUS].max(initial=0)),
        gpus=sum(sizes),
        most_gpus=max(sizes),
        least_gpus=min(sizes),
        surplus_gpus=surplus,
    )
