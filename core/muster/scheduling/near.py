"""Where further replicas of a running gang may go, given where the others are."""

from collections.abc import Iterator, Sequence

import numpy as np

from muster.scheduling.fit import Mask
from muster.scheduling.holders import Holder
from muster.scheduling.snapshot import Gang, Question, TopologyRequest
from muster.scheduling.tree import ROOT, Tree


def question_of(gang: Gang, replicas: int) -> Question:
    """What a running gang asks for some replicas without a topology of their own."""
    return Question(
        queue=gang.queue,
        needs=gang.needs,
        rules=gang.rules,
        topology=TopologyRequest(),
        replicas=replicas,
        user=gang.user,
    )


def circles(tree: Tree, holder: Holder, rank: int) -> Iterator[Mask]:
    """The nodes allowed for a rank, around the nearest replica that holds one: first that node,
    then its domain of each level, outwards.
    """
    within = allowed(tree, holder, rank)
    anchor = _anchor(holder.nodes, rank)
    if anchor is not None:
        for layer in tree.layers[:ROOT:-1]:
            circle = layer.of_node == layer.of_node[holder.nodes[anchor]]
            yield circle & within
    yield within


def allowed(tree: Tree, holder: Holder, rank: int) -> Mask:
    """The nodes on which a rank may be: in the domains that the others of the gang, and of its
    part, are in.
    """
    topology = holder.gang.topology
    within = _domain_of(tree, topology.required, holder.nodes)
    if topology.part_size is not None:
        start = rank // topology.part_size * topology.part_size
        part = holder.nodes[start : start + topology.part_size]
        within = within & _domain_of(tree, topology.part_required, part)
    return within


def _domain_of(tree: Tree, level: str | None, nodes: Sequence[int]) -> Mask:
    number = tree.layer_of(level) if level else None
    held = [node for node in nodes if node >= 0]
    if number is None:
        return np.ones(len(tree.names), dtype=np.bool_)
    layer = tree.layers[number]
    within: Mask = layer.is_domain[layer.of_node]
    if held:
        within = within & (layer.of_node == layer.of_node[held[0]])
    return within


def _anchor(nodes: Sequence[int], rank: int) -> int | None:
    """The nearest rank that holds a node."""
    held = [other for other, node in enumerate(nodes) if node >= 0]
    return min(held, key=lambda other: (abs(other - rank), other), default=None)
