"""One pass from a snapshot to a plan.

1. Turns: the pending gangs, one after the other, in the order of the queues.
2. Minimums: each gang whose `min_replicas` fit, within the limits of its queues, takes its place.
3. Growth: elastic gangs that start now take further replicas from what is left, in the same order.
4. Again from 2, as long as growth moved something out of the way.
5. Reasons: why every other gang waits, from what is left at the end.

A gang that cannot start stops nobody behind it: whatever fits starts. Growth happens at the start
of a gang only; one that runs keeps its size. Equal questions are asked once: what did not fit does
not fit until something comes free.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from muster.scheduling.explain import Reason, explain, obstacle
from muster.scheduling.order import turns
from muster.scheduling.placement import Run, find, request_of, settle
from muster.scheduling.plan import Admit, Decision, Plan, Wait
from muster.scheduling.policy import Policy
from muster.scheduling.quota import excess, excess_by_model
from muster.scheduling.snapshot import Pending, Question, Snapshot
from muster.scheduling.tree import Tree
from muster.scheduling.trial import Trial
from muster.scheduling.wording import gpus_of, place_of, replicas_of


def plan_cycle(snapshot: Snapshot, policy: Policy, now: float) -> Plan:
    """What starts, and why everything else does not."""
    del now  # No rule of this stage looks at the time.
    cycle = _Cycle(snapshot)
    waiting = cycle.admit(turns(snapshot, cycle.trial))
    while cycle.grow():
        waiting = cycle.admit(waiting)
    return Plan(tuple(cycle.decisions(policy)))


@dataclass(slots=True)
class _Start:
    """A gang that starts in this cycle, and where."""

    pending: Pending
    runs: tuple[Run, ...]

    @property
    def replicas(self) -> int:
        return sum(replicas for _, replicas in self.runs)

    @property
    def spread(self) -> dict[int, int]:
        spread: dict[int, int] = {}
        for node, replicas in self.runs:
            spread[node] = spread.get(node, 0) + replicas
        return spread


class _Cycle:
    """What one cycle has decided so far."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.trial = Trial(snapshot)
        self._order: dict[str, Pending] = {}
        self._starts: dict[str, _Start] = {}
        self._refused: set[Question] = set()
        """What did not fit, and does not until something comes free."""

    def admit(self, pendings: Iterable[Pending]) -> list[Pending]:
        """Start every gang whose minimum fits, in the given order; give back the others."""
        waiting = []
        for pending in pendings:
            self._order.setdefault(pending.gang.key, pending)
            if pending.question in self._refused or not self._start(pending):
                waiting.append(pending)
        return waiting

    def grow(self) -> bool:
        """Give elastic gangs that start now more replicas; whether one left a node for that.

        One replica at a time in queue order means: the first in order takes what it can before the
        next, since a gang that took one replica is still the first. With it the gang is placed
        anew as a whole, since none of it runs yet.
        """
        starts = [self._starts[key] for key in self._order if key in self._starts]
        freed = [self._grow(s) for s in starts if s.replicas < s.pending.gang.replicas]
        if any(freed):
            self._refused.clear()
        return any(freed)

    def decisions(self, policy: Policy) -> Iterable[Decision]:
        """One decision for each pending gang, in the order in which they were taken."""
        tree, last_said = self.trial.snapshot.tree, self.trial.snapshot.memo.waits
        said = self.trial.snapshot.memo.waits = {}
        verdicts: dict[Question, Reason] = {}
        places: dict[str, int] = {}
        for key, pending in self._order.items():
            start = self._starts.get(key)
            if start is not None:
                yield _admission(start, tree)
                continue
            queue = pending.gang.queue
            places[queue] = places.get(queue, 0) + 1
            verdict = verdicts.get(pending.question)
            if verdict is None:
                if len(verdicts) == policy.max_explained:
                    continue
                verdict = verdicts[pending.question] = explain(pending.question, self.trial)
            said[key] = _wait(last_said.get(key), key, verdict, places[queue])
            yield said[key]

    def _start(self, pending: Pending) -> bool:
        question = pending.question
        runs = None
        if obstacle(question, self.trial) is None:
            runs = placed(question, question.replicas, self.trial)
        if runs is None:
            self._refused.add(question)
            return False
        start = self._starts[pending.gang.key] = _Start(pending, runs)
        self.trial.take(question.queue, question.needs, start.spread)
        return True

    def _grow(self, start: _Start) -> bool:
        """Place a gang anew, as large as it can be; whether that left some node."""
        question, before = start.pending.question, start.spread
        self.trial.give(question.queue, question.needs, before)
        low, high = start.replicas, start.pending.gang.replicas
        while low < high:
            middle = (low + high + 1) // 2
            runs = placed(question, middle, self.trial)
            if runs is None:
                high = middle - 1
            else:
                low, start.runs = middle, runs
        after = start.spread
        self.trial.take(question.queue, question.needs, after)
        return any(replicas > after.get(node, 0) for node, replicas in before.items())


def placed(question: Question, replicas: int, trial: Trial) -> tuple[Run, ...] | None:
    """Where that many replicas would go, within limits and free capacity; `None` if nowhere."""
    quotas, gpus = trial.snapshot.quotas, replicas * question.needs.gpus
    if excess(quotas, trial.held, question.queue, gpus) is not None:
        return None
    barred = excess_by_model(quotas, trial.held, question.queue, gpus)
    field = trial.field(question.needs, question.rules, barred)
    request = request_of(
        question.topology, field.tree, replicas=replicas, gpus=question.needs.gpus
    )
    spot = find(field, request)
    return None if spot is None else settle(field, request, spot)


def _wait(last: Wait | None, key: str, verdict: Reason, position: int) -> Wait:
    """The decision to wait; the value of the last cycle where it says the same.

    To make ten thousand equal values anew takes longer than all the rest of a cycle.
    """
    reason, message = verdict
    if last is not None and last.position == position and (last.reason, last.message) == verdict:
        return last
    return Wait(key, reason, message, position)


def _admission(start: _Start, tree: Tree) -> Admit:
    nodes = tuple(tree.names[node] for node, replicas in start.runs for _ in range(replicas))
    needs, spread = start.pending.question.needs, start.spread
    gpus = start.replicas * needs.gpus
    amount = gpus_of(gpus) if gpus else replicas_of(start.replicas, needs)
    return Admit(start.pending.gang.key, nodes, f"{amount} on {place_of(tree, spread)}")
