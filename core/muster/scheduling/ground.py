"""Where one gang could go if some others left: capacity, topology and limits for sets of
victims."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from muster.scheduling.amounts import Amounts
from muster.scheduling.fit import Mask
from muster.scheduling.movable import freed_on
from muster.scheduling.placement import Request, Ties, find
from muster.scheduling.quota import Held, Quotas
from muster.scheduling.rights import Option
from muster.scheduling.room import Field, counted
from muster.scheduling.snapshot import Question
from muster.scheduling.tree import Tree

_Deficit = tuple[str, str, str, int]
"""A limit that is too low as things stand: its queue, the model or user it is for, GPUs
lacking."""


class Ground:
    """The nodes that a gang may use, and what it lacks there."""

    def __init__(
        self,
        tree: Tree,
        question: Question,
        request: Request,
        free: Amounts,
        mask: Mask,
        ties: Ties,
    ) -> None:
        self.tree = tree
        self.question = question
        self.request = request
        self.free = free
        self.mask = mask
        self.ties = ties
        self._deficits: list[_Deficit] = []

    @property
    def is_plain(self) -> bool:
        """Whether any places in one domain will do, without parts."""
        return self.request.part_size == 1 and self.request.part_layer == self.tree.node_layer

    def set_limits(self, quotas: Quotas, held: Held, model: str | None) -> None:
        """Note the limits that the gang would pass now, on GPUs in all, of a model and a user."""
        queue, user = self.question.queue, self.question.user
        gpus = self.request.replicas * self.question.needs.gpus
        if not gpus:
            return
        found = [
            (name, "", "", held.total.get(name, 0) + gpus - limit)
            for name, limit in quotas.limits(queue)
        ]
        found += [
            (name, model, "", held.by_model.get((name, model), 0) + gpus - limit)
            for name, limited, limit in quotas.limits_by_model(queue)
            if limited == model
        ]
        if user:
            found += [
                (name, "", user, held.by_user.get((name, user), 0) + gpus - limit)
                for name, limit in quotas.user_limits(queue)
            ]
        self._deficits = [deficit for deficit in found if deficit[3] > 0]
        self._lineage_of = quotas.lineage

    def keeps_limits(self, options: Iterable[Option]) -> bool:
        """Whether the gang keeps every limit once these have left."""
        if not self._deficits:
            return True
        options = list(options)
        return all(
            sum(self._relief(option, deficit) for option in options) >= deficit[3]
            for deficit in self._deficits
        )

    def relieves(self, option: Option) -> bool:
        """Whether it leaves room under a limit that the gang would pass."""
        return any(self._relief(option, deficit) for deficit in self._deficits)

    def fits(self, options: Iterable[Option]) -> bool:
        """Whether the gang has a place once these have left."""
        field = self.field(options)
        if field.total < self.request.replicas:
            return False
        return find(field, self.request, self.ties) is not None

    def field(self, options: Iterable[Option]) -> Field:
        """The room once these have left."""
        free = self.free
        places = [
            (node, replicas, option.each)
            for option in options
            for node, replicas in option.spread.items()
        ]
        if places:
            nodes, replicas, each = zip(*places, strict=True)
            free = free + freed_on(nodes, np.array(each).T * np.array(replicas), free.shape[1])
        return counted(self.tree, self.question.needs, free, self.mask)

    def domains(self, most: Field) -> Iterator[tuple[int, int]]:
        """The ranges of nodes in one of which the gang has to be, if *most* has room there."""
        layer = self.tree.layers[self.request.outermost]
        counts = np.where(layer.is_domain, most.counts[self.request.outermost], 0)
        ends = np.append(layer.starts[1:], len(self.tree.names))
        for domain in np.flatnonzero(counts >= self.request.replicas):
            yield int(layer.starts[domain]), int(ends[domain])

    def is_useful(self, option: Option) -> bool:
        """Whether it frees something that the gang could use."""
        return any(self.mask[node] for node in option.spread) or self.relieves(option)

    def is_near(self, option: Option, domain: tuple[int, int]) -> bool:
        """Whether it frees something in a domain, or under a limit."""
        first, end = domain
        if any(first <= node < end and self.mask[node] for node in option.spread):
            return True
        return self.relieves(option)

    def _relief(self, option: Option, deficit: _Deficit) -> int:
        queue, model, user, _ = deficit
        gang = option.holder.gang
        if queue not in self._lineage_of(gang.queue) or (user and gang.user != user):
            return 0
        return option.gpus if model else option.all_gpus


def all_of(choices: Sequence[Sequence[Option]]) -> list[Option]:
    """The most that each holder may have to give."""
    return [options[-1] for options in choices]
