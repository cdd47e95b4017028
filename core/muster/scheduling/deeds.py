"""What one cycle has decided so far, and what remains of it in the end.

The decisions of one instant are worked out until nothing changes, and only their result is carried
out: a gang that starts and is displaced in the same cycle was never started.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from muster.scheduling.gathering import Scheme
from muster.scheduling.holders import Holder, spread_of
from muster.scheduling.placement import Run
from muster.scheduling.plan import (
    Admit,
    Deed,
    Grow,
    Preempt,
    Replace,
    Victim,
    Withdraw,
)
from muster.scheduling.snapshot import Gang, Pending
from muster.scheduling.tree import Tree
from muster.scheduling.wording import gpus_of, number_of, place_of, replicas_of


@dataclass(slots=True)
class Start:
    """A gang that starts in this cycle, or that is going to when its victims have left."""

    pending: Pending
    runs: tuple[Run, ...]
    victims: tuple[Victim, ...] = ()
    behind: tuple[str, ...] = ()
    is_claim: bool = False
    holder: Holder | None = None
    """As others see it, once it starts."""

    @property
    def gang(self) -> Gang:
        """Which one."""
        return self.pending.gang

    @property
    def replicas(self) -> int:
        """How many start."""
        return sum(replicas for _, replicas in self.runs)

    @property
    def spread(self) -> dict[int, int]:
        """Replicas by node."""
        return spread_of(nodes_of(self.runs))


@dataclass(slots=True)
class Gain:
    """Places that a running gang gets: for lost ranks, or further ones."""

    gang: Gang
    ranks: tuple[int, ...] | None
    """The lost ranks that are replaced; `None` for growth."""
    nodes: list[int] = field(default_factory=list)
    behind: set[str] = field(default_factory=set)
    victims: tuple[Victim, ...] = ()
    is_claim: bool = False


@dataclass(slots=True)
class Deeds:
    """By gang, in the order in which they were decided."""

    tree: Tree
    first: list[Deed] = field(default_factory=list)
    """What was decided before the turns of the pending gangs."""
    starts: dict[str, Start] = field(default_factory=dict)
    gains: list[Gain] = field(default_factory=list)

    def __iter__(self) -> Iterator[Deed]:
        # All that frees something comes before all that uses it.
        yield from self.first
        uses: list[Deed] = []
        for gain in self.gains:
            if gain.is_claim:
                # What it gets at once comes before what it claims: a claim ends with what it gets.
                yield from (use for use in uses if use.gang == gain.gang.key)
                uses = [use for use in uses if use.gang != gain.gang.key]
            yield from self._of_gain(gain, uses)
        for start in self.starts.values():
            yield from self._of_start(start, uses)
        yield from uses

    def spare(self, key: str) -> None:
        """A gang neither leaves nor starts."""
        del self.starts[key]
        takers: list[Start | Gain] = [*self.starts.values(), *self.gains]
        for taker in takers:
            # Surplus that was taken from it before is gone all the same.
            taker.victims = tuple(
                victim for victim in taker.victims if victim.gang != key or victim.ranks
            )

    def forget(self, key: str) -> None:
        """A gang leaves as a whole: nothing else happens to it before."""
        self.first = [d for d in self.first if d.gang != key or isinstance(d, Withdraw)]
        self.gains = [gain for gain in self.gains if gain.gang.key != key]

    def _of_start(self, start: Start, uses: list[Deed]) -> Iterator[Deed]:
        names = self._names(nodes_of(start.runs))
        needs, gang = start.gang.needs, start.gang
        if start.victims or start.is_claim:
            yield Preempt(gang.key, names, start.victims, _words(start.victims))
        if not start.is_claim:
            gpus = start.replicas * needs.gpus
            amount = gpus_of(gpus) if gpus else replicas_of(start.replicas, needs)
            why = f"{amount} on {place_of(self.tree, start.spread)}"
            uses.append(Admit(gang.key, names, why, start.behind))

    def _of_gain(self, gain: Gain, uses: list[Deed]) -> Iterator[Deed]:
        if not gain.nodes:
            return
        key, names = gain.gang.key, self._names(gain.nodes)
        if gain.victims or gain.is_claim:
            yield Preempt(key, names, gain.victims, _words(gain.victims))
        if gain.is_claim:
            return
        if gain.ranks is None:
            uses.append(Grow(key, names, tuple(sorted(gain.behind))))
        else:
            uses.append(Replace(key, gain.ranks, names))

    def _names(self, nodes: Iterable[int]) -> tuple[str, ...]:
        return tuple(self.tree.names[node] for node in nodes)


def nodes_of(runs: Iterable[Run]) -> list[int]:
    """The node of each rank."""
    return [node for node, replicas in runs for _ in range(replicas)]


def victims_of(scheme: Scheme) -> tuple[Victim, ...]:
    """Who really leaves: nobody who only started in this cycle."""
    found = []
    for option, right in zip(scheme.options, scheme.rights, strict=True):
        holder, ranks = option.holder, option.ranks
        if ranks is not None:
            # What it only got in this cycle it never had.
            ranks = tuple(rank for rank in ranks if rank < len(holder.nodes) - holder.grown)
        if not holder.is_fresh and ranks != ():
            found.append(Victim(holder.key, ranks, right, round(option.price)))
    return tuple(found)


def _words(victims: tuple[Victim, ...]) -> str:
    if not victims:
        return "waits for others to leave"
    whole = [victim for victim in victims if victim.ranks is None]
    surplus = sum(len(victim.ranks) for victim in victims if victim.ranks is not None)
    parts = []
    if whole:
        names = ", ".join(victim.gang for victim in whole[:3])
        more = f" and {len(whole) - 3} more" if len(whole) > 3 else ""
        parts.append(f"evicts {names}{more}")
    if surplus:
        parts.append(f"takes {number_of(surplus, 'surplus replica')}")
    lost = sum(victim.lost_gpu_seconds for victim in victims)
    return f"{' and '.join(parts)}; {lost / 3600:.2f} GPU-hours since their last checkpoints"
