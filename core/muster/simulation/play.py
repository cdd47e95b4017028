"""A scenario, played: driven to its end, with what must hold looked at on the way."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from muster.errors import InvalidSpec
from muster.scheduling.cluster import Cluster
from muster.simulation.drive import Simulation
from muster.simulation.entries import duration_of
from muster.simulation.expectations import View, What, shortfall
from muster.simulation.invariants import Invariants
from muster.simulation.scenario import NodeEvent, QueueEvent, Scenario
from muster.simulation.timeline import Event
from muster.simulation.world import Overplaced


@dataclass(frozen=True, slots=True)
class Shortfall:
    """An expectation that does not hold."""

    path: str
    """Where it stands in the scenario: `expect[3]`."""
    message: str


@dataclass(frozen=True, slots=True)
class Play:
    """What came out."""

    scenario: Scenario
    simulation: Simulation
    """As it is at the end."""
    end: float
    """In seconds."""
    utilization: float
    timeline: tuple[Event, ...]
    shortfalls: tuple[Shortfall, ...]
    violations: tuple[str, ...]
    """What holds in every scenario and did not here: defects of the scheduler."""
    skipped: int
    """Expectations of times that were not played."""


class Recorder:
    """A watcher that keeps all events."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def planning(self, simulation: Simulation) -> None:
        """Nothing to keep."""

    def planned(self, simulation: Simulation) -> None:
        """Nothing to keep."""

    def settled(self, simulation: Simulation, events: tuple[Event, ...]) -> None:
        """Keep what happened."""
        del simulation
        self.events.extend(events)


def play(scenario: Scenario, *, until: float | None = None) -> Play:
    """Drive *scenario* to its end, or to *until* in seconds where that is given.

    Raises `InvalidSpec` where a job cannot run already where it is said to.
    """
    end = scenario.until if until is None else until
    recorder, invariants = Recorder(), Invariants()
    simulation = simulation_of(scenario, (recorder, invariants))
    questions = _Questions(scenario, simulation)
    looks: dict[float, list[int]] = defaultdict(list)
    at_the_end = []
    skipped = 0
    for number, expectation in enumerate(scenario.expect):
        if expectation.at is None:
            at_the_end.append(number)
        elif end is not None and expectation.at > end:
            skipped += 1
        else:
            looks[expectation.at].append(number)
    try:
        for at in sorted(looks):
            simulation.run(at)
            if questions.need_reasons(looks[at]):
                simulation.explain()
            questions.ask(looks[at])
        simulation.run(inf if end is None else end)
    except Overplaced as error:
        raise _misplaced(scenario, error) from error
    simulation.explain()
    questions.ask(at_the_end)
    invariants.close(simulation)
    return Play(
        scenario=scenario,
        simulation=simulation,
        end=simulation.end if end is None else end,
        utilization=(simulation.utilization_at_the_end if end is None else simulation.utilization),
        timeline=tuple(recorder.events),
        shortfalls=questions.shortfalls,
        violations=tuple(invariants.violations),
        skipped=skipped,
    )


def simulation_of(scenario: Scenario, watchers: Sequence[Recorder | Invariants]) -> Simulation:
    """The simulation in which *scenario* is about to happen."""
    simulation = Simulation(
        Cluster.of(levels=scenario.levels, nodes=scenario.nodes, queues=scenario.queues),
        scenario.settings.policy,
        keeps_work=scenario.settings.keeps_work,
        watchers=tuple(watchers),
    )
    for job in scenario.jobs:
        simulation.submit(job.gang, job.work, after=job.after)
    for event in scenario.events:
        match event:
            case NodeEvent():
                simulation.node_becomes(event.at, event.node, event.becomes)
            case QueueEvent():
                simulation.set_queue(event.at, event.queue, event.fields)
            case _:
                simulation.suspend(event.at, event.job, is_suspended=event.is_suspended)
    return simulation


class _Questions:
    """Holds the simulation against expectations, which it knows by their number."""

    def __init__(self, scenario: Scenario, simulation: Simulation) -> None:
        self._scenario = scenario
        self._nodes = {node.name: node for node in scenario.nodes}
        self._simulation = simulation
        self._found: dict[int, str] = {}

    def need_reasons(self, numbers: Sequence[int]) -> bool:
        asked = (self._scenario.expect[number].what for number in numbers)
        return any(what in (What.REASON, What.PREDICTED_START) for what in asked)

    def ask(self, numbers: Sequence[int]) -> None:
        view = View(self._simulation, self._scenario.levels, self._nodes)
        for number in numbers:
            message = shortfall(self._scenario.expect[number], view)
            if message is not None:
                self._found[number] = message

    @property
    def shortfalls(self) -> tuple[Shortfall, ...]:
        expect = self._scenario.expect
        return tuple(Shortfall(expect[n].path, self._found[n]) for n in sorted(self._found))


def _misplaced(scenario: Scenario, error: Overplaced) -> InvalidSpec:
    job = next(job for job in scenario.jobs if job.gang.key == error.job)
    return InvalidSpec(
        f"{job.path}.nodes",
        f"{error.node} has no room for it at {duration_of(error.at)}; choose other nodes",
    )
