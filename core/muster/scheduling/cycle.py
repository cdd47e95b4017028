"""One pass from a snapshot to a plan.

1. What is under way: claims are kept, used or given up.
2. Repair: lost replicas are replaced, before anybody else gets what could replace them.
3. Turns: the pending gangs, one after the other, in the order of the queues. Each takes its place
   on what is idle, or makes room for itself where it has the right to; the first that can do
   neither gets a reservation, and those behind it backfill.
4. Again from 3, as long as somebody had to leave.
5. Growth: elastic gangs take further replicas from what is left, one at a time.
6. Reasons: why every other gang waits, from what is left at the end.

Equal questions are asked once: what did not fit does not fit until something comes free.
"""

from bisect import insort
from collections.abc import Sequence
from math import inf

from muster.scheduling.backfill import Backfill, Place
from muster.scheduling.deeds import Deeds, Start, victims_of
from muster.scheduling.explain import is_never, obstacle
from muster.scheduling.fair_share import Shares
from muster.scheduling.gathering import Scheme
from muster.scheduling.growth import Growth
from muster.scheduling.holders import Holder, roster_of, taken_at_reserved_times
from muster.scheduling.order import Turns
from muster.scheduling.outlook import Outlook
from muster.scheduling.plan import Plan, Victim
from muster.scheduling.policy import Policy
from muster.scheduling.repair import Repair
from muster.scheduling.snapshot import Gang, Pending, Question, Run, Snapshot
from muster.scheduling.state import Ask, State
from muster.scheduling.taking import Taking
from muster.scheduling.trial import Books, Trial
from muster.scheduling.underway import Underway
from muster.scheduling.waits import waits
from muster.scheduling.waking import wake_at

_EVICTIONS = 3
"""How often a gang makes others leave in one instant, so that every instant comes to an end."""


def plan_cycle(snapshot: Snapshot, policy: Policy, now: float) -> Plan:
    """What happens now, and why everything else waits. *now* in seconds since the epoch."""
    barred: frozenset[str] = frozenset()
    while True:
        cycle = _Cycle(snapshot, policy, now, barred)
        displaced = cycle.decide()
        if not displaced:
            return cycle.plan()
        # They made others leave and have to leave themselves in one instant: neither happened.
        barred |= displaced


class _Cycle:
    """What one cycle has decided so far."""

    def __init__(
        self, snapshot: Snapshot, policy: Policy, now: float, barred: frozenset[str]
    ) -> None:
        trial = Trial(snapshot)
        shares = Shares(trial, policy, now)
        roster = roster_of(snapshot)
        took = taken_at_reserved_times(roster, snapshot)
        self._state = State(trial, roster, shares, policy, now, took)
        self._barred = barred
        """Gangs that make nobody leave in this cycle."""
        self._deeds = Deeds(snapshot.tree)
        self._lanes: dict[str, Sequence[Pending]] = dict(snapshot.pending)
        self._refused: dict[tuple[Question, str], float] = {}
        """What has no place, and has none until something comes free: up to which priority."""
        self._never: dict[Question, bool] = {}
        self._claimants: set[str] = set()
        self._evictions: dict[str, int] = {}
        """How often each gang made others leave."""
        self._underway = Underway(self._state, self._deeds)
        self._taking = Taking(self._state, self._deeds)
        self._backfill = Backfill(self._state)
        self._outlook = Outlook(self._state)

    def decide(self) -> frozenset[str]:
        """Everything but the reasons; who made others leave and has to leave itself."""
        self._underway.open_books()
        for lane in self._state.snapshot.pending.values():
            for pending in lane:
                if pending.gang.claim:
                    self._follow(pending)
        Repair(
            self._state, self._deeds, self._underway, self._taking, self._backfill, self._barred
        ).decide()
        self._admit()
        growth = Growth(self._state, self._deeds, self._underway, self._taking, self._backfill)
        while growth.grow():
            self._admit()
        for key in sorted(self._taking.evicted.keys() & self._deeds.starts.keys()):
            self._taking.spare(key)
        return frozenset(self._taking.displaced)

    def plan(self) -> Plan:
        """What was decided, and the reasons for everything that was not."""
        lanes = self._lanes = self._waiting()
        reasons = waits(
            lanes,
            frozenset(self._claimants),
            self._backfill.reservations,
            self._state,
            self._outlook,
        )
        return Plan((*self._deeds, *reasons), wake_at(self._state, lanes))

    def _follow(self, pending: Pending) -> None:
        """Let a gang for which others are leaving start as soon as it can."""
        place = self._underway.follow(pending)
        if place is None:
            self._claimants.add(pending.gang.key)
        elif place.runs is not None:
            holder = self._start(pending, place)
            # What others left for it is not taken from it before it has started.
            holder.is_asked = True

    def _admit(self) -> None:
        """Pass over the pending gangs until nobody has to leave any more."""
        has_freed = True
        while has_freed:
            self._refused.clear()
            self._backfill.clear()
            self._lanes = self._waiting()
            turns = Turns(
                self._lanes,
                self._state.shares,
                self._state.trial,
                self._state.judged_on,
                self._is_refused,
            )
            has_freed = False
            for pending in turns:
                has_freed |= self._consider(pending)

    def _consider(self, pending: Pending) -> bool:
        """Start the gang if it can; whether anybody had to leave for it."""
        gang, question = pending.gang, pending.question
        if self._is_refused(pending) or gang.key in self._claimants:
            return False
        if obstacle(question, self._state.trial) is not None:
            self._refused[question, ""] = inf
            return False
        ask = Ask(gang, question, question.replicas)
        if self._outlook.is_hopeless(gang, question):
            self._refused[question, ""] = gang.priority
            self._reserve(ask)
            return False
        place = self._backfill.place(ask)
        if place.runs is not None:
            self._start(pending, place)
            return False
        if gang.key not in self._barred and self._evictions.get(gang.key, 0) < _EVICTIONS:
            scheme = self._state.scheme(ask)
            if scheme is not None and scheme.options and self._backfill.allows(ask, scheme):
                self._evict(pending, ask, scheme)
                return True
            if scheme is None and not place.is_held_up:
                spared = self._spares(gang)
                if spared and not self._state.might_take_from(ask, spared):
                    # It may not, but nobody of its queue could: so this holds for all of them.
                    spared = ""
                self._refused[question, spared] = gang.priority
        self._reserve(ask)
        return False

    def _is_refused(self, pending: Pending) -> bool:
        gang, question = pending.gang, pending.question
        if gang.priority <= self._refused.get((question, ""), -inf):
            return True
        spared = self._spares(gang)
        return bool(spared) and gang.priority <= self._refused.get((question, spared), -inf)

    def _spares(self, gang: Gang) -> str:
        """The gang from which it may not take back what that took from it, if any."""
        displaced = gang.displaced
        is_bound = displaced is not None and displaced.at >= self._state.snapshot.changed
        return displaced.by if displaced is not None and is_bound else ""

    def _reserve(self, ask: Ask) -> None:
        if self._state.policy.reservation and not self._backfill.is_covered(ask):
            is_no_use = self._never.get(ask.question)
            if is_no_use is None:
                is_no_use = self._never[ask.question] = is_never(ask.question, self._state.trial)
            if not is_no_use:
                self._backfill.reserve(ask)

    def _start(
        self,
        pending: Pending,
        place: Place,
        scheme: Scheme | None = None,
        victims: tuple[Victim, ...] = (),
    ) -> Holder:
        assert place.runs is not None
        gang, state = pending.gang, self._state
        start = Start(pending, place.runs, victims, place.behind)
        state.trial.take(gang.queue, gang.needs, start.spread, gang.user)
        nodes = [node for node, replicas in place.runs for _ in range(replicas)]
        run = Run(state.now, behind=place.behind)
        holder = Holder(gang, nodes, state.now, run, is_fresh=True, has_evicted=bool(victims))
        state.roster.add(holder)
        self._deeds.starts[gang.key] = start
        ask = Ask(gang, pending.question, start.replicas)
        options = scheme.options if scheme else ()
        self._backfill.note(ask, start.spread, place.behind, options)
        return holder

    def _evict(self, pending: Pending, ask: Ask, scheme: Scheme) -> None:
        """Take what the scheme frees, and start, now or when everybody has left."""
        gang = pending.gang
        self._evictions[gang.key] = self._evictions.get(gang.key, 0) + 1
        victims = victims_of(scheme)
        is_later = self._taking.take(scheme.options, gang.key)
        nodes = [node for node, replicas in scheme.runs for _ in range(replicas)]
        is_later |= not self._taking.has_room(ask, nodes)
        if not is_later:
            self._start(pending, Place(scheme.runs), scheme, victims)
            return
        start = Start(pending, scheme.runs, victims, is_claim=True)
        self._state.trial.take(gang.queue, gang.needs, start.spread, gang.user, Books.AFTER)
        self._deeds.starts[gang.key] = start
        self._claimants.add(gang.key)
        self._backfill.note(ask, start.spread, (), scheme.options)

    def _waiting(self) -> dict[str, Sequence[Pending]]:
        """The gangs that hold nothing, by queue in the order of their turns."""
        starts = self._deeds.starts
        lanes: dict[str, Sequence[Pending]] = {}
        back = self._taking.returned
        queues = sorted({*self._lanes, *(pending.gang.queue for pending in back)})
        stirred = {start.gang.queue for start in starts.values()}
        stirred |= {pending.gang.queue for pending in back}
        for queue in queues:
            if queue not in stirred:
                # The same object says that nothing has changed.
                lanes[queue] = self._lanes[queue]
                continue
            lane = [
                pending
                for pending in self._lanes.get(queue, ())
                if pending.gang.key not in starts or starts[pending.gang.key].is_claim
            ]
            known = {pending.gang.key for pending in lane} if back else set()
            for pending in back:
                key = pending.gang.key
                if pending.gang.queue == queue and key not in known and key not in starts:
                    known.add(key)
                    insort(lane, pending)
            if lane:
                lanes[queue] = lane
        back.clear()
        return lanes
