"""What kept the jobs of each tenant waiting in a shared cluster, added up over a run.

Reasons cost time, so they are asked for once an hour of the trace, of the state that the scheduler
has settled on; what is held is counted at every instant.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from muster.scheduling.cycle import plan_cycle
from muster.scheduling.policy import Policy
from muster.simulation.drive import Simulation
from muster.simulation.timeline import Event
from muster_local.bench.onlooker import Onlooker
from muster_local.bench.traces.figures import Fate

_ASKED_EVERY: Final = 3_600.0


def _sums() -> defaultdict[str, float]:
    return defaultdict(float)


@dataclass(slots=True)
class Ledger(Onlooker):
    """Watches a run: who waited why, and what their queues held meanwhile."""

    policy: Policy
    """One that gives reasons."""
    reasons: defaultdict[str, defaultdict[str, float]] = field(
        default_factory=lambda: defaultdict(_sums)
    )
    """By tenant and reason code: seconds that its jobs waited, added up over the jobs."""
    waited: defaultdict[str, float] = field(default_factory=_sums)
    """Seconds in which at least one job of the tenant waited."""
    held: defaultdict[str, float] = field(default_factory=_sums)
    """GPU-seconds that the tenant held in these."""
    _since: float = 0.0
    _asked: float = 0.0
    _holding: dict[str, int] = field(default_factory=dict)

    def settled(self, simulation: Simulation, events: tuple[Event, ...]) -> None:
        """Add up what held since the last instant, and look at this one."""
        del events
        seconds = simulation.now - self._since
        self._since = simulation.now
        for tenant, gpus in self._holding.items():
            self.waited[tenant] += seconds
            self.held[tenant] += gpus * seconds
        snapshot = simulation.cluster.snapshot()
        held_by = snapshot.held.total
        self._holding = {tenant: held_by.get(tenant, 0) for tenant in snapshot.pending}
        if simulation.now - self._asked >= _ASKED_EVERY:
            for wait in plan_cycle(snapshot, self.policy, simulation.now).waiting:
                tenant = simulation.jobs[wait.gang].gang.queue
                self.reasons[tenant][wait.reason.value] += simulation.now - self._asked
            self._asked = simulation.now

    def verdict(self, tenant: str, quota: int, shared: Sequence[Fate]) -> str:
        """Why the tenant's jobs waited, in words with the numbers."""
        reasons = self.reasons[tenant]
        whole = sum(reasons.values())
        if not whole:
            return "its jobs hardly waited at all"
        parts = [
            f"{reason} {seconds / whole:.0%}"
            for reason, seconds in sorted(reasons.items(), key=lambda each: -each[1])[:3]
            if seconds >= whole / 100
        ]
        held = self.held[tenant] / self.waited[tenant]
        text = (
            f"its jobs waited for {', '.join(parts)} of the time; "
            f"it held {held:.0f} GPUs of its {quota} meanwhile"
        )
        evicted = sum(fate.evictions for fate in shared)
        if evicted:
            again = sum(fate.waited_again for fate in shared) / sum(f.waited for f in shared)
            text += f"; {again:.0%} of the wait was after {evicted} evictions of what it borrowed"
        return text
