"""What a replay of a trace says; the keys are a contract with outside checks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from muster.simulation.job import Job
from muster_local.bench.quantiles import mean

BIG_GPUS = 8
"""From this size on jobs count as big gangs: those that skipping starves."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of one rigid job. Times in seconds of the trace."""

    tenant: str
    gpus: int
    submitted: float
    finished: float | None
    waited: float
    """Without GPUs, from the submission on, those after evictions included."""
    waited_again: float
    """Those after evictions."""
    evictions: int
    gpu_seconds: float
    """Held, restarts included."""

    @classmethod
    def of(cls, job: Job) -> "Fate":
        """From the simulation, once that has ended."""
        gang, gpus = job.gang, job.gang.replicas * job.gang.needs.gpus
        running = job.held_gpu_seconds / gpus
        first = job.starts[0] - gang.submitted if job.starts else 0.0
        waited = 0.0 if job.finished is None else job.finished - gang.submitted - running
        return cls(
            tenant=gang.queue,
            gpus=gpus,
            submitted=gang.submitted,
            finished=job.finished,
            waited=max(0.0, waited),
            waited_again=max(0.0, waited - first),
            evictions=job.evictions,
            gpu_seconds=job.held_gpu_seconds,
        )


@dataclass(frozen=True, slots=True)
class TenantFigures:
    """One tenant in the shared cluster, beside the same tenant alone on its quota."""

    tenant: str
    jobs: int
    quota_gpus: int
    """What it is guaranteed in the shared cluster, and all that it has when it is alone."""
    mean_wait_s: float
    alone_mean_wait_s: float
    """Of the jobs that its quota can hold at all."""
    beyond_quota: int
    """Jobs that are larger than its quota: alone they would never start."""
    gpu_seconds: int
    """What its jobs held in the shared cluster."""
    preemptions: int
    reason: str
    """Why sharing made it wait longer; empty where it did not."""


@dataclass(frozen=True, slots=True)
class TraceFigures:
    """One run. Times in seconds of the trace, but for `wall_s`."""

    trace: str
    nodes: int
    gpus: int
    """Of each node."""
    order: str
    limits: str
    """`declared` where the scheduler was told how long each job runs, else `none`."""
    cut_s: float | None
    """Durations are cut at this."""
    restart_cost_s: float
    jobs: int
    unfinished: int
    """Jobs that never ended, since the cluster cannot hold them; nothing else counts them."""
    mean_jct_s: float
    p50_jct_s: float
    p99_jct_s: float
    mean_wait_s: float
    mean_wait_8gpu_s: float
    """Of the jobs of 8 GPUs and more."""
    makespan_s: float
    """From the first submission to the last end."""
    utilization: float
    """GPU-seconds held, those of restarts too, of all GPU-seconds of the makespan."""
    preemptions: int
    wall_s: float
    """What the run took on this machine, the tenants' runs alone included."""
    tenants: tuple[TenantFigures, ...] = ()


def completions(fates: Iterable[Fate]) -> list[float]:
    """Seconds from submission to end of each job that ended, ascending."""
    return sorted(fate.finished - fate.submitted for fate in fates if fate.finished is not None)


def mean_wait(fates: Iterable[Fate], least_gpus: int = 0) -> float:
    """Mean seconds without GPUs of the jobs that ended and have so many GPUs."""
    return mean([f.waited for f in fates if f.finished is not None and f.gpus >= least_gpus])


def makespan(fates: Sequence[Fate]) -> float:
    """From the first submission to the last end."""
    ends = [fate.finished for fate in fates if fate.finished is not None]
    return max(ends) - min(fate.submitted for fate in fates) if ends else 0.0
