"""When pending gangs start, if every running job ends as it declared or reports.

The same core is driven over the future of a copy. Nobody knows what will be submitted, and a job
that is overdue or has no limit never ends, so that a forecast is a statement about what is known.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Final

from muster.scheduling.cluster import Cluster
from muster.scheduling.cycle import plan_cycle
from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import Gang
from muster.simulation.drive import Planner, Simulation, Unsettled
from muster.simulation.effects import run_of
from muster.simulation.timeline import Event, Kind

_MOST_INSTANTS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Forecast:
    """When a gang starts."""

    starts: float | None
    """In seconds on the cluster's clock; `None` where nobody can know."""
    waits_for: str = ""
    """The job whose end makes it start; empty where none does."""


UNFORESEEN: Final = Forecast(None)


def expected_end(gang: Gang, now: float) -> float:
    """When a gang that runs, or would start at *now*, ends; infinity where that is not known."""
    run = run_of(gang)
    if gang.is_pending:
        starts = now
    else:
        starts = run.started
        if run.eta is not None:
            return run.eta if run.eta > now else inf
    if gang.max_run_time is None:
        return inf
    end = starts + max(0.0, gang.max_run_time - gang.ran)
    return end if end > now else inf


def forecast(
    cluster: Cluster,
    policy: Policy,
    now: float,
    *,
    after: Mapping[str, str] | None = None,
    most_instants: int = _MOST_INSTANTS,
    planner: Planner = plan_cycle,
) -> Mapping[str, Forecast]:
    """The forecast of every pending gang of *cluster*, which stays as it is.

    *after* names the job that has to succeed before a gang that is held back. Nothing is driven
    further than *most_instants* times at which something happens: what has not started by then is
    unforeseen.
    """
    copy = cluster.copy()
    watcher = _Starts()
    future = Simulation(copy, policy, start=now, watchers=(watcher,), planner=planner)
    gangs = cluster.objects().gangs
    for gang in gangs:
        future.adopt(gang, expected_end(gang, now) - now, after=(after or {}).get(gang.key, ""))
    pending = [gang.key for gang in gangs if gang.is_pending]
    watcher.awaited = set(pending)
    watcher.instants_left = most_instants
    if pending:
        try:
            future.look(now)
            future.run(stops=watcher.has_seen_enough)
        except Unsettled:
            # Whatever is wrong with the core shows where it decides; nothing is foreseen here.
            pass
    return {key: watcher.found.get(key, UNFORESEEN) for key in pending}


class _Starts:
    """Notes when gangs start, and what ended last before that in the same instant."""

    def __init__(self) -> None:
        self.awaited: set[str] = set()
        self.found: dict[str, Forecast] = {}
        self.instants_left = 0

    def planning(self, simulation: Simulation) -> None:
        """Nothing to note."""

    def planned(self, simulation: Simulation) -> None:
        """Nothing to note."""

    def settled(self, simulation: Simulation, events: tuple[Event, ...]) -> None:
        """Note who starts."""
        self.instants_left -= 1
        ended = ""
        for event in events:
            if event.kind is Kind.FINISHED:
                ended = event.job
            elif event.kind is Kind.STARTED and event.job in self.awaited:
                self.awaited.discard(event.job)
                self.found[event.job] = Forecast(simulation.now, ended)

    def has_seen_enough(self, simulation: Simulation) -> bool:
        """Whether nothing is left to note, or it takes too long."""
        del simulation
        return not self.awaited or self.instants_left <= 0
