"""The smallest changes with which a job that waits would start now, each proven by a dry run.

Single changes first: fewer replicas (the most that start), a wider level of the topology, another
GPU model, any capacity type, other nodes, higher limits, and for a job that only a reservation
keeps out, what makes it backfill. Where none of them is enough alone, fewer replicas or higher
limits together with one of the others. What is suggested was tried on the cluster as it is, and
once more on a copy made afresh, with all decisions of the moment carried out.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from muster.scheduling.cluster import Objects
from muster.scheduling.plan import Victim
from muster.scheduling.policy import Policy
from muster.scheduling.quota import Quotas
from muster.whatif import variants
from muster.whatif.limits import lowest_limits
from muster.whatif.trying import Edit, Start, Trying, Variant

_MOST_SECONDS: Final = 30 * 86_400
"""The longest maxRunTime that is suggested."""
_SHORTEST_SECONDS: Final = 60


@dataclass(frozen=True, slots=True)
class Change:
    """Something that would start the job now."""

    what: str
    """In words, as an instruction."""
    edits: tuple[Edit, ...]
    """The same as patches."""
    objects: Objects
    """The cluster with it."""
    starts: bool
    """Whether the dry run started the job: always, in what is suggested."""
    victims: tuple[Victim, ...] = ()
    """Who would have to leave for it."""


def changes(objects: Objects, policy: Policy, now: float, key: str) -> tuple[Change, ...]:
    """The changes for the pending gang *key*, smallest first; none where it starts as it is."""
    return changes_in(Trying(objects, policy, now), key)


def changes_in(trying: Trying, key: str) -> tuple[Change, ...]:
    """The same for a cluster that is being tried already."""
    gang = trying.gangs[key]
    asked = Variant(gang)
    if not gang.is_pending or trying.start(asked) is not None:
        return ()
    return tuple(_Search(trying).changes(asked))


class _Search:
    """The search for one gang."""

    def __init__(self, trying: Trying) -> None:
        self._trying = trying
        snapshot = trying.cluster.snapshot()
        self._quotas: Quotas = snapshot.quotas
        self._levels = [layer.name for layer in snapshot.tree.layers[1:-1]]
        self._models = sorted({model for model in snapshot.columns.models if model})

    def changes(self, asked: Variant) -> Iterator[Change]:
        """All that is worth suggesting."""
        free = variants.unblocked(asked, self._quotas)
        if free is not asked and (change := self._proven(free)) is not None:
            yield change
            return
        singles = list(self._changes(self._singles(free)))
        yield from singles or self._changes(self._pairs(free))

    def _singles(self, base: Variant) -> Iterator[Variant | None]:
        yield self._most_replicas(base)
        for several in self._wider(base):
            yield self._first(several)
        yield lowest_limits(base, self._trying, self._quotas)
        yield self._longest_run(base)

    def _wider(self, base: Variant) -> Iterator[Iterable[Variant]]:
        yield variants.wider(base, self._levels)
        yield variants.other_models(base, self._models)
        yield variants.any_capacity(base)
        yield variants.any_nodes(base)
        yield variants.preemptible(base)

    def _pairs(self, base: Variant) -> Iterator[Variant | None]:
        """Two changes: the widest of one kind, with fewer replicas or higher limits."""
        for several in self._wider(base):
            *_, widest = (None, *several)
            if widest is not None:
                yield self._most_replicas(widest)
                yield lowest_limits(widest, self._trying, self._quotas)
        one = variants.with_replicas(base, 1) if base.gang.min_replicas > 1 else None
        if one is not None and (raised := lowest_limits(one, self._trying, self._quotas)):
            yield raised

    def _changes(self, found: Iterable[Variant | None]) -> Iterator[Change]:
        for variant in found:
            if variant is not None and (change := self._proven(variant)) is not None:
                yield change

    def _proven(self, variant: Variant) -> Change | None:
        start = self._trying.start(variant)
        if start is None or not self._trying.stays_started(variant):
            return None
        return _change(variant, start, self._trying.objects)

    def _first(self, several: Iterable[Variant]) -> Variant | None:
        return next((each for each in several if self._trying.start(each) is not None), None)

    def _most_replicas(self, base: Variant) -> Variant | None:
        """The largest gang that starts, smaller than it asks to be."""
        return self._most(
            1, base.gang.min_replicas - 1, lambda number: variants.with_replicas(base, number)
        )

    def _longest_run(self, base: Variant) -> Variant | None:
        """The longest maxRunTime with which it fits before a reservation, in whole minutes."""
        declared = base.gang.max_run_time
        longest = _MOST_SECONDS if declared is None else int(declared) - 1
        minutes = longest // _SHORTEST_SECONDS
        return self._most(
            1,
            minutes,
            lambda number: variants.with_max_run_time(base, number * _SHORTEST_SECONDS),
        )

    def _most(self, least: int, most: int, variant_of: Callable[[int], Variant]) -> Variant | None:
        """The variant with the largest number that starts, if one with the least does."""
        if least > most or self._trying.start(variant_of(least)) is None:
            return None
        low, high = least, most
        while low < high:
            middle = (low + high + 1) // 2
            if self._trying.start(variant_of(middle)) is None:
                high = middle - 1
            else:
                low = middle
        return variant_of(low)


def _change(variant: Variant, start: Start, objects: Objects) -> Change:
    return Change(
        what=" and ".join(variant.words),
        edits=variant.edits,
        objects=variant.made_in(objects),
        starts=True,
        victims=start.victims,
    )
