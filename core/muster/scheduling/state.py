"""The state that a cycle decides on, now or at a time to come: what is free, who holds what.

Both questions of the policy are asked of it: where would this gang go on what is idle, and who
would have to leave for it.
"""

from dataclasses import dataclass, replace
from math import inf

import numpy as np

from muster.scheduling.amounts import GPUS, Amounts
from muster.scheduling.fair_share import Shares
from muster.scheduling.fit import Mask
from muster.scheduling.gathering import Scheme
from muster.scheduling.ground import Ground
from muster.scheduling.holders import Holder, Roster
from muster.scheduling.movable import Movables, freed, movables_of
from muster.scheduling.order import level_of, remaining_of
from muster.scheduling.placement import Request, Run, Ties, find, request_of, settle
from muster.scheduling.policy import Policy
from muster.scheduling.quota import Held, excess, excess_by_model
from muster.scheduling.rights import Claimant, Claims, Option
from muster.scheduling.room import Field, counted
from muster.scheduling.snapshot import Gang, Order, Question, Snapshot, TopologyRequest
from muster.scheduling.trial import Books, Trial
from muster.scheduling.victims import cheapest, rank_of

_MANY = 256
"""Running gangs above which an explanation does not weigh single victims."""


@dataclass(frozen=True, slots=True, eq=False)
class Ask:
    """What a gang wants now: replicas of its shape, somewhere."""

    gang: Gang
    question: Question
    replicas: int
    within: Mask | None = None
    """The nodes that it may use at all, where that is less than its rules allow."""
    is_growth: bool = False

    @property
    def gpus(self) -> int:
        """GPUs in all."""
        return self.replicas * self.question.needs.gpus

    def beside(self, survivors: Mask | None, replicas: int) -> "Ask":
        """The same for some replicas without a topology of their own, near those that are left."""
        question = replace(self.question, topology=TopologyRequest(), replicas=replicas)
        return replace(self, question=question, replicas=replicas, within=survivors)


class State:
    """One moment."""

    def __init__(
        self,
        trial: Trial,
        roster: Roster,
        shares: Shares,
        policy: Policy,
        now: float,
        took: frozenset[tuple[str, str]],
    ) -> None:
        """*took* is `rights.taken_at_reserved_times`."""
        self.trial = trial
        self.roster = roster
        self.shares = shares
        self.policy = policy
        self.now = now
        self.took = took
        self._judged: dict[Question, str | None] = {}
        self._emptied: tuple[tuple[int, int], Amounts, dict[object, Field]] | None = None

    @property
    def snapshot(self) -> Snapshot:
        """What it started from."""
        return self.trial.snapshot

    def at(self, now: float) -> "State":
        """A copy to go on with at another time; what is being freed now is free there."""
        trial = self.trial.fork()
        return State(
            trial, self.roster.copy(), self.shares.over(trial), self.policy, now, self.took
        )

    def leave(self, holder: Holder, books: Books = Books.BOTH) -> None:
        """Take a holder out of the books for good."""
        gang = holder.gang
        self.trial.give(gang.queue, gang.needs, holder.spread(), gang.user, books)
        self.roster.remove(holder)

    def mask(self, ask: Ask) -> Mask:
        """The nodes that it may use now."""
        mask = self.trial.mask(ask.question.rules)
        return mask if ask.within is None else mask & ask.within

    def judged_on(self, question: Question) -> str | None:
        """The GPU model whose quota a gang counts on; `None` where quota is for GPUs in all."""
        if not self.snapshot.quotas.is_by_model:
            return None
        if question not in self._judged:
            self._judged[question] = self._model_it_gets(question)
        return self._judged[question]

    def placed(self, ask: Ask) -> tuple[Run, ...] | None:
        """Where it goes on what is idle, within all limits; `None` if nowhere."""
        barred = self._barred(ask)
        if barred is None:
            return None
        question = ask.question
        field = self.trial.field(question.needs, question.rules, barred, within=ask.within)
        return self._found(ask, field)

    def placed_on(self, ask: Ask, free: Amounts) -> tuple[Run, ...] | None:
        """The same where not more than *free* is idle."""
        barred = self._barred(ask)
        if barred is None:
            return None
        mask = self.mask(ask) & ~self.snapshot.columns.of_models(sorted(barred))
        free = np.minimum(free, self.trial.usable())
        return self._found(ask, counted(self.snapshot.tree, ask.question.needs, free, mask))

    def _found(self, ask: Ask, field: Field) -> tuple[Run, ...] | None:
        if field.total < ask.replicas:
            return None
        request, ties = self.request(ask), self.ties(ask.question.queue)
        spot = find(field, request, ties)
        return None if spot is None else settle(field, request, spot, ties)

    def scheme(self, ask: Ask) -> Scheme | None:
        """Who leaves, at the least cost, so that it can start; `None` if nobody may.

        A scheme without victims means that it only has to wait for those who are leaving.
        """
        models: tuple[str | None, ...] = (None,)
        if self.snapshot.quotas.is_by_model:
            models = self.snapshot.columns.models_of(ask.question.rules)
        found = [scheme for model in models if (scheme := self._scheme_on(ask, model)) is not None]
        return min(found, key=lambda scheme: rank_of(scheme.options), default=None)

    def is_share_alone_in_the_way(self, ask: Ask) -> bool:
        """Whether it would start if the share rule alone did not exist. Where very many could have
        to leave, that is judged by what all of them hold.
        """
        models: tuple[str | None, ...] = (None,)
        if self.snapshot.quotas.is_by_model:
            models = self.snapshot.columns.models_of(ask.question.rules)
        for model in models:
            ground, claims = self._ground(ask, model, waives_share=True)
            if not ground.mask.any() or find(self._emptied_field(ask), ground.request) is None:
                continue
            most = self._most(ask, ground, claims)
            if most is None or find(most, ground.request) is None:
                continue
            if len(self.roster) > _MANY or self._scheme_on(ask, model, waives_share=True):
                return True
        return False

    def might_take_from(self, ask: Ask, key: str) -> bool:
        """Whether a gang could be asked to make room for it, as far as its queue tells."""
        holder = self.roster.get(key)
        if holder is None or not holder.gang.is_preemptible:
            return False
        models: tuple[str | None, ...] = (None,)
        if self.snapshot.quotas.is_by_model:
            models = self.snapshot.columns.models_of(ask.question.rules)
        for model in models:
            _, claims = self._ground(ask, model, waives_share=False)
            if any(each is holder for each in claims.concerned(holder.queue, self.roster)):
                return True
        return False

    def within_guarantee(self, ask: Ask, other: str) -> bool:
        """Whether the request is within the guarantee of its queue, and of those above it up to
        the common ancestor with another queue.
        """
        common, ours, _ = self.shares.rivals(ask.gang.queue, other)
        model = self.judged_on(ask.question)
        return not ours.is_own and all(
            self.shares.within_guarantee(name, model, ask.gpus)
            for name in self.shares.path_below(ask.gang.queue, common)
        )

    def request(self, ask: Ask) -> Request:
        """The request of a placement."""
        question = ask.question
        return request_of(
            question.topology,
            self.snapshot.tree,
            replicas=ask.replicas,
            gpus=question.needs.gpus,
        )

    def ties(self, queue: str) -> Ties:
        """What decides between places that fit equally well."""
        known = self.snapshot.quotas.queues.get(queue)
        return self.snapshot.memo.ties(known.tie_break, self.snapshot) if known else ()

    def rank(self, gang: Gang) -> float:
        """The place of a pending gang by the order of its queue: its level, or what remains."""
        queue = self.snapshot.quotas.queues.get(gang.queue)
        match queue.order if queue else Order.FIFO:
            case Order.ATTAINED_SERVICE:
                return float(level_of(gang.attained))
            case Order.SHORTEST_REMAINING:
                return remaining_of(gang)
        return inf

    def lowest_priority(self, queue: str) -> float:
        """The lowest priority of the holders of a queue that may be moved."""
        return min(self.roster.kept(queue, movables_of), default=inf)

    def _barred(self, ask: Ask) -> set[str] | None:
        """The GPU models that limits keep it from; `None` where they keep it from all."""
        quotas, question = self.snapshot.quotas, ask.question
        barred: set[str] = set()
        for held in self._books():
            if excess(quotas, held, question.queue, ask.gpus, question.user) is not None:
                return None
            barred |= excess_by_model(quotas, held, question.queue, ask.gpus).keys()
        return barred

    def _books(self) -> tuple[Held, ...]:
        trial = self.trial
        return (trial.held, trial.held_now) if trial.is_split else (trial.held,)

    def movable(self, ask: Ask) -> dict[str, int]:
        """GPUs that others might have to give for it, at most, by holder."""
        models: tuple[str | None, ...] = (None,)
        if self.snapshot.quotas.is_by_model:
            models = self.snapshot.columns.models_of(ask.question.rules)
        found: dict[str, int] = {}
        for model in models:
            ground, claims = self._ground(ask, model, waives_share=False)
            for options in self._choices(ground, claims):
                last = options[-1]
                key = last.holder.key
                found[key] = max(found.get(key, 0), last.all_gpus)
        return found

    def _scheme_on(
        self, ask: Ask, model: str | None, *, waives_share: bool = False
    ) -> Scheme | None:
        ground, claims = self._ground(ask, model, waives_share=waives_share)
        if not ground.mask.any() or find(self._emptied_field(ask), ground.request) is None:
            return None
        most = self._most(ask, ground, claims)
        if most is None or find(most, ground.request) is None:
            return None
        choices = self._choices(ground, claims)
        return cheapest(choices, claims, ground, self.snapshot.quotas, most)

    def _ground(self, ask: Ask, model: str | None, *, waives_share: bool) -> tuple[Ground, Claims]:
        question, snapshot = ask.question, self.snapshot
        mask = self.mask(ask)
        if model is not None:
            mask = mask & snapshot.columns.of_models([model])
        elif snapshot.quotas.is_by_model:
            mask = mask & self._without_model()
        request = self.request(ask)
        ground = Ground(
            snapshot.tree, question, request, self.trial.free, mask, self.ties(question.queue)
        )
        ground.set_limits(snapshot.quotas, self.trial.held, model)
        claimant = Claimant(
            ask.gang,
            ask.gpus,
            model,
            self.now,
            rank=self.rank(ask.gang),
            may_share=not ask.is_growth,
            surplus_only=ask.is_growth,
            waives_share=waives_share,
        )
        claims = Claims(
            claimant,
            snapshot,
            self.shares,
            self.policy,
            self.took,
            own_relief=self.own_relief(ask.gang),
            behind=() if ask.is_growth else self.roster.behind(ask.gang.key),
        )
        return ground, claims

    def _most(self, ask: Ask, ground: Ground, claims: Claims) -> Field | None:
        """The room if as much left as might, of each queue on each node; `None` if that is too
        little in all. A quick look before single victims are weighed.
        """
        groups: list[Movables] = []
        reach: dict[str, float] = {}
        caps: dict[str, float] = {"": inf}
        for queue in self.roster.queues():
            if claims.concerns(queue):
                movables = self.roster.kept(queue, movables_of)
                mine = claims.within_reach(queue, movables)
                stake, most, cap = claims.most_from(queue, mine)
                reach[stake] = reach.get(stake, 0) + most
                caps[stake] = cap
                groups += [g.capped(min(most, cap)) for g in mine if g.may_give(cap)]
        idle = int(np.maximum(self.trial.free[GPUS][ground.mask], 0).sum())
        hope = sum(min(most, caps[stake]) for stake, most in reach.items())
        if idle + hope < ask.gpus:
            return None
        free = self.trial.free + freed(groups, len(ground.mask))
        return counted(ground.tree, ask.question.needs, free, ground.mask)

    def _emptied_field(self, ask: Ask) -> Field:
        """The room if everybody left who may be moved at all."""
        stamp = (self.trial.version, self.roster.generation)
        if self._emptied is None or self._emptied[0] != stamp:
            groups = [
                group
                for queue in self.roster.queues()
                for group in self.roster.kept(queue, movables_of).values()
            ]
            free = self.trial.free + freed(groups, self.trial.free.shape[1])
            self._emptied = stamp, free, {}
        _, free, fields = self._emptied
        question = ask.question
        key = (question.needs, question.rules)
        if ask.within is not None:
            return counted(self.snapshot.tree, question.needs, free, self.mask(ask))
        if key not in fields:
            fields[key] = counted(self.snapshot.tree, question.needs, free, self.mask(ask))
        return fields[key]

    def _choices(self, ground: Ground, claims: Claims) -> list[list[Option]]:
        choices = []
        for queue in self.roster.queues():
            if not claims.concerns(queue):
                continue
            for holder in claims.concerned(queue, self.roster):
                options = [o for o in claims.options(holder) if ground.is_useful(o)]
                if options:
                    choices.append(options)
        return choices

    def own_relief(self, gang: Gang) -> int:
        """GPUs that might leave its own queue for it, at most."""
        queue = self.snapshot.quotas.queues.get(gang.queue)
        # A queue that is ordered by more than submission lets gangs of one priority preempt.
        bound = gang.priority + (queue is not None and queue.order is not Order.FIFO)
        relief = sum(h.gpus for h in self.roster.behind(gang.key) if h.queue == gang.queue)
        for priority, movables in self.roster.kept(gang.queue, movables_of).items():
            if priority < bound:
                relief += movables.gpus
            elif priority == gang.priority:
                relief += movables.surplus_gpus
        return relief

    def _without_model(self) -> Mask:
        models = self.snapshot.columns.models
        return np.fromiter((model is None for model in models), np.bool_, len(models))

    def _model_it_gets(self, question: Question) -> str | None:
        models = self.snapshot.columns.models_of(question.rules)
        if len(models) < 2:
            return models[0] if models else None
        runs = self.placed(Ask(_anybody(question), question, question.replicas))
        if runs:
            return self.snapshot.columns.models[runs[0][0]]
        return models[0]


def _anybody(question: Question) -> Gang:
    return Gang("", question.replicas, question.replicas, question.needs, 0.0, question.queue)
