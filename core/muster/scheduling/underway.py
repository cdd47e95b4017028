"""What earlier cycles decided and nobody has finished carrying out: who leaves, and for whom.

What is being freed belongs to its claimant until that starts or gives up. If it can start on other
idle capacity meanwhile it does, and whoever was asked to leave for it stays.
"""

from collections.abc import Sequence

from muster.scheduling.backfill import Place
from muster.scheduling.deeds import Deeds
from muster.scheduling.explain import obstacle
from muster.scheduling.holders import AWAY, Holder, spread_of
from muster.scheduling.plan import Withdraw
from muster.scheduling.snapshot import Gang, Pending
from muster.scheduling.state import Ask, State
from muster.scheduling.trial import Books


class Underway:
    """The claims and the requests to leave of a snapshot."""

    def __init__(self, state: State, deeds: Deeds) -> None:
        self._state = state
        self._deeds = deeds
        self._leaving: dict[str, list[Holder]] = {}
        """Who was asked to leave, by claimant."""
        self._claims: dict[str, tuple[Gang, list[int]]] = {}
        self._special = state.roster.special()
        for holder in self._special:
            for leaving in holder.gang.leaving:
                if leaving.claimant:
                    self._leaving.setdefault(leaving.claimant, []).append(holder)

    def open_books(self) -> None:
        """Count whoever was asked to leave as gone, and every claim as taken, in the book *after*;
        drop what has no claimant any more.
        """
        for holder in self._special:
            for leaving in holder.gang.leaving:
                self._move(holder, leaving.ranks, -1)
        gangs = [holder.gang for holder in self._special]
        for lane in self._state.snapshot.pending.values():
            gangs += [pending.gang for pending in lane if pending.gang.claim]
        position = self._state.snapshot.tree.position
        for gang in gangs:
            if gang.claim:
                nodes = [position.get(name, AWAY) for name in gang.claim]
                self._claims[gang.key] = gang, nodes
                self._book(gang.key, Books.AFTER, 1)
        for claimant in sorted(self._leaving.keys() - self._claims.keys()):
            self.withdraw(claimant, "nobody waits for what it would free")

    def follow(self, pending: Pending) -> Place | None:
        """Where a claimant starts now; `None` while it has to wait for those who leave. A claim
        that is of no use any more is given up, and the gang has no place then.
        """
        gang = pending.gang
        if gang.key not in self._claims:
            return Place(None)
        ask = Ask(gang, pending.question, pending.question.replicas)
        nodes = self.give_up(gang.key)
        if obstacle(ask.question, self._state.trial) or not self.is_good(ask, nodes):
            self.withdraw(gang.key, "what was being freed for it is of no use any more")
            return Place(None)
        runs = self._state.placed(ask)
        if runs is None:
            self.take_up(gang.key)
            return None
        if not self.is_being_freed(gang.key) and self.has_room(ask, nodes, after=False):
            runs = tuple((node, 1) for node in nodes)
        self.withdraw(gang.key, "it starts")
        return Place(runs)

    def is_good(self, ask: Ask, nodes: Sequence[int]) -> bool:
        """Whether a claim that is out of the books has room once everybody has left."""
        return (
            min(nodes, default=0) >= 0
            and len(nodes) == ask.replicas
            and self.has_room(ask, nodes, after=True)
        )

    def withdraw(self, claimant: str, why: str) -> None:
        """Nobody has to leave any more for a gang whose claim is out of the books; whoever is
        still there stays.
        """
        for holder in self._leaving.pop(claimant, ()):
            for leaving in holder.gang.leaving:
                if leaving.claimant == claimant:
                    self._move(holder, leaving.ranks, 1)
            self._state.roster.change(holder).is_asked = any(
                leaving.claimant in self._leaving or not leaving.claimant
                for leaving in holder.gang.leaving
            )
        self._claims.pop(claimant, None)
        self._deeds.first.append(Withdraw(claimant, why))

    def has_claim(self, key: str) -> bool:
        """Whether something is being freed for a gang."""
        return key in self._claims

    def give_up(self, key: str) -> list[int]:
        """Take a claim out of the books; the nodes it was for."""
        self._book(key, Books.AFTER, -1)
        return self._claims[key][1]

    def take_up(self, key: str) -> None:
        """Put a claim back into the books."""
        self._book(key, Books.AFTER, 1)

    def is_being_freed(self, key: str) -> bool:
        """Whether somebody has yet to leave for a gang."""
        return key in self._leaving

    def has_room(self, ask: Ask, nodes: Sequence[int], *, after: bool) -> bool:
        """Whether the gang fits these nodes, now or when everybody has left."""
        field = self._state.trial.field(ask.question.needs, ask.question.rules, after=after)
        counts = field.counts[-1]
        return all(counts[node] >= number for node, number in spread_of(nodes).items())

    def _book(self, key: str, books: Books, sign: int) -> None:
        gang, nodes = self._claims[key]
        move = self._state.trial.take if sign > 0 else self._state.trial.give
        move(gang.queue, gang.needs, spread_of(nodes), gang.user, books)

    def _move(self, holder: Holder, ranks: tuple[int, ...] | None, sign: int) -> None:
        gang = holder.gang
        move = self._state.trial.take if sign > 0 else self._state.trial.give
        move(gang.queue, gang.needs, holder.spread(ranks), gang.user, Books.AFTER)
