"""Gangs that lost replicas: replaced before anybody else gets what could replace them.

Every other replica stays where it is, and ranks are kept. Parts are replaced one by one, and an
unreplaceable one does not hold up another. A replacement may make others leave as a start may, but
only if the gang is whole with it. An elastic gang above its minimum goes on with what is left.
When the time is over the gang is requeued whole.
"""

from collections.abc import Iterator, Sequence

from muster.scheduling.backfill import Backfill
from muster.scheduling.deeds import Deeds, Gain, victims_of
from muster.scheduling.holders import Holder
from muster.scheduling.near import allowed, circles, question_of
from muster.scheduling.order import turn_of
from muster.scheduling.plan import Leave, Requeue, Shrink, Victim
from muster.scheduling.rights import Option
from muster.scheduling.state import Ask, State
from muster.scheduling.taking import Taking
from muster.scheduling.trial import Books
from muster.scheduling.underway import Underway


class Repair:
    """The repairs of one cycle."""

    def __init__(
        self,
        state: State,
        deeds: Deeds,
        underway: Underway,
        taking: Taking,
        backfill: Backfill,
        barred: frozenset[str],
    ) -> None:
        """*barred* gangs make nobody leave in this cycle."""
        self._barred = barred
        self._state = state
        self._deeds = deeds
        self._underway = underway
        self._taking = taking
        self._backfill = backfill
        self._tree = state.snapshot.tree

    def decide(self) -> None:
        """Everything for gangs that lost replicas, or are about to."""
        self._drain()
        broken = [holder for holder in self._state.roster.special() if holder.gang.lost]
        for holder in sorted(broken, key=lambda holder: turn_of(holder.gang)):
            if holder.key in self._state.roster:
                self._mend(self._state.roster.change(holder))

    def _drain(self) -> None:
        draining = self._state.snapshot.draining
        if not draining:
            return
        for holder in sorted(self._state.roster, key=lambda holder: holder.key):
            asked = {
                rank
                for leaving in holder.gang.leaving
                for rank in (range(len(holder.nodes)) if leaving.ranks is None else leaving.ranks)
            }
            ranks = tuple(
                rank
                for rank, node in enumerate(holder.nodes)
                if node in draining and rank not in asked
            )
            if ranks:
                names = sorted({self._tree.names[holder.nodes[rank]] for rank in ranks})
                why = f"{', '.join(names)} is being drained"
                self._deeds.first.append(Leave(holder.key, ranks, why))

    def _mend(self, holder: Holder) -> None:
        gang, policy, now = holder.gang, self._state.policy, self._state.now
        held = self._held(holder)
        if held >= gang.min_replicas and gang.min_replicas < gang.replicas:
            if self._underway.has_claim(gang.key):
                self._underway.give_up(gang.key)
                self._underway.withdraw(gang.key, "it goes on with what is left")
            self._deeds.first.append(Shrink(gang.key, gang.lost))
            nodes = [n for rank, n in enumerate(holder.nodes) if rank not in gang.lost]
            holder.nodes = nodes
            return
        lost_at = now if holder.run.lost_at is None else holder.run.lost_at
        if now >= lost_at + policy.replace_failed_for:
            self._requeue(holder)
            return
        if _leaves(holder):
            return
        if self._underway.has_claim(gang.key):
            self._follow(holder)
            return
        lost = self._replace_on_idle(holder)
        # Others leave for what it cannot run without, and for nothing beyond that.
        needed = gang.min_replicas - self._held(holder)
        lost = lost[: max(needed, 0)]
        is_whole = bool(lost) and gang.key not in self._barred and self._at_cost(holder, lost)
        if lost and not is_whole:
            ask, _ = next(self._asks(holder, lost))
            if policy.reservation:
                self._backfill.reserve(ask)

    def _held(self, holder: Holder) -> int:
        """Replicas that run or have finished, with what it got in this cycle."""
        current = self._state.roster.get(holder.key) or holder
        return current.replicas + len(holder.gang.finished)

    def _requeue(self, holder: Holder) -> None:
        gang = holder.gang
        seconds = self._state.policy.replace_failed_for
        if self._underway.has_claim(gang.key):
            self._underway.give_up(gang.key)
            self._underway.withdraw(gang.key, "its time to be repaired is over")
        lost = len(gang.lost)
        why = f"{lost} of {len(gang.placement or ())} replicas not replaced within {seconds:g} s"
        self._deeds.first.append(Requeue(gang.key, why))
        books = Books.NOW if _leaves(holder) else Books.BOTH
        self._state.leave(holder, books)
        self._taking.requeued(holder)

    def _follow(self, holder: Holder) -> None:
        """A claim for all that it lost: used when there is room, else kept or given up."""
        gang = holder.gang
        nodes = self._underway.give_up(gang.key)
        question = question_of(holder.gang, len(gang.lost))
        ask = Ask(gang, question, len(gang.lost))
        if not self._underway.is_good(ask, nodes):
            self._underway.withdraw(gang.key, "what was being freed for it is of no use any more")
            return
        if self._underway.has_room(ask, nodes, after=False):
            self._underway.withdraw(gang.key, "it is repaired")
            self._put(holder, gang.lost, list(nodes))
            return
        self._underway.take_up(gang.key)

    def _replace_on_idle(self, holder: Holder) -> tuple[int, ...]:
        """Replace what has room, part by part and rank by rank; what is still lost then."""
        left: list[int] = []
        for rank in holder.gang.lost:
            node = self._nearest(holder, rank)
            if node is None:
                left.append(rank)
            else:
                self._put(holder, (rank,), [node])
        return tuple(left)

    def _nearest(self, holder: Holder, rank: int) -> int | None:
        """The tightest node with room, as near as can be to the rank's neighbours."""
        for within in circles(self._tree, holder, rank):
            ask = Ask(holder.gang, question_of(holder.gang, 1), 1, within)
            runs = self._state.placed(ask)
            if runs is not None:
                return runs[0][0]
        return None

    def _at_cost(self, holder: Holder, lost: Sequence[int]) -> bool:
        """Replace all that is lost, part by part, by making others leave."""
        ask = Ask(holder.gang, question_of(holder.gang, len(lost)), len(lost))
        mark, roster = self._taking.mark(), self._state.roster
        self._state.roster = roster.copy()
        nodes: list[int] = []
        ranks: list[int] = []
        options: list[Option] = []
        victims: list[Victim] = []
        for of_part, part in self._asks(holder, lost):
            scheme = self._state.scheme(of_part)
            if scheme is None or not self._backfill.allows(of_part, scheme):
                self._taking.undo(mark)
                self._state.roster = roster
                return False
            self._taking.book(scheme, of_part)
            options += scheme.options
            victims += victims_of(scheme)
            nodes += [node for node, replicas in scheme.runs for _ in range(replicas)]
            ranks += part
        order = sorted(range(len(ranks)), key=ranks.__getitem__)
        self._taking.undo(mark)
        self._state.roster = roster
        if not options:
            return False
        is_later = self._taking.take(options, holder.key)
        is_later |= not self._taking.has_room(ask, nodes)
        gain = Gain(
            holder.gang,
            tuple(ranks[n] for n in order),
            [nodes[n] for n in order],
            victims=tuple(victims),
            is_claim=is_later,
        )
        self._taking.hold(holder, gain)
        self._deeds.gains.append(gain)
        return True

    def _asks(self, holder: Holder, lost: Sequence[int]) -> Iterator[tuple[Ask, list[int]]]:
        """What has to be found, one for each part that lost something."""
        size = holder.gang.topology.part_size or len(holder.nodes)
        parts: dict[int, list[int]] = {}
        for rank in lost:
            parts.setdefault(rank // size, []).append(rank)
        for part in parts.values():
            within = allowed(self._tree, holder, part[0])
            yield Ask(holder.gang, question_of(holder.gang, len(part)), len(part), within), part

    def _put(self, holder: Holder, ranks: tuple[int, ...], nodes: list[int]) -> None:
        gain = Gain(holder.gang, ranks, nodes)
        self._taking.hold(holder, gain)
        self._deeds.gains.append(gain)


def _leaves(holder: Holder) -> bool:
    """Whether all of it was asked to leave."""
    return any(leaving.ranks is None for leaving in holder.gang.leaving)
