"""Where a gang goes: count up, choose the tightest, walk down.

A request is a row of parts, each of which must lie within one domain of its level. A plain gang is
the special case of parts of one replica within a node, so that one rule serves both:

1. The lowest level, from the preferred one (else the node) outwards to the required one (else
   the cluster), at which one domain takes all of it.
2. Inside that domain the same again. Where no single domain further in takes it, it is dealt out
   to the fewest domains of the next level, fullest first: each is filled before the next is
   opened, and the last one is the tightest that takes the rest.
3. Among equals the best fit: the fewest GPUs left over in the domain itself, then in those around
   it, then what the queue's ties say, then the first by name.

Ranks follow the walk, so that the replicas of a domain are neighbours. The choice at an outer
level is made before the inner ones are looked at.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from muster.scheduling.room import Counts, Field
from muster.scheduling.snapshot import TopologyRequest
from muster.scheduling.tree import ROOT, Index, Tree

_ROOM = (1 << 20) - 1
_SPARE_BITS = 20

Ties = tuple[tuple[Counts, ...], ...]
"""What decides between domains that fit equally well, less being better: for each criterion a
value
for every domain of every layer."""

Run = tuple[int, int]
"""Neighbouring ranks on one node: its position, and how many."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be placed, with levels as layers of a tree."""

    replicas: int
    gpus: int
    """Of one replica."""
    innermost: int
    outermost: int
    """One domain is looked for between these layers; the request never spreads further."""
    part_size: int
    part_layer: int
    labelled: tuple[int, ...]
    """Layers that were asked for: a node without their label does not count."""


@dataclass(frozen=True, slots=True)
class Spot:
    """One domain that takes all of a request."""

    layer: int
    domain: int


def request_of(topology: TopologyRequest, tree: Tree, *, replicas: int, gpus: int) -> Request:
    """The request of a gang. Its levels must be known; a preferred one that is not is ignored."""
    required = _layer_of(topology.required, tree, ROOT)
    preferred = _layer_of(topology.preferred, tree, tree.node_layer)
    size, part_layer, labelled = 1, tree.node_layer, {required}
    if topology.part_size is not None and topology.part_required is not None:
        size, part_layer = topology.part_size, _layer_of(topology.part_required, tree, ROOT)
        labelled.add(part_layer)
    return Request(
        replicas=replicas,
        gpus=gpus,
        innermost=max(preferred, required),
        outermost=required,
        part_size=size,
        part_layer=part_layer,
        labelled=tuple(sorted(labelled)),
    )


def find(field: Field, request: Request, ties: Ties = ()) -> Spot | None:
    """The domain in which the request is best placed; `None` if it fits nowhere."""
    walk = _Walk(field, request, ties)
    if walk.field.total < request.replicas:
        return None
    full, rest = divmod(request.replicas, request.part_size)
    return walk.lowest(Spot(ROOT, 0), (request.innermost, request.outermost), full, rest)


def settle(field: Field, request: Request, spot: Spot, ties: Ties = ()) -> tuple[Run, ...]:
    """The nodes of the request in rank order, inside the domain that `find` gave."""
    walk = _Walk(field, request, ties)
    full, rest = divmod(request.replicas, request.part_size)
    walk.fill(spot, full, rest)
    return tuple(walk.runs)


def _layer_of(level: str | None, tree: Tree, otherwise: int) -> int:
    number = tree.layer_of(level) if level else None
    return otherwise if number is None else number


class _Walk:
    """Down the tree with one request, counted in parts: *full* ones, and a last one of *rest*."""

    def __init__(self, field: Field, request: Request, ties: Ties) -> None:
        self.tree = field.tree
        self.ties = ties
        self.field = _labelled(field, request)
        self.request = request
        self.runs: list[Run] = []
        self._is_plain = request.part_size == 1 and request.part_layer == self.tree.node_layer
        if not self._is_plain:
            counts = self.field.counts[request.part_layer]
            self._parts, self._residues = np.divmod(counts, request.part_size)

    def lowest(self, within: Spot, levels: tuple[int, int], full: int, rest: int) -> Spot | None:
        """The best domain at the lowest level at which one takes all, from the first of *levels*
        to the second, outer one.
        """
        innermost, outermost = levels
        for layer in range(innermost, outermost - 1, -1):
            first, end = self.tree.within(within.layer, within.domain, layer)
            (candidates,) = self._takes(layer, first, end, full, rest).nonzero()
            candidates += first
            if not self.tree.layers[layer].is_complete:
                candidates = candidates[self.tree.layers[layer].is_domain[candidates]]
            if candidates.size:
                return Spot(layer, self._best_fit(layer, candidates))
        return None

    def fill(self, spot: Spot, full: int, rest: int) -> None:
        """Place parts inside a domain that takes them."""
        if spot.layer >= self.request.part_layer:
            self._fill_parts(spot, full, rest)
            return
        levels = (self.tree.node_layer, spot.layer + 1)
        inner = self.lowest(spot, levels, full, rest)
        if inner:
            self.fill(inner, full, rest)
            return
        for domain, parts, tail in self._deal(spot, full, rest):
            self.fill(Spot(spot.layer + 1, domain), parts, tail)

    def _fill_parts(self, spot: Spot, full: int, rest: int) -> None:
        if self._is_plain:
            self.runs.append((spot.domain, full))
            return
        # Each part is placed on what those before it left.
        field = self.field = self.field if self.runs else self.field.copy()
        for replicas in [self.request.part_size] * full + [rest] * bool(rest):
            part = replace(self.request, part_size=1, part_layer=self.tree.node_layer)
            walk = _Walk(field, part, self.ties)
            walk.fill(spot, replicas, 0)
            for node, taken in walk.runs:
                field.take(node, taken, taken * self.request.gpus)
            self.runs += walk.runs

    def _deal(self, spot: Spot, full: int, rest: int) -> Iterator[tuple[int, int, int]]:
        """The fewest domains of the next level, fullest first, and the parts that each gets."""
        layer = spot.layer + 1
        first, end = self.tree.within(spot.layer, spot.domain, layer)
        parts = self._parts_of(layer, first, end)
        has_rest = self._has_rest(layer, first, end, rest)
        order = _fullest_first(parts, has_rest, self.field.spare[layer][first:end], full + 1)
        reached = np.cumsum(parts[order])
        last = int(np.searchsorted(reached, full))
        filled = order[:last]
        left = full - int(reached[last - 1]) if last else full
        is_open = np.ones(end - first, dtype=np.bool_)
        is_open[filled] = False
        closing = is_open & ((parts > left) | ((parts == left) & has_rest))
        if not closing.any():
            # Every full part that these domains take is used, and the short one has no place yet:
            # it joins one of them, or opens one more.
            filled, left = order[: last + 1], 0
            is_open[order[last]] = False
            closing = ~is_open & has_rest
            if closing.any():
                tail = self._best_fit(layer, first + np.flatnonzero(closing)) - first
                filled, left = filled[filled != tail], int(parts[tail])
            else:
                closing = is_open & ((parts > 0) | has_rest)
        tail = self._best_fit(layer, first + np.flatnonzero(closing))
        for domain in np.sort(filled):
            yield first + int(domain), int(parts[domain]), 0
        yield tail, left, rest

    def _takes(
        self, layer: int, first: int, end: int, full: int, rest: int
    ) -> npt.NDArray[np.bool_]:
        """Which domains of a range take all of it."""
        takes: npt.NDArray[np.bool_]
        if layer >= self.request.part_layer:
            takes = self.field.counts[layer][first:end] >= full * self.request.part_size + rest
            return takes
        parts = self._parts_of(layer, first, end)
        takes = parts >= full
        if rest:
            takes &= (parts > full) | self._has_rest(layer, first, end, rest)
        return takes

    def _parts_of(self, layer: int, first: int, end: int) -> Counts:
        if self._is_plain:
            return self.field.counts[layer][first:end]
        parts: Counts = np.add.reduceat(self._parts, self._part_domains(layer))[first:end]
        return parts

    def _has_rest(self, layer: int, first: int, end: int, rest: int) -> npt.NDArray[np.bool_]:
        """Where the short part fits beside as many full ones as there is room for."""
        if not rest:
            return np.ones(end - first, dtype=np.bool_)
        residues: Counts = np.maximum.reduceat(self._residues, self._part_domains(layer))
        fits: npt.NDArray[np.bool_] = residues[first:end] >= rest
        return fits

    def _part_domains(self, layer: int) -> Index:
        """The first domain of the parts' level in each domain of a layer outside it."""
        layers = self.tree.layers
        domains: Index = layers[self.request.part_layer].of_node[layers[layer].starts]
        return domains

    def _best_fit(self, layer: int, candidates: Index) -> int:
        """The candidate that leaves the fewest GPUs over, in itself, then in what is around it."""
        layers = self.tree.layers
        for number in range(layer, ROOT, -1):
            if candidates.size == 1:
                break
            around = candidates
            if number != layer:
                around = layers[number].of_node[layers[layer].starts[candidates]]
            candidates = _least(candidates, self.field.spare[number][around])
        candidates = _least(candidates, self.field.counts[layer][candidates])
        for values in self.ties:
            if candidates.size == 1:
                break
            candidates = _least(candidates, values[layer][candidates])
        return int(candidates[0])


def _labelled(field: Field, request: Request) -> Field:
    layers = field.tree.layers
    without = [layers[n] for n in request.labelled if not layers[n].is_complete]
    if not without:
        return field
    counts = field.counts[-1]
    for layer in without:
        counts = np.where(layer.is_domain[layer.of_node], counts, 0)
    return Field(field.tree, counts, field.spare[-1])


def _least(candidates: Index, values: Counts) -> Index:
    least: Index = candidates[values == values.min()]
    return least


def _fullest_first(
    parts: Counts, has_rest: npt.NDArray[np.bool_], spare: Counts, most: int
) -> Index:
    """The order in which domains are opened, as far as *most* of them.

    More room first; then those with a place for the short part; then the best fit; then the name.
    All of it in one number a domain, which is unique and so sorts the same way always.
    """
    size = parts.size
    key = ((_ROOM - np.minimum(parts, _ROOM)) << 1) | ~has_rest
    key = ((key << _SPARE_BITS) | np.minimum(spare, (1 << _SPARE_BITS) - 1)) * size
    key += np.arange(size)
    if most < size:
        nearest = np.argpartition(key, most - 1)[:most]
        return nearest[np.argsort(key[nearest])]
    return np.argsort(key)
