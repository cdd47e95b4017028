"""Free GPUs that no pending gang can use: what is left over in pieces of the wrong shape.

Looked at node by node: a GPU counts as lost to fragmentation only where no choice of replicas of
the gangs that wait could fill it, by GPUs, the other resources and the rules for nodes. Where
nobody waits for GPUs, nothing is fragmented: it is merely free. Gangs that somebody holds back
(suspended, paused, waiting for another job) and those that fit no node at all do not wait for GPUs
here.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from muster.scheduling.amounts import GPUS, Amounts, taken_by
from muster.scheduling.explain import obstacle
from muster.scheduling.snapshot import Needs, NodeRules, Snapshot
from muster.scheduling.trial import Trial

Counts = npt.NDArray[np.int64]


def free_gpus(snapshot: Snapshot) -> dict[str, int]:
    """GPUs that a job could get now, by node: none on nodes that are down or cordoned."""
    free = np.where(snapshot.is_up, np.maximum(snapshot.free[GPUS], 0), 0)
    return dict(zip(snapshot.tree.names, map(int, free), strict=True))


def fragmented_gpus(snapshot: Snapshot) -> dict[str, int]:
    """Free GPUs that no pending gang can use, by node; nodes without any are left out."""
    shapes = _shapes(snapshot)
    if not shapes:
        return {}
    free = np.where(snapshot.is_up, np.maximum(snapshot.free[GPUS], 0), 0)
    sizes = [needs.gpus for needs, _ in shapes]
    fits = [np.where(mask, _times(needs, snapshot.free), 0) for needs, mask in shapes]
    table = np.stack([free, *fits])
    # Of equal nodes there are many, of different ones few.
    kinds, which = np.unique(table, axis=1, return_inverse=True)
    lost = np.array([_left_over(int(kind[0]), sizes, kind[1:]) for kind in kinds.T])
    by_node = lost[which.reshape(-1)] if lost.size else lost
    return {
        snapshot.tree.names[node]: int(by_node[node]) for node in np.flatnonzero(by_node).tolist()
    }


def _shapes(snapshot: Snapshot) -> list[tuple[Needs, npt.NDArray[np.bool_]]]:
    """The different replicas that wait for GPUs, and the nodes that suit each by its rules."""
    trial = Trial(snapshot)
    found: dict[tuple[Needs, NodeRules], None] = {}
    judged: dict[int, bool] = {}
    for lane in snapshot.pending.values():
        for pending in lane:
            question = pending.question
            if not question.needs.gpus:
                continue
            known = judged.get(id(question))
            if known is None:
                known = judged[id(question)] = obstacle(question, trial) is None
            if known:
                found[question.needs, question.rules] = None
    shapes = []
    for needs, rules in found:
        mask = snapshot.columns.mask(rules, lasting=True)
        if (mask & (_times(needs, snapshot.capacity) > 0)).any():
            shapes.append((needs, snapshot.columns.mask(rules)))
    return shapes


def _times(needs: Needs, amounts: Amounts) -> Counts:
    """How many such replicas fit on each node."""
    rooms = [
        np.maximum(amounts[resource], 0) // amount
        for resource, amount in enumerate(taken_by(needs))
        if amount
    ]
    times: Counts = np.minimum.reduce(rooms)
    return times


def _left_over(free: int, sizes: Sequence[int], times: Counts) -> int:
    """GPUs that stay free whatever is put there: each size may be taken so many times."""
    # Bit n says that n GPUs can be filled exactly.
    filled = 1
    for size, most in zip(sizes, times.tolist(), strict=True):
        for _ in range(min(most, free // size)):
            filled |= filled << size
    filled &= (1 << free + 1) - 1
    return free - (filled.bit_length() - 1)


def held_by(snapshot: Snapshot) -> Mapping[str, Mapping[str, int]]:
    """GPUs that each job holds on each node, by node and job."""
    holders: dict[str, dict[str, int]] = {}
    for gang in snapshot.running:
        for name in gang.placement or ():
            if name:
                on_node = holders.setdefault(name, {})
                on_node[gang.key] = on_node.get(gang.key, 0) + gang.needs.gpus
    return holders
