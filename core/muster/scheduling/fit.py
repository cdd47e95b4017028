"""May a pod run on a node at all: selectors, affinity, GPU model, capacity type, taints.

The rules are those of Kubernetes for what the direct path supports. `misfit` answers for one node;
`Columns` answers for all of them at once, from the same predicates: each is asked once for each
distinct value, and the answers are spread over the nodes.
"""

import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from muster.scheduling.kept import Kept
from muster.scheduling.snapshot import (
    Node,
    NodeRules,
    Requirement,
    Taint,
    TieBreak,
    Toleration,
)

Mask = npt.NDArray[np.bool_]

_MASKS_KEPT = 1024

_INTEGER = re.compile(r"[+-]?[0-9]+")
_CONDITION_TAINTS = "node.kubernetes.io/"
"""Taints with this prefix come and go with the state of a node (not ready, cordoned, pressure)."""


class Misfit(StrEnum):
    """What keeps a pod off a node, in the order in which it is looked at."""

    GPU_MODEL = "another GPU model"
    CAPACITY_TYPE = "another capacity type"
    SELECTOR = "other labels than the selector asks for"
    AFFINITY = "outside the node affinity"
    TAINT = "a taint that is not tolerated"


def satisfies(requirement: Requirement, value: str | None) -> bool:
    """Whether a label with this value (`None`: without it) meets the requirement."""
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            return _compares(requirement, value)
        case _:
            return False


def tolerates(tolerations: Sequence[Toleration], taint: Taint) -> bool:
    """Whether one of the tolerations covers the taint."""
    return any(
        (not t.effect or t.effect == taint.effect)
        and (t.key == taint.key or (not t.key and t.operator == "Exists"))
        and (t.operator == "Exists" or (t.operator in {"", "Equal"} and t.value == taint.value))
        for t in tolerations
    )


def admits(rules: NodeRules, taints: Sequence[Taint], *, lasting: bool = False) -> bool:
    """Whether all taints that repel are tolerated. With *lasting*, those that come and go with the
    state of the node do not count.
    """
    return all(
        tolerates(rules.tolerations, taint)
        for taint in taints
        if taint.effect in {"NoSchedule", "NoExecute"}
        and not (lasting and taint.key.startswith(_CONDITION_TAINTS))
    )


def misfit(node: Node, rules: NodeRules) -> Misfit | None:
    """The first thing that keeps such a pod off the node, its health aside."""
    for cause, mask in Columns((node,)).checks(rules):
        if not mask[0]:
            return cause
    return None


@dataclass(frozen=True, slots=True, eq=False)
class _Column:
    """One property of all nodes: its distinct values, and which of them each node has."""

    values: tuple[Hashable, ...]
    codes: npt.NDArray[np.intp]

    def where(self, predicate: Callable[..., bool]) -> Mask:
        table = np.fromiter(map(predicate, self.values), dtype=np.bool_, count=len(self.values))
        spread: Mask = table[self.codes]
        return spread


class Columns:
    """The properties of all nodes that rules speak of; a column is made when it is asked for."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self._columns: dict[tuple[str, str], _Column] = {}
        self._masks: Kept[Mask] = Kept(_MASKS_KEPT)
        self.models = tuple(node.gpu_model for node in nodes)

    def mask(self, rules: NodeRules, *, lasting: bool = False) -> Mask:
        """Which nodes match. With *lasting*, as if all of them were up."""
        mask = self._masks.get((rules, lasting))
        if mask is None:
            mask = np.ones(len(self._nodes), dtype=np.bool_)
            for _, matching in self.checks(rules, lasting=lasting):
                mask &= matching
            mask.setflags(write=False)
            self._masks.put((rules, lasting), mask)
        return mask

    def of_models(self, models: Sequence[str]) -> Mask:
        """Which nodes have one of these GPU models."""
        return self._column("model", lambda node: node.gpu_model).where(lambda m: m in models)

    def models_of(self, rules: NodeRules) -> tuple[str | None, ...]:
        """The GPU models of the nodes that match, as if all of them were up, by name."""
        column = self._column("model", lambda node: node.gpu_model)
        found = np.unique(column.codes[self.mask(rules, lasting=True)])
        models = [column.values[code] for code in found]
        return tuple(sorted(map(_text_or_none, models), key=lambda model: model or ""))

    def drawback(self, kind: TieBreak) -> npt.NDArray[np.int64] | None:
        """What speaks against each node where places are equally good; `None` where nothing
        does."""
        if kind is TieBreak.HEALTH:
            values = [node.bad_gpus for node in self._nodes]
        else:
            values = [int(node.capacity_type == "spot") for node in self._nodes]
        return np.array(values, dtype=np.int64) if any(values) else None

    def causes(self, rules: NodeRules) -> dict[Misfit, int]:
        """How many nodes each cause keeps out that none before it does."""
        left = np.ones(len(self._nodes), dtype=np.bool_)
        counts = {}
        for cause, matching in self.checks(rules, lasting=True):
            counts[cause] = int(np.count_nonzero(left & ~matching))
            left &= matching
        return {cause: number for cause, number in counts.items() if number}

    def checks(self, rules: NodeRules, *, lasting: bool = False) -> Iterator[tuple[Misfit, Mask]]:
        """Each condition of the rules, and the nodes that meet it."""
        if rules.gpu_models:
            yield Misfit.GPU_MODEL, self.of_models(rules.gpu_models)
        if rules.capacity_types:
            kinds = self._column("capacity", lambda node: node.capacity_type)
            yield Misfit.CAPACITY_TYPE, kinds.where(lambda kind: kind in rules.capacity_types)
        for key, value in rules.selector:
            yield Misfit.SELECTOR, self._meeting(Requirement(key, "In", (value,)))
        if rules.terms:
            yield Misfit.AFFINITY, np.logical_or.reduce([self._all(t) for t in rules.terms])
        taints = self._column("taints", lambda node: node.taints)
        yield Misfit.TAINT, taints.where(lambda found: admits(rules, found, lasting=lasting))

    def _all(self, term: Sequence[Requirement]) -> Mask:
        # As in Kubernetes, a term without requirements matches nothing.
        if not term:
            return np.zeros(len(self._nodes), dtype=np.bool_)
        met: Mask = np.logical_and.reduce([self._meeting(requirement) for requirement in term])
        return met

    def _meeting(self, requirement: Requirement) -> Mask:
        if requirement.is_field:
            column = self._column("name", lambda node: node.name)
        else:
            key = requirement.key
            column = self._column("label", lambda node: node.labels.get(key), key)
        return column.where(lambda value: satisfies(requirement, value))

    def _column(self, kind: str, read: Callable[[Node], Hashable], key: str = "") -> _Column:
        column = self._columns.get((kind, key))
        if column is None:
            index: dict[Hashable, int] = {}
            codes = [index.setdefault(read(node), len(index)) for node in self._nodes]
            column = _Column(tuple(index), np.array(codes, dtype=np.intp))
            self._columns[kind, key] = column
        return column


def _text_or_none(value: Hashable) -> str | None:
    return value if isinstance(value, str) else None


def _compares(requirement: Requirement, value: str | None) -> bool:
    texts = (value or "", *requirement.values)
    if len(texts) != 2 or not all(_INTEGER.fullmatch(text) for text in texts):
        return False
    have, bound = map(int, texts)
    return have > bound if requirement.operator == "Gt" else have < bound
