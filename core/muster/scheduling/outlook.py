"""Who has no hope in a cycle: the first and cheapest look at a pending gang.

In a full cluster almost every gang waits because there is no room and nobody it may take any
from. That follows from a few numbers which all gangs of a shape, or of a part of the tree of
queues, have in common; they are worked out once and kept until something is taken or given.
"""

from muster.scheduling.fair_share import ROOT
from muster.scheduling.movable import Movables, freed, movables_of
from muster.scheduling.room import Field, counted
from muster.scheduling.snapshot import Gang, Question
from muster.scheduling.state import Ask, State


class Outlook:
    """What holds for many gangs at once; what it does not know for sure it does not say."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._stamp = (-1, -1)
        self._room: dict[object, int] = {}
        self._greatest: dict[str, float] = {}
        self._are_queues_known = True
        self._reclaimable: dict[object, Field] = {}

    def is_hopeless(self, gang: Gang, question: Question) -> bool:
        """Whether there is no room for the gang and nobody whom it might make leave."""
        state = self._state
        if state.trial.is_split or state.snapshot.quotas.is_by_model or not question.needs.gpus:
            return False
        if state.policy.usage_half_life > 0:
            # Shares and guarantees go by different usages then.
            return False
        self._refresh()
        shape = (question.needs, question.rules)
        room = self._room.get(shape)
        if room is None:
            field = state.trial.field(question.needs, question.rules)
            room = self._room[shape] = field.total
        if room >= question.replicas or not self._are_queues_known:
            return False
        if state.own_relief(gang) or state.roster.is_behind(gang.key):
            return False
        return not self._might_reclaim(question)

    def is_entitled_but_for_its_share(self, ask: Ask) -> bool:
        """Whether what the queues above their guarantees hold is certainly enough for it, together
        with what is free. Not to be asked where quota is by model.
        """
        self._refresh()
        state, question = self._state, ask.question
        if state.took or not question.needs.gpus:
            return False
        fields = self._reclaimable
        shape = (question.needs, question.rules)
        if shape not in fields:
            fields[shape] = self._reclaimed(ask)
        # What its own queue holds is not to be had that way.
        own = state.roster.kept(question.queue, movables_of).values()
        lost = sum(group.gpus for group in own)
        field = fields[shape]
        is_plain = question.topology.required is None and question.topology.part_size is None
        return is_plain and field.total - lost >= question.replicas

    def _refresh(self) -> None:
        stamp = (self._state.trial.version, self._state.roster.generation)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        self._room.clear()
        self._greatest.clear()
        self._reclaimable.clear()
        known = self._state.snapshot.quotas
        self._are_queues_known = all(known.is_known(q) for q in self._state.roster.queues())

    def _might_reclaim(self, question: Question) -> bool:
        """Whether any queue is above its guarantee while this one is within its own, or has a
        share not below what this one's would be.
        """
        state, shares = self._state, self._state.shares
        gpus = question.replicas * question.needs.gpus
        lineage = state.snapshot.quotas.lineage(question.queue)
        is_within = True
        for place, name in enumerate(lineage):
            common = lineage[place + 1] if place + 1 < len(lineage) else ROOT
            if common in state.roster.queues_held:
                return True
            is_within = is_within and shares.within_guarantee(name, None, gpus)
            greatest = self._greatest_share(common)
            if greatest > 0 and (is_within or shares.share(name, None, gpus) <= greatest):
                return True
        return False

    def _greatest_share(self, common: str) -> float:
        """The greatest share right below a queue; above 0 only if one is above its guarantee."""
        found = self._greatest.get(common)
        if found is None:
            shares = self._state.shares
            below = shares.children(common)
            found = max((shares.share(child, None) for child in below), default=0.0)
            self._greatest[common] = found
        return found

    def _reclaimed(self, ask: Ask) -> Field:
        """The room if everybody left whom the guarantees of the queues let go."""
        state, shares, quotas = self._state, self._state.shares, self._state.snapshot.quotas
        groups: list[Movables] = []
        for queue in state.roster.queues():
            above = [
                shares.held(name, None) - shares.basis(name, None)[1]
                for name in quotas.lineage(queue)
            ]
            # The last of them may take its queue below its guarantee.
            groups += [
                group.capped(min(above))
                for group in state.roster.kept(queue, movables_of).values()
                if min(above) > 0
            ]
        free = state.trial.free + freed(groups, state.trial.free.shape[1])
        return counted(state.snapshot.tree, ask.question.needs, free, state.mask(ask))
