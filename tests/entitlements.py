"""Who may take capacity from whom, worked out afresh in fractions from plain values.

For the laws of the scheduling core: the rules of `scheduling.md` once more, without looking at how
the core does it. A decayed usage is given from outside, see `Standing.usage`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf

from books import Books, Ledgers, lineage, seats_now
from muster.scheduling.plan import Preempt, Right, Victim
from muster.scheduling.snapshot import Gang, Needs, Node, Order, Queue

Share = Fraction | float
LEVELS_GPU_HOURS = [1, 4, 16, 64, 256, 1024]


def share_of(usage: Fraction, guaranteed: int, weight: float) -> Share:
    above = usage - guaranteed
    if above > 0:
        return above / Fraction(weight) if weight else inf
    return above / guaranteed if guaranteed else Fraction(0)


@dataclass(frozen=True)
class Standing:
    """The cluster at the moment of a decision."""

    nodes: Mapping[str, Node]
    queues: Mapping[str, Queue]
    gangs: Mapping[str, Gang]
    now: float
    changed: float = 0.0
    usage: Mapping[tuple[str, str | None], float] | None = None
    """By queue and model (`None`: all), where a half-life is set: what is used instead of held."""
    counted: Ledgers | None = None
    """What was held when `usage` was told; what has moved since is added to it in full."""
    foreign: tuple[tuple[str, str, Needs], ...] = ()

    def books(self) -> Books:
        return Books(self.nodes, self.queues, self.gangs.values(), self.foreign)

    def without(self, victims: tuple[Victim, ...]) -> "Standing":
        """The same when some have left."""
        gangs = dict(self.gangs)
        for victim in victims:
            gangs[victim.gang] = _without(gangs[victim.gang], victim.ranks)
        return replace(self, gangs=gangs)

    def path_below(self, queue: str, other: str) -> tuple[str, ...]:
        """From a queue upwards as long as it does not hold the other one too."""
        above = lineage(other, self.queues)
        return tuple(q for q in lineage(queue, self.queues) if q not in above)

    def has_models(self) -> bool:
        return any(q.guaranteed_by_model or q.limit_by_model for q in self.queues.values())

    def basis(self, queue: str, model: str | None) -> tuple[str | None, int]:
        """On which GPUs a queue is judged for a job on *model*, and its guarantee of them."""
        known = self.queues.get(queue, Queue(queue))
        if model is not None and known.guaranteed_by_model:
            return model, known.guaranteed_by_model.get(model, 0)
        if known.guaranteed or not self.has_models():
            return None, known.guaranteed
        return model, 0


def _without(gang: Gang, ranks: tuple[int, ...] | None) -> Gang:
    if ranks is None:
        return replace(gang, placement=None, leaving=())
    placement = gang.placement or ()
    return replace(gang, placement=tuple(n for r, n in enumerate(placement) if r not in ranks))


class Judge:
    """Judges the victims of one decision."""

    def __init__(self, standing: Standing, deed: Preempt) -> None:
        self.at = standing
        self.deed = deed
        self.claimant = standing.gangs[deed.gang]
        # Where it goes is not always worked out; then quota is for GPUs in all.
        models = {standing.nodes[name].gpu_model for name in deed.nodes if name}
        self.model = models.pop() if len(models) == 1 and standing.has_models() else None
        self.after = standing.without(deed.victims).books().later
        # What it takes beyond its minimum is growth, on what is idle by then.
        replicas = self.claimant.min_replicas if self.claimant.is_pending else len(deed.nodes)
        self.asks = replicas * self.claimant.needs.gpus
        self.is_growth = not self.claimant.is_pending and not self.claimant.lost

    def faults(self) -> list[str]:
        """What is wrong with the choice; empty where it is within the rules."""
        found = [f"{v.gang}: {what}" for v in self.deed.victims for what in self._bars(v)]
        found += [
            f"{v.gang}: no right by {v.right}"
            for v in self.deed.victims
            if not self._has(v.right, self.at.gangs[v.gang], v)
        ]
        gangs = [victim.gang for victim in self.deed.victims]
        return found + ["a victim is named twice"] * (len(set(gangs)) < len(gangs))

    def allows(self) -> bool:
        """Whether there is some right to each of the victims, whichever was given."""
        return all(
            not self._bars(victim)
            and any(self._has(right, self.at.gangs[victim.gang], victim) for right in Right)
            for victim in self.deed.victims
        )

    def _bars(self, victim: Victim) -> list[str]:
        """What keeps a victim where it is, whatever the right."""
        gang = self.at.gangs[victim.gang]
        queue = self.at.queues.get(gang.queue, Queue(gang.queue))
        found = []
        if gang.key == self.claimant.key:
            found.append("takes from itself")
        if not gang.is_preemptible:
            found.append("not preemptible")
        if any(leaving.claimant != self.claimant.key for leaving in gang.leaving):
            found.append("leaves for another already")
        if gang.placement is None:
            return [*found, "not there"]
        if victim.ranks is None:
            started = gang.run.started if gang.run else 0.0
            if started <= self.at.now < started + queue.min_run_time:
                found.append("shielded")
            if self.is_growth:
                found.append("growth takes a whole gang")
        elif not is_surplus(gang, victim.ranks):
            found.append(f"ranks {victim.ranks} are not its surplus")
        displaced = self.claimant.displaced
        if displaced and displaced.by == gang.key and displaced.at >= self.at.changed:
            found.append("taken back from the one that displaced it")
        return found

    def _has(self, right: Right, gang: Gang, victim: Victim) -> bool:
        match right:
            case Right.PRIORITY:
                return gang.queue == self.claimant.queue and self._goes_before(gang)
            case Right.SURPLUS:
                is_own = gang.queue == self.claimant.queue and victim.ranks is not None
                return is_own and gang.priority <= self.claimant.priority and not self.is_growth
            case Right.GUARANTEE:
                return self._is_lent(gang, victim) and self._is_within_guarantee(gang)
            case Right.SHARE:
                return self._is_lent(gang, victim) and self._is_fair(gang)
            case Right.RESERVATION:
                run = gang.run
                behind = () if run is None else run.behind
                if run is not None and victim.ranks is not None:
                    behind = (*behind, *run.grown_behind)
                return self.claimant.key in behind
        raise AssertionError(right)

    def _goes_before(self, gang: Gang) -> bool:
        if gang.priority != self.claimant.priority:
            return gang.priority < self.claimant.priority
        queue = self.at.queues.get(gang.queue, Queue(gang.queue))
        if queue.order is Order.ATTAINED_SERVICE:
            return level(self.claimant.attained) < level(attained(gang, self.at.now))
        if queue.order is Order.SHORTEST_REMAINING:
            return remaining(self.claimant, self.at.now) < remaining(gang, self.at.now)
        return False

    def _is_lent(self, gang: Gang, victim: Victim) -> bool:
        """With all other victims gone its queue is above its guarantee, at every level."""
        if gang.queue == self.claimant.queue:
            return False
        others = tuple(v for v in self.deed.victims if v != victim)
        books = self.at.without(others).books().later
        for queue in self.at.path_below(gang.queue, self.claimant.queue):
            model, guaranteed = self.at.basis(queue, self.model)
            held = books.queue[queue] if model is None else books.model[queue, model]
            if held <= guaranteed:
                return False
            if self.is_growth and self._held(self.after, queue, model) < guaranteed:
                return False
        return True

    def _held(self, ledgers: Ledgers, queue: str, model: str | None) -> int:
        return ledgers.queue[queue] if model is None else ledgers.model[queue, model]

    def _is_within_guarantee(self, gang: Gang) -> bool:
        path = self.at.path_below(self.claimant.queue, gang.queue)
        for queue in path:
            model, guaranteed = self.at.basis(queue, self.model)
            if self._held(self.after, queue, model) + self.asks > guaranteed:
                return False
        return bool(path)

    def _is_fair(self, gang: Gang) -> bool:
        if self.is_growth or self._is_returned_to(gang):
            return False
        ours = self.at.path_below(self.claimant.queue, gang.queue)
        theirs = self.at.path_below(gang.queue, self.claimant.queue)
        if not ours or not theirs:
            # Jobs of the common ancestor itself: nothing is written about them.
            return True
        share = self._share(ours[-1], self.asks)
        return share != inf and share <= self._share(theirs[-1], 0)

    def _is_returned_to(self, gang: Gang) -> bool:
        """Whether somebody of that queue took it from ours at its reserved time."""
        return any(
            other.queue == gang.queue
            and other.run is not None
            and other.run.took is not None
            and other.run.took.at >= self.at.changed
            and self.claimant.queue in other.run.took.queues
            for other in self.at.gangs.values()
        )

    def _share(self, queue: str, more: int) -> Share:
        """After the move: what leaves is subtracted, what is asked for is added."""
        model, guaranteed = self.at.basis(queue, self.model)
        after = Fraction(self._held(self.after, queue, model) + more)
        if self.at.usage is not None and self.at.counted is not None:
            moved = after - self._held(self.at.counted, queue, model)
            after = Fraction(self.at.usage.get((queue, model), 0.0)) + moved
        return share_of(after, guaranteed, self.at.queues.get(queue, Queue(queue)).weight)


def is_surplus(gang: Gang, ranks: tuple[int, ...]) -> bool:
    """Whether these are the highest ranks, and the minimum stays."""
    size = len(gang.placement or ())
    highest = tuple(range(size - len(ranks), size))
    return tuple(sorted(ranks)) == highest and size - len(ranks) >= gang.min_replicas


def attained(gang: Gang, now: float) -> float:
    started = gang.run.started if gang.run else 0.0
    return gang.attained + len(seats_now(gang)) * gang.needs.gpus * (now - started)


def level(gpu_seconds: float) -> int:
    return sum(gpu_seconds >= 3600 * hours for hours in LEVELS_GPU_HOURS)


def remaining(gang: Gang, now: float) -> float:
    """Seconds to its end, by its declared limit or by the progress that it reports."""
    if gang.placement is None or gang.run is None:
        left = inf if gang.max_run_time is None else gang.max_run_time - gang.ran
        return left if left > 0 else inf
    ends = [] if gang.run.eta is None else [gang.run.eta]
    if gang.max_run_time is not None:
        ends.append(gang.run.started + gang.max_run_time - gang.ran)
    left = min(ends, default=inf) - now
    return left if left > 0 else inf


def work_lost(gang: Gang, ranks: tuple[int, ...] | None, now: float, restart: float) -> float:
    """The price of a victim in GPU-seconds."""
    if ranks is not None:
        return 0.0
    started, saved = (gang.run.started, gang.run.saved) if gang.run else (0.0, None)
    since = started if saved is None else max(started, saved)
    return len(seats_now(gang)) * gang.needs.gpus * (now - since + restart)
