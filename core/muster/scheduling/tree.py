"""The topology as static arrays: which nodes a domain holds, level by level.

Nodes are sorted by their path through the levels and then by name, so that every domain is a run
of neighbours and a sum over domains is one `reduceat`. The tree is built once for a set of nodes
and their level labels, and shared by all snapshots in between; amounts live elsewhere, in arrays
of the same order. A label value under two outer domains names two domains.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from muster.scheduling.snapshot import NODE_LEVEL, Level

Index = npt.NDArray[np.intp]

ROOT = 0
"""The outermost layer: one domain, the whole cluster."""

_NUMBER = re.compile(r"([0-9]+)")


@lru_cache(maxsize=1 << 16)
def natural(name: str) -> tuple[str | int, ...]:
    """A key by which numbers inside names compare as numbers: n2 before n10."""
    parts: list[str | int] = list(_NUMBER.split(name))
    parts[1::2] = map(int, parts[1::2])
    return tuple(parts)


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """The domains of one level, in the order of their nodes."""

    name: str
    starts: Index
    """The first node of each domain."""
    of_node: Index
    """The domain of each node."""
    is_domain: npt.NDArray[np.bool_]
    """False where the nodes carry no label of this level: nobody knows how close they are, so that
    no job may count on it. They stay together as a group that can be filled.
    """
    is_complete: bool
    """Whether all of them are domains."""
    titles: tuple[str, ...]

    def sums(self, per_node: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The sum of a value over the nodes of each domain, in an array of its own."""
        if self.starts.size == per_node.size:
            return per_node.copy()
        return np.add.reduceat(per_node, self.starts)


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """All layers, outermost first: the cluster, the levels of the topology, the nodes."""

    layers: tuple[Layer, ...]
    names: tuple[str, ...]
    """Node names in the order of every array."""
    position: Mapping[str, int]
    """Where a node stands in that order."""

    @property
    def node_layer(self) -> int:
        """The number of the innermost layer."""
        return len(self.layers) - 1

    def layer_of(self, level: str) -> int | None:
        """The number of the layer with that name, `node` among them."""
        for number in range(self.node_layer, ROOT, -1):
            if self.layers[number].name == level:
                return number
        return None

    def within(self, layer: int, domain: int, inner: int) -> tuple[int, int]:
        """The range of domains of the layer *inner* that lie in a domain of *layer*."""
        starts = self.layers[layer].starts
        of_node = self.layers[inner].of_node
        is_last = domain + 1 == len(starts)
        end = len(of_node) if is_last else int(starts[domain + 1])
        return int(of_node[starts[domain]]), int(of_node[end - 1]) + 1


Path = tuple[str | None, ...]
"""The label values of a node, outermost level first; `None` where it has none."""


def path_of(labels: Mapping[str, str], levels: Sequence[Level]) -> Path:
    """Where a node with these labels stands in the topology."""
    return tuple(labels.get(level.label) for level in levels)


def build_tree(levels: Sequence[Level], paths: Mapping[str, Path]) -> Tree:
    """The tree of the named nodes. The order of *paths* plays no part."""
    names = tuple(sorted(paths, key=lambda name: (_order_of(paths[name]), natural(name), name)))
    ordered = [paths[name] for name in names]
    layers = [
        _layer("cluster", [()] * len(names), [True] * len(names), ["the cluster"] * len(names))
    ]
    for depth, level in enumerate(levels):
        prefixes = [path[: depth + 1] for path in ordered]
        layers.append(
            _layer(
                level.name,
                prefixes,
                [path[depth] is not None for path in ordered],
                [path[depth] or f"no {level.name}" for path in ordered],
            )
        )
    layers.append(_layer(NODE_LEVEL, list(names), [True] * len(names), list(names)))
    return Tree(tuple(layers), names, {name: number for number, name in enumerate(names)})


def _order_of(path: Path) -> tuple[tuple[bool, tuple[str | int, ...], str], ...]:
    return tuple((value is None, natural(value or ""), value or "") for value in path)


def _layer(
    name: str, groups: Sequence[object], is_domain: Sequence[bool], titles: Sequence[str]
) -> Layer:
    starts = [n for n, group in enumerate(groups) if n == 0 or group != groups[n - 1]]
    of_node = np.zeros(len(groups), dtype=np.intp)
    of_node[starts[1:]] = 1
    return Layer(
        name=name,
        starts=np.array(starts, dtype=np.intp),
        of_node=np.cumsum(of_node),
        is_domain=np.array([is_domain[n] for n in starts], dtype=np.bool_),
        is_complete=all(is_domain),
        titles=tuple(titles[n] for n in starts),
    )
