"""A watcher of a simulation that only looks at what holds at the end of each instant."""

from muster.simulation.drive import Simulation
from muster.simulation.timeline import Event


class Onlooker:
    """Sees nothing; whoever wants to see more overrides it."""

    __slots__ = ()

    def planning(self, simulation: Simulation) -> None:
        """A cycle has decided something."""

    def planned(self, simulation: Simulation) -> None:
        """That has been carried out."""

    def settled(self, simulation: Simulation, events: tuple[Event, ...]) -> None:
        """An instant is over."""
