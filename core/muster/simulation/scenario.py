"""A scenario in values: a cluster, its queues, what happens, and what must be true of the outcome.

The format is described in `docs/scenarios.md`; `reading` makes these from plain mappings.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import Gang, Level, Node, Queue
from muster.simulation.expectations import Expectation
from muster.simulation.job import Work
from muster.simulation.world import Becomes


@dataclass(frozen=True, slots=True)
class Settings:
    """How the scheduler is set. Times in seconds."""

    reservation: bool = True
    notice: float = 0.0
    """Between the request to checkpoint and the eviction."""
    keeps_work: bool = True
    """An evicted job goes on where it was."""
    usage_half_life: float = 0.0
    replace_failed_for: float = 60.0

    @property
    def policy(self) -> Policy:
        """The knobs of the core that say the same."""
        return Policy(
            reservation=self.reservation,
            leaves_at_once=self.notice == 0,
            notice=self.notice,
            usage_half_life=self.usage_half_life,
            replace_failed_for=self.replace_failed_for,
        )


@dataclass(frozen=True, slots=True)
class ScenarioJob:
    """A job of a scenario."""

    path: str
    """Where it stands in the file: `jobs[3]`."""
    gang: Gang
    """As it is submitted; with a placement where it runs already by then."""
    work: Work
    after: str = ""


@dataclass(frozen=True, slots=True)
class NodeEvent:
    """A node goes down, is drained, or is up again."""

    at: float
    node: str
    becomes: Becomes


@dataclass(frozen=True, slots=True)
class QueueEvent:
    """A queue gets other settings: fields of `Queue`, by name."""

    at: float
    queue: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class JobEvent:
    """A job is suspended, or let go on."""

    at: float
    job: str
    is_suspended: bool


ScenarioEvent = NodeEvent | QueueEvent | JobEvent


@dataclass(frozen=True, slots=True)
class Scenario:
    """All of it."""

    name: str
    about: str
    settings: Settings
    levels: tuple[Level, ...]
    nodes: tuple[Node, ...]
    queues: tuple[Queue, ...]
    jobs: tuple[ScenarioJob, ...]
    events: tuple[ScenarioEvent, ...]
    until: float | None
    """The end; `None` where it ends when nothing can change any more."""
    expect: tuple[Expectation, ...]
