"""What holds in every scenario, whatever it expects.

- No gang is partly placed, but for one that lost nodes within the time for replacements.
- Nothing is placed beyond a node, a limit or another resource. What was there before a limit was
  lowered may stay.
- An eviction is made only for a job that then starts, requeueing after the loss of nodes aside.
- The same state never comes back with evictions in between, unless something outside changed.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from muster.scheduling.quota import Held
from muster.scheduling.snapshot import Snapshot
from muster.simulation.drive import Simulation
from muster.simulation.entries import duration_of
from muster.simulation.timeline import Event, Kind

_GAINS = (Kind.STARTED, Kind.GROWN, Kind.REPLICA_REPLACED)
_MOST_TOLD = 100

_State = tuple[tuple[str, tuple[str, ...]], ...]
"""Who runs where."""


@dataclass(slots=True)
class _Debt:
    """Somebody was evicted for a job that has not started yet."""

    victim: str
    at: float
    disturbed: int
    """How often the cluster had been disturbed when that was decided."""


class Invariants:
    """A watcher that notes what is broken, one sentence each, in `violations`."""

    def __init__(self) -> None:
        self.violations: list[str] = []
        self._debts: dict[str, _Debt] = {}
        self._asked: dict[str, int] = {}
        self._held = Held()
        self._by_user: dict[tuple[str, str], int] = {}
        self._seen: dict[_State, int] = {}
        self._changed = -1.0
        self._evictions = 0

    def planning(self, simulation: Simulation) -> None:
        """Keep what a cycle begins with."""
        snapshot = simulation.cluster.snapshot()
        self._held, self._by_user = snapshot.held.copy(), _held_by_user(snapshot)

    def planned(self, simulation: Simulation) -> None:
        """Check what it did."""
        snapshot = simulation.cluster.snapshot()
        self._check_nodes(snapshot, simulation.now)
        self._check_limits(snapshot, simulation.now)
        self._check_returns(snapshot, simulation)

    def settled(self, simulation: Simulation, events: tuple[Event, ...]) -> None:
        """Check the state at the end of an instant."""
        snapshot = simulation.cluster.snapshot()
        self._check_gangs(snapshot, simulation)
        self._check_debts(events, simulation)
        self._check_returns(snapshot, simulation)

    def close(self, simulation: Simulation) -> None:
        """Check what must have happened by the end."""
        for claimant, debt in sorted(self._debts.items()):
            if not self._is_excused(claimant, debt, simulation, is_over=True):
                self._note(
                    debt.at, f"{debt.victim} was evicted for {claimant}, which never starts"
                )
        self._debts = {}

    def _note(self, at: float, what: str) -> None:
        if len(self.violations) < _MOST_TOLD:
            self.violations.append(f"at {duration_of(at)}: {what}")

    def _check_gangs(self, snapshot: Snapshot, simulation: Simulation) -> None:
        for gang in snapshot.running:
            if gang.lost:
                since = gang.run.lost_at if gang.run and gang.run.lost_at is not None else 0.0
                if since + simulation.world.policy.replace_failed_for > simulation.now:
                    continue
            there = gang.running + len(gang.finished)
            if there < gang.min_replicas or len(gang.placement or ()) > gang.replicas:
                self._note(
                    simulation.now,
                    f"{gang.key} is partly placed: {there} of {gang.min_replicas} replicas",
                )

    def _check_nodes(self, snapshot: Snapshot, now: float) -> None:
        for number in np.flatnonzero(np.any(snapshot.free < 0, axis=0)):
            self._note(now, f"node {snapshot.nodes[number].name} holds more than it has")
        held = {name for gang in snapshot.running for name in gang.placement or () if name}
        for name in sorted(held):
            position = snapshot.tree.position.get(name)
            if position is None or not snapshot.nodes[position].is_ready:
                self._note(now, f"node {name} is down and holds replicas")

    def _check_limits(self, snapshot: Snapshot, now: float) -> None:
        """Nobody gains what passes a limit."""
        held, by_user = snapshot.held, _held_by_user(snapshot)
        for name, queue in sorted(snapshot.quotas.queues.items()):
            used = held.total.get(name, 0)
            if queue.limit is not None and max(queue.limit, self._held.total.get(name, 0)) < used:
                self._note(now, f"queue {name} holds {used} of {queue.limit} GPUs")
            for model, limit in sorted(queue.limit_by_model.items()):
                used = held.by_model.get((name, model), 0)
                if max(limit, self._held.by_model.get((name, model), 0)) < used:
                    self._note(now, f"queue {name} holds {used} of {limit} {model}")
        for (name, user), used in sorted(by_user.items()):
            limit_each = snapshot.quotas.queues[name].per_user_limit or 0
            if max(limit_each, self._by_user.get((name, user), 0)) < used:
                self._note(now, f"{user} holds {used} of {limit_each} GPUs in queue {name}")

    def _check_returns(self, snapshot: Snapshot, simulation: Simulation) -> None:
        """No state comes back by evictions alone."""
        evictions = sum(job.evictions for job in simulation.jobs.values())
        if snapshot.changed != self._changed:
            self._changed, self._seen = snapshot.changed, {}
        state = tuple((gang.key, gang.placement or ()) for gang in snapshot.running)
        before = self._seen.setdefault(state, evictions)
        if before < evictions:
            self._note(
                simulation.now,
                f"the same state comes back after {evictions - before} evictions, "
                "with nothing changed from outside",
            )
            self._seen[state] = evictions

    def _check_debts(self, events: Iterable[Event], simulation: Simulation) -> None:
        for event in events:
            if event.by and event.kind in (Kind.PREEMPTING, Kind.EVICTED):
                decided = self._asked.setdefault(event.by, simulation.world.disturbed)
                if event.kind is Kind.EVICTED:
                    self._debts.setdefault(event.by, _Debt(event.job, event.at, decided))
            elif event.kind in _GAINS:
                self._debts.pop(event.job, None)
                self._asked.pop(event.job, None)
        for claimant, debt in sorted(self._debts.items()):
            if self._is_excused(claimant, debt, simulation):
                del self._debts[claimant]
            elif not simulation.jobs[claimant].gang.claim:
                self._note(
                    debt.at, f"{debt.victim} was evicted for {claimant}, which does not start"
                )
                del self._debts[claimant]

    def _is_excused(
        self, claimant: str, debt: _Debt, simulation: Simulation, *, is_over: bool = False
    ) -> bool:
        """Whether something outside came between, or the rest of the victims have not left yet."""
        is_waiting = any(
            leaving.claimant == claimant
            for gang in simulation.cluster.snapshot().running
            for leaving in gang.leaving
        )
        return simulation.world.disturbed > debt.disturbed or (is_over and is_waiting)


def _held_by_user(snapshot: Snapshot) -> dict[tuple[str, str], int]:
    """GPUs that each user holds in each queue with a limit for users; jobs of nobody are free."""
    queues = snapshot.quotas.queues
    held: Counter[tuple[str, str]] = Counter()
    for gang in snapshot.running:
        for name in snapshot.quotas.lineage(gang.queue) if gang.user else ():
            if queues[name].per_user_limit is not None:
                held[name, gang.user] += gang.running * gang.needs.gpus
    return held
