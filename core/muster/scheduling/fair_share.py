"""The share of a queue: how far it is above what it is guaranteed, beside its weight.

Queues below their guarantee always sort before those above it. Where quota is given for single GPU
models, a queue is judged on the model that a job would get; a queue that has one guarantee for
GPUs in all is judged on all of them. With a half-life the usage in a share is the decayed one, and
what started or left in this instant counts in full.
"""

from dataclasses import dataclass
from math import inf
from typing import cast

from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import Snapshot
from muster.scheduling.trial import Trial
from muster.scheduling.usage import decayed

ROOT = ""
"""Stands for what is above all queues that have no parent."""


def share_of(usage: float, guaranteed: int, weight: float) -> float:
    """The share of a queue that uses and is guaranteed so many GPUs.

    (usage - guaranteed)/weight above the guarantee, infinite with weight 0;
    (usage - guaranteed)/guaranteed below it, so that it lies between -1 and 0.
    """
    above = usage - guaranteed
    if above > 0:
        return above / weight if weight > 0 else inf
    return above / guaranteed if guaranteed else above


@dataclass(frozen=True, slots=True)
class Stake:
    """A child of a common ancestor, as one of two that are compared."""

    queue: str
    is_own: bool = False
    """The jobs of the ancestor itself, beside its children."""


class Shares:
    """Shares over what a trial holds; a *model* of `None` means GPUs in all."""

    def __init__(self, trial: Trial, policy: Policy, now: float) -> None:
        self._trial = trial
        self._quotas = trial.snapshot.quotas
        self._decayed = policy.usage_half_life > 0
        if self._decayed:
            self._settle(trial.snapshot, policy.usage_half_life, now)

    def children(self, queue: str) -> list[str]:
        """The queues right below one, or below `ROOT`, by name."""
        return self._quotas.children(queue)

    def over(self, trial: Trial) -> "Shares":
        """The same over another trial of the same snapshot."""
        shares = object.__new__(type(self))
        shares.__dict__.update(self.__dict__)
        shares._trial = trial
        return shares

    def held(self, queue: str, model: str | None) -> int:
        """GPUs that a queue and all below it hold."""
        held = self._trial.held
        return held.total.get(queue, 0) if model is None else held.by_model.get((queue, model), 0)

    def basis(self, queue: str, model: str | None) -> tuple[str | None, int]:
        """What a job on *model* is judged on in a queue: which GPUs count, and how many of them
        are guaranteed.
        """
        known = self._quotas.queues.get(queue)
        if known is None:
            return None, 0
        if model is not None and known.guaranteed_by_model:
            return model, known.guaranteed_by_model.get(model, 0)
        return (None, known.guaranteed) if known.guaranteed else (model, 0)

    def within_guarantee(self, queue: str, model: str | None, more: int) -> bool:
        """Whether a queue stays within its guarantee with so many GPUs more."""
        counted, guaranteed = self.basis(queue, model)
        return self.held(queue, counted) + more <= guaranteed

    def share(self, queue: str, model: str | None, more: float = 0) -> float:
        """The share of a queue with *more* GPUs than it uses."""
        counted, guaranteed = self.basis(queue, model)
        known = self._quotas.queues.get(queue)
        usage = self._usage(queue, counted) + more
        return share_of(usage, guaranteed, known.weight if known else 1.0)

    def stake_share(self, stake: Stake, model: str | None, more: float = 0) -> float:
        """The share of one of two that are compared. An ancestor's own jobs have weight 1 and no
        guarantee of their own.
        """
        if not stake.is_own:
            return self.share(stake.queue, model, more)
        usage = self._usage(stake.queue, model)
        usage -= sum(self._usage(child, model) for child in self.children(stake.queue))
        return share_of(usage + more, 0, 1.0)

    def may_lose(self, stake: Stake, model: str | None, share: float) -> float:
        """GPUs that may leave one of two that are compared before it is below a *share*."""
        if self.stake_share(stake, model) < share or share == inf:
            return 0
        if stake.is_own:
            return inf
        counted, guaranteed = self.basis(stake.queue, model)
        known = self._quotas.queues.get(stake.queue)
        weight = known.weight if known else 1.0
        scale = weight if share > 0 else guaranteed
        return self._usage(stake.queue, counted) - guaranteed - share * scale

    def rivals(self, claimant: str, victim: str) -> tuple[str, Stake, Stake]:
        """The common ancestor of two queues, and the two below it that are compared."""
        found = self._quotas.rivals.get((claimant, victim))
        if found is None:
            found = self._quotas.rivals[claimant, victim] = self._compared(claimant, victim)
        return cast("tuple[str, Stake, Stake]", found)

    def _compared(self, claimant: str, victim: str) -> tuple[str, Stake, Stake]:
        ours, theirs = self._quotas.lineage(claimant), self._quotas.lineage(victim)
        common = next((name for name in ours if name in theirs), ROOT)
        return common, _below(ours, common), _below(theirs, common)

    def path_below(self, queue: str, ancestor: str) -> tuple[str, ...]:
        """The queue and those above it, without *ancestor* and what is above that."""
        lineage = self._quotas.lineage(queue)
        return lineage[: lineage.index(ancestor)] if ancestor in lineage else lineage

    def _usage(self, queue: str, model: str | None) -> float:
        held = self.held(queue, model)
        if not self._decayed:
            return held
        key: str | tuple[str, str] = queue if model is None else (queue, model)
        before, settled = self._settled.get(key, (0, 0.0))
        return settled + (held - before)

    def _settle(self, snapshot: Snapshot, half_life: float, now: float) -> None:
        """Decayed usage now, with what started in this very instant counted in full."""
        seconds = max(now - snapshot.usage_at, 0.0)
        fresh: dict[str | tuple[str, str], int] = {}
        models, position = snapshot.columns.models, snapshot.tree.position
        for gang in snapshot.running:
            if gang.run is None or gang.run.started < now or not gang.needs.gpus:
                continue
            for name in gang.placement or ():
                if name not in position:
                    continue
                model = models[position[name]]
                for queue in self._quotas.lineage(gang.queue):
                    fresh[queue] = fresh.get(queue, 0) + gang.needs.gpus
                    if model is not None:
                        pair = (queue, model)
                        fresh[pair] = fresh.get(pair, 0) + gang.needs.gpus
        self._settled: dict[str | tuple[str, str], tuple[int, float]] = {}
        held = snapshot.held
        totals: list[tuple[str | tuple[str, str], int, float]] = [
            (queue, held.total.get(queue, 0), snapshot.usage.get(queue, 0.0))
            for queue in held.total.keys() | snapshot.usage.keys()
        ]
        pairs: list[tuple[str | tuple[str, str], int, float]] = [
            (pair, held.by_model.get(pair, 0), snapshot.usage_by_model.get(pair, 0.0))
            for pair in held.by_model.keys() | snapshot.usage_by_model.keys()
        ]
        for key, gpus, value in (*totals, *pairs):
            usage = decayed(value, gpus, seconds, half_life) + fresh.get(key, 0)
            self._settled[key] = (gpus, usage)


def _below(lineage: tuple[str, ...], common: str) -> Stake:
    place = lineage.index(common) if common in lineage else len(lineage)
    return Stake(lineage[place - 1]) if place else Stake(common, is_own=True)
