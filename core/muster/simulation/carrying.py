"""Carrying out a plan in the simulated world, deed by deed, in the order of the plan."""

from collections.abc import Iterable
from dataclasses import replace

from muster.scheduling.plan import (
    Admit,
    Deed,
    Grow,
    Leave,
    Preempt,
    Replace,
    Requeue,
    Right,
    Shrink,
    Withdraw,
)
from muster.scheduling.snapshot import Leaving, Took
from muster.simulation import effects
from muster.simulation.job import instant
from muster.simulation.timeline import Kind
from muster.simulation.world import World


class Hands:
    """Carries out deeds; remembers between plans what a claimant takes at its reserved time."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._taking: dict[str, tuple[str, ...]] = {}

    def carry_out(self, deeds: Iterable[Deed]) -> None:
        """Do all of this now."""
        for deed in deeds:
            match deed:
                case Admit():
                    self._admit(deed)
                case Preempt():
                    self._preempt(deed)
                case Withdraw():
                    self._withdraw(deed)
                case Grow():
                    self._grow(deed)
                case Shrink():
                    self._shrink(deed)
                case Replace():
                    self._replace(deed)
                case Leave():
                    self._leave(deed)
                case _:
                    self._requeue(deed)

    def _admit(self, deed: Admit) -> None:
        world, job = self._world, self._world.jobs[deed.gang]
        queues = self._taking.pop(deed.gang, ())
        took = Took(queues, world.changed) if queues else None
        world.begun[deed.gang] = job.gang
        world.gained[deed.gang] = len(deed.nodes)
        gang = effects.started(job.gang, deed.nodes, world.now, behind=deed.behind, took=took)
        world.put(job, gang, overhead=world.restart_cost if job.starts else 0.0)
        job.starts.append(world.now)
        world.tell(Kind.STARTED, gang)

    def _preempt(self, deed: Preempt) -> None:
        world = self._world
        own = world.jobs[deed.gang]
        taken_from = {
            world.jobs[victim.gang].gang.queue
            for victim in deed.victims
            if victim.right is Right.RESERVATION
        }
        if others := taken_from - {own.gang.queue}:
            queues = {*self._taking.get(deed.gang, ()), *others}
            self._taking[deed.gang] = tuple(sorted(queues))
        for victim in deed.victims:
            job = world.jobs[victim.gang]
            if not world.policy.leaves_at_once:
                leaving = Leaving(
                    deed.gang, victim.ranks, instant(world.now + world.policy.notice)
                )
                world.asked[deed.gang].add(victim.gang)
                world.put(job, effects.asked(job.gang, leaving))
                world.tell(Kind.PREEMPTING, job.gang, deed.gang)
            elif victim.ranks is None:
                world.depart(job, Kind.EVICTED, deed.gang)
            else:
                world.take_surplus(job, victim.ranks, deed.gang)
        if not world.policy.leaves_at_once:
            world.put(own, replace(own.gang, claim=deed.nodes))

    def _withdraw(self, deed: Withdraw) -> None:
        world, job = self._world, self._world.jobs[deed.gang]
        self._taking.pop(deed.gang, None)
        world.withdraw(deed.gang)
        world.put(job, replace(job.gang, claim=()))

    def _grow(self, deed: Grow) -> None:
        world, job = self._world, self._world.jobs[deed.gang]
        gang = effects.grown(job.gang, deed.nodes, behind=deed.behind)
        world.gained[deed.gang] = world.gained.get(deed.gang, 0) + len(deed.nodes)
        world.put(job, gang)
        world.tell(Kind.GROWN, gang)

    def _shrink(self, deed: Shrink) -> None:
        world, job = self._world, self._world.jobs[deed.gang]
        gone = frozenset(deed.ranks)
        kept = [rank for rank in range(len(job.gang.placement or ())) if rank not in gone]
        job.count(world.now)
        job.renumber({rank: number for number, rank in enumerate(kept)})
        gang = effects.cut(job.gang, deed.ranks)
        world.put(job, gang)
        world.tell(Kind.SHRUNK, gang)

    def _replace(self, deed: Replace) -> None:
        world, job = self._world, self._world.jobs[deed.gang]
        gang = effects.replaced(job.gang, deed.ranks, deed.nodes)
        world.put(job, gang)
        world.tell(Kind.REPLICA_REPLACED, gang)

    def _leave(self, deed: Leave) -> None:
        world, job = self._world, self._world.jobs[deed.gang]
        if world.policy.leaves_at_once:
            world.lose(job, deed.ranks)
            return
        deadline = instant(world.now + world.policy.notice)
        gang = effects.asked(job.gang, Leaving("", deed.ranks, deadline))
        world.put(job, gang)
        world.tell(Kind.PREEMPTING, gang)

    def _requeue(self, deed: Requeue) -> None:
        self._world.depart(self._world.jobs[deed.gang], Kind.REQUEUED)
