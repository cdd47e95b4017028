"""Elastic gangs take further replicas from what is left, one at a time in the order of the queues.

Growth uses idle capacity only. The one exception: within the guarantee of its queue it may take
surplus replicas, never a gang's minimum, from a queue above its own, which it never takes below
it. A gang that only starts in this cycle is placed anew as a whole for each replica that it grows
by.
"""

from collections.abc import Iterator, Sequence

from muster.scheduling.backfill import Backfill, Place
from muster.scheduling.deeds import Deeds, Gain, Start, victims_of
from muster.scheduling.explain import obstacle
from muster.scheduling.holders import Holder
from muster.scheduling.near import circles, question_of
from muster.scheduling.order import Turns, turn_of
from muster.scheduling.snapshot import Order, Pending
from muster.scheduling.state import Ask, State
from muster.scheduling.taking import Taking
from muster.scheduling.underway import Underway


class Growth:
    """The growth of one cycle."""

    def __init__(
        self, state: State, deeds: Deeds, underway: Underway, taking: Taking, backfill: Backfill
    ) -> None:
        self._state = state
        self._deeds = deeds
        self._underway = underway
        self._taking = taking
        self._backfill = backfill
        self._full: set[str] = set()
        """Gangs that found no further place."""

    def grow(self) -> bool:
        """Let every elastic gang take what it can; whether one of them left a node for that."""
        self._full.clear()
        lanes = self._lanes()
        if not lanes:
            return False
        is_alone = len(lanes) == 1
        turns = Turns(
            {queue: self._again_and_again(lane) for queue, lane in lanes.items()},
            self._state.shares,
            self._state.trial,
            self._state.judged_on,
            lambda _: False,
        )
        has_left = False
        for pending in turns:
            holder = self._state.roster.get(pending.gang.key)
            if holder is None or not self._wants_more(holder):
                continue
            start = self._deeds.starts.get(holder.key)
            if start is not None and holder.is_fresh:
                has_left |= self._anew(start, holder, is_alone=is_alone)
            elif not self._further(pending, holder):
                self._full.add(holder.key)
        return has_left

    def _lanes(self) -> dict[str, list[Pending]]:
        """The elastic gangs that have less than they would take, by queue in their order."""
        lanes: dict[str, list[Pending]] = {}
        queues = self._state.snapshot.quotas.queues
        for holder in self._state.roster.special():
            if self._wants_more(holder):
                gang = holder.gang
                queue = queues.get(gang.queue)
                turn = turn_of(gang, queue.order if queue else Order.FIFO)
                pending = Pending(turn, gang, question_of(gang, 1))
                if obstacle(pending.question, self._state.trial) is None:
                    lanes.setdefault(gang.queue, []).append(pending)
        for lane in lanes.values():
            lane.sort()
        return lanes

    def _wants_more(self, holder: Holder) -> bool:
        gang = holder.gang
        return (
            len(holder.nodes) < gang.replicas
            and not gang.is_suspended
            and not holder.is_asked
            and not holder.lacking
            and holder.key not in self._full
            and not self._underway.has_claim(holder.key)
        )

    def _again_and_again(self, lane: Sequence[Pending]) -> Iterator[Pending]:
        """Each gang for as long as it grows: having grown, it is still the first of its queue."""
        for pending in lane:
            while True:
                holder = self._state.roster.get(pending.gang.key)
                if holder is None or not self._wants_more(holder):
                    break
                yield pending

    def _anew(self, start: Start, holder: Holder, *, is_alone: bool) -> bool:
        """Place a gang that starts now anew with more replicas; whether that left some node."""
        gang, trial = start.gang, self._state.trial
        before = start.spread
        trial.give(gang.queue, gang.needs, before, gang.user)
        low, high = start.replicas, gang.replicas if is_alone else start.replicas + 1
        while low < high:
            middle = (low + high + 1) // 2
            place = self._place_all(start, middle)
            if place.runs is None or not set(place.behind) <= set(start.behind):
                high = middle - 1
            else:
                low, start.runs = middle, place.runs
        trial.take(gang.queue, gang.needs, start.spread, gang.user)
        if start.replicas == len(holder.nodes) or is_alone:
            self._full.add(gang.key)
        holder.nodes = [node for node, replicas in start.runs for _ in range(replicas)]
        after = start.spread
        return any(replicas > after.get(node, 0) for node, replicas in before.items())

    def _place_all(self, start: Start, replicas: int) -> Place:
        return self._backfill.place(Ask(start.gang, start.pending.question, replicas))

    def _further(self, pending: Pending, holder: Holder) -> bool:
        """One replica more for a gang that runs already; whether it got one."""
        ask = Ask(holder.gang, pending.question, 1, is_growth=True)
        for within in circles(self._state.snapshot.tree, holder, len(holder.nodes)):
            near = Ask(holder.gang, pending.question, 1, within, is_growth=True)
            place = self._backfill.place(near)
            if place.runs is not None:
                gain = self._gain_of(holder)
                self._put(holder, gain, place.runs[0][0], place.behind)
                return True
            ask = near
        return self._reclaim(ask, holder)

    def _reclaim(self, ask: Ask, holder: Holder) -> bool:
        scheme = self._state.scheme(ask)
        if scheme is None or not scheme.options or not self._backfill.allows(ask, scheme):
            return False
        victims = victims_of(scheme)
        node = scheme.runs[0][0]
        is_later = self._taking.take(scheme.options, holder.key)
        is_later |= not self._taking.has_room(ask, [node])
        gain = Gain(holder.gang, None, [node], victims=victims, is_claim=is_later)
        self._taking.hold(holder, gain)
        self._deeds.gains.append(gain)
        if is_later:
            # One claim at a time.
            self._full.add(holder.key)
        return True

    def _gain_of(self, holder: Holder) -> Gain:
        last = self._deeds.gains[-1] if self._deeds.gains else None
        if last is None or last.gang is not holder.gang or last.ranks is not None or last.victims:
            last = Gain(holder.gang, None)
            self._deeds.gains.append(last)
        return last

    def _put(self, holder: Holder, gain: Gain, node: int, behind: Sequence[str]) -> None:
        part = Gain(holder.gang, None, [node])
        self._taking.hold(holder, part)
        gain.nodes.append(node)
        gain.behind.update(behind)
