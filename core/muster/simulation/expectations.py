"""What must be true of the outcome of a scenario, and what is true instead.

Each kind of expectation is a question to the simulation at one time; it holds where the answer is
what was wanted.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from math import isclose
from typing import Final

from muster.scheduling.snapshot import NODE_LEVEL, NOWHERE, Level, Node
from muster.simulation.drive import Simulation
from muster.simulation.entries import duration_of
from muster.simulation.forecast import Forecast, forecast
from muster.simulation.job import Job, State

UNKNOWN: Final = "unknown"
"""A predicted start that nobody knows."""
NEVER: Final = "never"


class What(StrEnum):
    """The kinds of expectation, by the field that says what is wanted."""

    STATE = "state"
    STARTED_AT = "startedAt"
    FINISHED_AT = "finishedAt"
    EVICTIONS = "evictions"
    REPLICAS_LOST = "replicasLost"
    REPLICAS = "replicas"
    NODES = "nodes"
    NODES_WITHIN = "nodesWithin"
    RANKS = "ranks"
    RING_CROSSINGS = "ringCrossings"
    REASON = "reason"
    PREDICTED_START = "predictedStart"
    FREE_GPUS = "freeGpus"
    SHARE = "share"


Answer = str | int | float | tuple[str, ...] | Mapping[str, int]
"""Times are in seconds, or one of the words `never` and `unknown`."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """One thing that must hold."""

    path: str
    """Where it stands in the file: `expect[3]`."""
    what: What
    want: Answer
    at: float | None = None
    """When, in seconds; `None` for the end."""
    job: str = ""
    queue: str = ""
    one_of: tuple[str, ...] = ()
    """Of these jobs, `want` are evicted, each once."""
    level: str = ""
    tolerance: float = 0.0
    """How far a share may be off, absolute."""


class View:
    """The simulation as it is now, for questions."""

    def __init__(
        self, simulation: Simulation, levels: tuple[Level, ...], nodes: Mapping[str, Node]
    ) -> None:
        self.simulation = simulation
        self._levels = tuple(level.label for level in levels)
        self._nodes = nodes

    def job(self, name: str) -> Job:
        """The job of that name."""
        return self.simulation.jobs[name]

    def domain(self, node: str, level: str) -> tuple[str, ...]:
        """The domain of a node, with those around it; a node without the label is one alone."""
        if level == NODE_LEVEL:
            return (node,)
        labels = self._nodes[node].labels
        outward = self._levels[: self._levels.index(level) + 1]
        path = tuple(labels.get(label, "") for label in outward)
        return path if path[-1] else (*path, node)

    @cached_property
    def predictions(self) -> Mapping[str, Forecast]:
        """When each pending job starts, as far as can be foreseen."""
        simulation = self.simulation
        after = {
            job.key: job.after
            for job in simulation.jobs.values()
            if job.after and job.gang.held_back
        }
        return forecast(simulation.cluster, simulation.world.policy, simulation.now, after=after)

    @property
    def free_gpus(self) -> int:
        """GPUs in order that nobody holds, on nodes that take jobs."""
        snapshot = self.simulation.cluster.snapshot()
        return sum(
            max(0, int(free))
            for free, is_up in zip(snapshot.free[0], snapshot.is_up, strict=True)
            if is_up
        )

    def share(self, queue: str) -> float:
        """The GPUs that a queue uses, decayed where a half-life is set."""
        snapshot = self.simulation.cluster.snapshot()
        if self.simulation.world.policy.usage_half_life > 0:
            return snapshot.usage.get(queue, 0.0)
        return float(snapshot.held.total.get(queue, 0))


def shortfall(expectation: Expectation, view: View) -> str | None:
    """What is true in place of the expectation, in one line; `None` where it holds."""
    got = _ANSWERS[expectation.what](view, expectation)
    if _holds(expectation, got):
        return None
    subject = f"job {expectation.job}" if expectation.job else ""
    if expectation.queue:
        subject = f"queue {expectation.queue}"
    if expectation.one_of:
        subject = f"jobs {', '.join(expectation.one_of)}, each at most once"
    when = "" if expectation.at is None else f" at {duration_of(expectation.at)}"
    want = _shown(expectation.what, expectation.want)
    head = f"{subject}: " if subject else ""
    return f"{head}{expectation.what}{when} must be {want}, is {_shown(expectation.what, got)}"


def _holds(expectation: Expectation, got: Answer) -> bool:
    want = expectation.want
    if expectation.what is What.SHARE:
        assert isinstance(want, float)
        assert isinstance(got, float)
        # Not narrower than a float can say.
        return isclose(got, want, rel_tol=1e-12, abs_tol=max(expectation.tolerance, 1e-9))
    return got == want


def _shown(what: What, answer: Answer) -> str:
    if isinstance(answer, tuple):
        return f"[{', '.join(node or 'none' for node in answer)}]"
    if isinstance(answer, Mapping):
        return f"{{{', '.join(f'{name}: {count}' for name, count in answer.items())}}}"
    is_time = what in (What.STARTED_AT, What.FINISHED_AT, What.PREDICTED_START)
    if is_time and not isinstance(answer, str):
        return duration_of(answer)
    return f"{answer:.6g}" if isinstance(answer, float) else str(answer)


def _state(view: View, expectation: Expectation) -> Answer:
    job = view.job(expectation.job)
    return job.state.value if job.is_submitted else "not submitted"


def _started(view: View, expectation: Expectation) -> Answer:
    starts = view.job(expectation.job).starts
    return starts[0] if starts else NEVER


def _finished(view: View, expectation: Expectation) -> Answer:
    finished = view.job(expectation.job).finished
    return NEVER if finished is None else finished


def _evictions(view: View, expectation: Expectation) -> Answer:
    if expectation.one_of:
        counts = [view.job(name).evictions for name in expectation.one_of]
        # One that is evicted twice is not one of them.
        return sum(counts) if max(counts) <= 1 else f"{sum(counts)}, of one job {max(counts)}"
    if expectation.job:
        return view.job(expectation.job).evictions
    return sum(job.evictions for job in view.simulation.jobs.values())


def _replicas_lost(view: View, expectation: Expectation) -> Answer:
    return view.job(expectation.job).replicas_lost


def _held(view: View, expectation: Expectation) -> tuple[str, ...]:
    """The nodes that the job holds, in rank order."""
    return tuple(node for node in view.job(expectation.job).placement if node != NOWHERE)


def _replicas(view: View, expectation: Expectation) -> Answer:
    return len(_held(view, expectation))


def _nodes(view: View, expectation: Expectation) -> Answer:
    return dict(Counter(_held(view, expectation)))


def _nodes_within(view: View, expectation: Expectation) -> Answer:
    return len({view.domain(node, expectation.level) for node in _held(view, expectation)})


def _ranks(view: View, expectation: Expectation) -> Answer:
    return view.job(expectation.job).placement


def _ring_crossings(view: View, expectation: Expectation) -> Answer:
    domains = [view.domain(node, expectation.level) for node in _held(view, expectation)]
    following = domains[1:] + domains[:1]
    return sum(here != there for here, there in zip(domains, following, strict=True))


def _reason(view: View, expectation: Expectation) -> Answer:
    job = view.job(expectation.job)
    if not job.is_submitted:
        return "none, it is not submitted"
    if job.state is not State.PENDING:
        return f"none, it is {job.state.value}"
    return job.wait.reason.value if job.wait else "none"


def _predicted_start(view: View, expectation: Expectation) -> Answer:
    job = view.job(expectation.job)
    if not job.is_submitted or job.state is not State.PENDING:
        return f"none, it is {job.state.value if job.is_submitted else 'not submitted'}"
    said = job.wait.predicted_start if job.wait else None
    if said is not None and said > view.simulation.now:
        return said
    # What was said is over, or nothing was.
    foreseen = view.predictions.get(job.key)
    return UNKNOWN if foreseen is None or foreseen.starts is None else foreseen.starts


def _free_gpus(view: View, _: Expectation) -> Answer:
    return view.free_gpus


def _share(view: View, expectation: Expectation) -> Answer:
    return view.share(expectation.queue)


_ANSWERS: Final[Mapping[What, Callable[[View, Expectation], Answer]]] = {
    What.STATE: _state,
    What.STARTED_AT: _started,
    What.FINISHED_AT: _finished,
    What.EVICTIONS: _evictions,
    What.REPLICAS_LOST: _replicas_lost,
    What.REPLICAS: _replicas,
    What.NODES: _nodes,
    What.NODES_WITHIN: _nodes_within,
    What.RANKS: _ranks,
    What.RING_CROSSINGS: _ring_crossings,
    What.REASON: _reason,
    What.PREDICTED_START: _predicted_start,
    What.FREE_GPUS: _free_gpus,
    What.SHARE: _share,
}
