"""The workloads of Kueue's own performance test, driven in simulated time.

The sizes, priorities, run times and intervals are those of kubernetes-sigs/kueue,
`test/performance/scheduler/configs/baseline/generator.yaml`: 5 cohorts of 6 queues with a quota of
20 units each, that may borrow 100 and reclaim; in each queue 350 workloads of 1 unit, 100 of 5 and
50 of 20. As there, nobody declares how long it runs, and whoever is evicted starts over. Unlike
there, a unit is a pod with a GPU that must find its node (8 GPUs each), and the clock jumps: at
each instant at which something comes or ends the scheduler decides until nothing is left to do.
"""

import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from muster.scheduling.cluster import Cluster
from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import Gang, Node, Queue
from muster.simulation.drive import Simulation
from muster.simulation.job import Work
from muster.simulation.timeline import Event, Kind
from muster_local.bench.onlooker import Onlooker
from muster_local.bench.quantiles import mean
from muster_local.bench.scheduling.scenes import GPUS, gpus, node
from muster_local.bench.scheduling.stopwatch import Measured

_COHORTS: Final = 5
_QUEUES: Final = 6
_QUOTA: Final = 20
_MAY_BORROW: Final = 100
_DECIDED: Final = (Kind.STARTED, Kind.EVICTED)


@dataclass(frozen=True, slots=True)
class Class:
    """Equal workloads that come to a queue one after the other."""

    name: str
    count: int
    interval_ms: int
    runtime_ms: int
    priority: int
    units: int


CLASSES: Final = (
    Class("small", 350, 100, 200, 50, 1),
    Class("medium", 100, 500, 500, 100, 5),
    Class("large", 50, 1_200, 1_000, 200, 20),
)


def kueue_baseline(part: int) -> Measured:
    """All 15,000 workloads from the first submission until the last has ended.

    A tenth is three queues of one cohort.
    """
    cohorts, queues = (_COHORTS, _QUEUES) if part == 1 else (1, _COHORTS * _QUEUES // part)
    quota = cohorts * queues * _QUOTA
    cluster = Cluster.of(nodes=_nodes(quota), queues=_tree(cohorts, queues))
    meter = Meter(quota)
    simulation = Simulation(
        cluster, Policy(leaves_at_once=True), keeps_work=False, watchers=(meter,)
    )
    for gang, seconds in _workloads(cohorts, queues):
        simulation.submit(gang, Work(seconds))
    cpu, wall = time.process_time(), meter.start()
    simulation.run()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    jobs = simulation.jobs.values()
    waits = defaultdict(list)
    for job in jobs:
        assert job.finished is not None, f"{job.key} never ended"
        waits[job.key.partition("/")[2].partition("-")[0]].append(
            job.starts[0] - job.gang.submitted
        )
    return Measured(
        meter.decisions,
        tuple(meter.samples),
        wall,
        cpu,
        {
            "workloads": len(jobs),
            "workloads_per_second": round(len(jobs) / wall, 1),
            "decisions_per_second": round(meter.decisions / wall, 1),
            "quota_use": round(meter.use, 4),
            "simulated_s": simulation.end,
            "evictions": sum(job.evictions for job in jobs),
            "mean_time_to_start_s": {name: round(mean(waits[name]), 3) for name in sorted(waits)},
        },
    )


@dataclass(slots=True)
class Meter(Onlooker):
    """Watches a run: what each decision took, and how much of the quota is used meanwhile."""

    quota: int
    samples: list[float] = field(default_factory=list)
    """Seconds of wall time of each decision: an instant's, divided among what it decided."""
    decisions: int = 0
    _since: float = 0.0
    _at: float = 0.0
    _used: float = 0.0
    """Unit-seconds held while somebody waited."""
    _seconds: float = 0.0
    """Seconds in which somebody waited."""
    _held: int = 0
    _has_backlog: bool = False

    @property
    def use(self) -> float:
        """The part of the quota that was held while there was a backlog."""
        return self._used / (self._seconds * self.quota) if self._seconds else 0.0

    def start(self) -> float:
        """Start the clock."""
        self._since = time.perf_counter()
        return self._since

    def settled(self, simulation: Simulation, events: tuple[Event, ...]) -> None:
        """Count an instant, and what held since the last one."""
        now = time.perf_counter()
        decided = sum(event.kind in _DECIDED for event in events)
        self.samples += [(now - self._since) / decided] * decided if decided else []
        self.decisions += decided
        if self._has_backlog:
            self._used += self._held * (simulation.now - self._at)
            self._seconds += simulation.now - self._at
        self._at = simulation.now
        snapshot = simulation.cluster.snapshot()
        self._has_backlog = bool(snapshot.pending)
        self._held = int(snapshot.capacity[0].sum() - snapshot.free[0].sum())
        self._since = time.perf_counter()


def _nodes(gpus: int) -> Iterator[Node]:
    full, rest = divmod(gpus, GPUS)
    for place in range(full):
        yield Node(node(place), GPUS)
    if rest:
        yield Node(node(full), rest)


def _tree(cohorts: int, queues: int) -> Iterator[Queue]:
    for cohort in range(cohorts):
        whole = queues * _QUOTA
        yield Queue(f"cohort-{cohort}", guaranteed=whole, limit=whole)
        for number in range(queues):
            yield Queue(
                f"cq-{number}-cohort-{cohort}",
                f"cohort-{cohort}",
                limit=_QUOTA + _MAY_BORROW,
                guaranteed=_QUOTA,
            )


def _workloads(cohorts: int, queues: int) -> Iterator[tuple[Gang, float]]:
    """Each workload and the seconds that it runs; the first comes after one interval."""
    order = 0
    for cohort in range(cohorts):
        for number in range(queues):
            queue = f"cq-{number}-cohort-{cohort}"
            for each in CLASSES:
                for index in range(each.count):
                    order += 1
                    gang = Gang(
                        f"{queue}/{each.name}-{index}",
                        each.units,
                        each.units,
                        gpus(1),
                        submitted=(index + 1) * each.interval_ms / 1_000,
                        sequence=order,
                        queue=queue,
                        priority=each.priority,
                    )
                    yield gang, each.runtime_ms / 1_000
