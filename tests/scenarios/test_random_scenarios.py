"""What holds in every scenario holds in random ones, and the cluster keeps its books right."""

import pytest

from muster.simulation.drive import Simulation
from muster.simulation.forecast import forecast
from muster.simulation.invariants import Invariants
from muster.simulation.play import simulation_of
from muster.simulation.reading import scenario_of
from random_scenarios import scenario

BLOCK = 20


class Curious:
    """Asks for reasons and forecasts, which must have an answer in every state."""

    def __init__(self) -> None:
        self.instants = 0

    def planning(self, simulation: Simulation) -> None:
        pass

    def planned(self, simulation: Simulation) -> None:
        pass

    def settled(self, simulation: Simulation, events: object) -> None:
        self.instants += 1
        if not self.instants % 3:
            simulation.explain()
        if not self.instants % 9:
            before = simulation.cluster.objects()
            forecast(simulation.cluster, simulation.world.policy, simulation.now)
            assert before == simulation.cluster.objects()


def wrongs(seed: int) -> list[str]:
    described = scenario_of(scenario(seed))
    rules = Invariants()
    simulation = simulation_of(described, (rules, Curious()))
    simulation.run(described.until or 0.0)
    rules.close(simulation)
    return [*rules.violations, *simulation.cluster.audit()]


@pytest.mark.parametrize("block", range(8))
def test_every_rule_holds(block: int) -> None:
    found = {seed: wrongs(seed) for seed in range(block * BLOCK, (block + 1) * BLOCK)}

    assert {} == {seed: wrong for seed, wrong in found.items() if wrong}
