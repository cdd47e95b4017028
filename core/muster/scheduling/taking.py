"""Takes from some what others get, in the trial, the roster and the deeds at once."""

from collections.abc import Sequence
from dataclasses import replace

from muster.scheduling.deeds import Deeds, Gain, Start, nodes_of
from muster.scheduling.gathering import Scheme
from muster.scheduling.holders import Holder, spread_of
from muster.scheduling.order import turn_of
from muster.scheduling.rights import Option, attained_by
from muster.scheduling.snapshot import Displaced, Pending, Question
from muster.scheduling.state import Ask, State
from muster.scheduling.trial import Books


class Taking:
    """What changes hands in one cycle."""

    def __init__(self, state: State, deeds: Deeds) -> None:
        self._state = state
        self._deeds = deeds
        self.displaced: set[str] = set()
        """Who made others leave in this cycle and would have to leave itself."""
        self.evicted: dict[str, Holder] = {}
        """Who ran before this cycle and has to leave as a whole."""
        self.returned: list[Pending] = []
        """Gangs that wait again, to be put into their queues."""

    def take(self, options: Sequence[Option], claimant: str) -> bool:
        """Make these leave for a claimant; whether it has to wait for one of them."""
        self.displaced.update(
            option.holder.key
            for option in options
            if option.holder.has_evicted and option.ranks is None
        )
        waits = [self._take(option, claimant) for option in options]
        return any(waits)

    def has_room(self, ask: Ask, nodes: Sequence[int]) -> bool:
        """Whether there is room on these nodes before anybody else has left."""
        if not self._state.trial.is_split:
            return True
        counts = self._state.trial.field(ask.question.needs, ask.question.rules).counts[-1]
        return all(counts[node] >= number for node, number in spread_of(nodes).items())

    def hold(self, holder: Holder, gain: Gain) -> None:
        """Give a running gang what it gains, or keep it in the book *after*."""
        gang = holder.gang
        books = Books.AFTER if gain.is_claim else Books.BOTH
        self._state.trial.take(gang.queue, gang.needs, spread_of(gain.nodes), gang.user, books)
        if gain.is_claim:
            return
        holder = self._state.roster.change(holder)
        if gain.ranks is None:
            holder.nodes += gain.nodes
            holder.grown += len(gain.nodes)
        else:
            for rank, node in zip(gain.ranks, gain.nodes, strict=True):
                holder.nodes[rank] = node
            holder.has_evicted |= bool(gain.victims)
            # It has nothing before this cycle is carried out that anybody could take.
            holder.is_asked = True

    def requeued(self, holder: Holder) -> None:
        """A gang waits again from now on, in the same cycle."""
        self._return(holder, None)

    def mark(self) -> int:
        """A point to which `undo` returns what was booked."""
        return self._state.trial.mark()

    def undo(self, mark: int) -> None:
        """Forget what was booked since."""
        self._state.trial.rollback(mark)

    def spare(self, key: str) -> bool:
        """Let a gang that was evicted, and starts again elsewhere, stay where it is, if everybody
        else has a place then too; whether it stays.
        """
        start, holder = self._deeds.starts[key], self.evicted[key]
        gang, trial = holder.gang, self._state.trial
        if trial.is_split or start.victims:
            return False
        mark = trial.mark()
        trial.give(gang.queue, gang.needs, start.spread, gang.user)
        field = trial.field(gang.needs, gang.rules)
        spread = holder.spread()
        models = trial.snapshot.columns.models
        old = sorted(models[node] or "" for node in holder.nodes if node >= 0)
        # The same number of each model, so that no limit is passed.
        if old != sorted(models[node] or "" for node in nodes_of(start.runs)) or any(
            field.counts[-1][node] < replicas for node, replicas in spread.items()
        ):
            trial.rollback(mark)
            return False
        trial.take(gang.queue, gang.needs, spread, gang.user)
        started = self._state.roster.get(key)
        assert started is not None
        self._state.roster.remove(started)
        self._state.roster.add(replace(holder, nodes=list(holder.nodes)))
        self._deeds.spare(key)
        del self.evicted[key]
        return True

    def book(self, scheme: Scheme, ask: Ask) -> None:
        """Try out a scheme; `undo` and a roster of before take it back."""
        for option in scheme.options:
            gang = option.holder.gang
            self._state.trial.give(gang.queue, gang.needs, option.spread, gang.user, Books.AFTER)
            roster, ranks = self._state.roster, option.ranks
            current = roster.get(gang.key)
            assert current is not None
            roster.remove(current)
            if ranks is not None:
                # A holder of its own: this one is still in the roster of before.
                roster.add(replace(current, nodes=current.nodes[: -len(ranks)]))
        gang = ask.gang
        nodes = [node for node, replicas in scheme.runs for _ in range(replicas)]
        self._state.trial.take(gang.queue, gang.needs, spread_of(nodes), gang.user, Books.AFTER)

    def _take(self, option: Option, claimant: str) -> bool:
        holder, state = option.holder, self._state
        gang = holder.gang
        is_later = not state.policy.leaves_at_once and not holder.is_fresh
        if option.ranks is not None and holder.grown:
            is_later &= self._ungrow(holder, option.ranks)
        books = Books.AFTER if is_later else Books.BOTH
        state.trial.give(gang.queue, gang.needs, option.spread, gang.user, books)
        if option.ranks is None:
            state.roster.remove(holder)
            self._deeds.forget(gang.key)
            if not holder.is_fresh:
                self.evicted[gang.key] = holder
            if not is_later:
                self._return(holder, claimant)
        else:
            holder = state.roster.change(holder)
            del holder.nodes[len(holder.nodes) - len(option.ranks) :]
            holder.is_asked = is_later
            if holder.is_fresh:
                start = self._deeds.starts[gang.key]
                start.runs = tuple((node, 1) for node in holder.nodes)
        return is_later

    def _ungrow(self, holder: Holder, ranks: Sequence[int]) -> bool:
        """Forget growth of this cycle that is taken back; whether more than that is taken."""
        left = min(len(ranks), holder.grown)
        is_more = left < len(ranks)
        self._state.roster.change(holder).grown -= left
        for gain in reversed(self._deeds.gains):
            if gain.gang.key == holder.key and gain.ranks is None:
                cut = min(left, len(gain.nodes))
                del gain.nodes[len(gain.nodes) - cut :]
                left -= cut
        return is_more

    def _return(self, holder: Holder, claimant: str | None) -> None:
        gang = holder.gang
        start: Start | None = self._deeds.starts.pop(gang.key, None) if holder.is_fresh else None
        if start is not None:
            self.returned.append(start.pending)
            return
        changed = self._state.snapshot.changed
        queue = self._state.snapshot.quotas.queues.get(gang.queue)
        gang = replace(
            gang,
            placement=None,
            run=None,
            leaving=(),
            finished=(),
            is_returning=True,
            attained=attained_by(holder, self._state.now),
            displaced=None if claimant is None else Displaced(claimant, changed),
        )
        question = Question(
            queue=gang.queue,
            needs=gang.needs,
            rules=gang.rules,
            topology=gang.topology,
            replicas=gang.min_replicas,
            is_suspended=gang.is_suspended,
            user=gang.user,
            held_back=gang.held_back,
        )
        turn = turn_of(gang, queue.order) if queue else turn_of(gang)
        self.returned.append(Pending(turn, gang, question))
