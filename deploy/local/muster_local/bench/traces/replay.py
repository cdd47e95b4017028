"""A trace through the scheduler: all tenants in one cluster, then each alone on its quota."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from muster.errors import InvalidSpec
from muster.scheduling.cluster import Cluster
from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import Gang, Needs, Node, Order, Queue
from muster.simulation.drive import Simulation, Watcher
from muster.simulation.job import Work
from muster.simulation.timeline import Event, Kind
from muster_local.bench.onlooker import Onlooker
from muster_local.bench.quantiles import mean, quantile
from muster_local.bench.traces import figures
from muster_local.bench.traces.figures import Fate, TenantFigures, TraceFigures
from muster_local.bench.traces.reading import TraceJob, quotas, read_tenants, read_trace
from muster_local.bench.traces.sharing import Ledger
from muster_local.progress import Tell

DEFAULT_QUEUE: Final = "default"
_ONE_GPU: Final = Needs(gpus=1)
_TOLD_EVERY: Final = 5.0


@dataclass(frozen=True, slots=True)
class Setting:
    """How a trace is replayed. Times in seconds."""

    nodes: int
    gpus: int = 8
    """Of each node."""
    order: Order = Order.FIFO
    restart_cost: float = 30.0
    has_limits: bool = True
    """Whether each job declares how long it runs."""
    cut: float | None = None
    """Durations are cut at this; `None` leaves them."""

    def __post_init__(self) -> None:
        for flag in ("nodes", "gpus"):
            if getattr(self, flag) < 1:
                raise InvalidSpec(f"--{flag}", f"must be at least 1, is {getattr(self, flag)}")

    def policy(self, *, tells_reasons: bool) -> Policy:
        """Victims leave at once; what their restart costs is known."""
        policy = Policy(leaves_at_once=True, restart_time=self.restart_cost)
        return policy if tells_reasons else replace(policy, max_explained=0)


def run(trace: Path, tenants: Path | None, setting: Setting, tell: Tell) -> TraceFigures:
    """Replay the trace of a file, with a queue for each tenant where their quotas are given."""
    started = time.perf_counter()
    jobs = read_trace(trace)
    if tenants is None:
        jobs = tuple(replace(job, tenant=DEFAULT_QUEUE) for job in jobs)
    dealt = {} if tenants is None else quotas(read_tenants(tenants), setting.nodes * setting.gpus)
    strangers = sorted({job.tenant for job in jobs} - dealt.keys()) if dealt else []
    if strangers:
        raise InvalidSpec(str(tenants), f"has no line for tenant {strangers[0]!r} of {trace.name}")
    fates, ledger = share(jobs, dealt, setting, tell)
    found = []
    for tenant, quota in dealt.items():
        tell(f"tenant {tenant} alone on its {quota} GPUs")
        apart = alone([job for job in jobs if job.tenant == tenant], quota, setting)
        mine = [fate for fate in fates if fate.tenant == tenant]
        verdict = ledger.verdict(tenant, quota, mine)
        found.append(_compared(tenant, mine, apart, quota, verdict))
    return _figures(trace, setting, fates, tuple(found), time.perf_counter() - started)


def share(
    jobs: Sequence[TraceJob], dealt: Mapping[str, int], setting: Setting, tell: Tell
) -> tuple[list[Fate], Ledger]:
    """All jobs in one cluster, where each tenant with a quota has a queue and may borrow."""
    queues = [
        Queue(tenant, guaranteed=quota, weight=quota or 1, order=setting.order)
        for tenant, quota in dealt.items()
    ] or [Queue(DEFAULT_QUEUE, order=setting.order)]
    cluster = Cluster.of(nodes=_nodes(setting.nodes, setting.gpus), queues=queues)
    teller, ledger = _Teller(tell, len(jobs)), Ledger(setting.policy(tells_reasons=True))
    watchers: tuple[Watcher, ...] = (teller, ledger) if dealt else (teller,)
    return _fates(cluster, jobs, setting, watchers), ledger


def alone(jobs: Sequence[TraceJob], quota: int, setting: Setting) -> list[Fate]:
    """The jobs of one tenant on a cluster that is as large as its quota."""
    full, rest = divmod(quota, setting.gpus)
    nodes = _nodes(full, setting.gpus) + ([Node("rest", rest)] if rest else [])
    cluster = Cluster.of(nodes=nodes, queues=[Queue(DEFAULT_QUEUE, order=setting.order)])
    jobs = [replace(job, tenant=DEFAULT_QUEUE) for job in jobs]
    return _fates(cluster, jobs, setting, ())


def _fates(
    cluster: Cluster,
    jobs: Sequence[TraceJob],
    setting: Setting,
    watchers: tuple[Watcher, ...],
) -> list[Fate]:
    start = min((job.submitted for job in jobs), default=0.0)
    simulation = Simulation(
        cluster,
        setting.policy(tells_reasons=False),
        start=start,
        restart_cost=setting.restart_cost,
        watchers=watchers,
    )
    for number, job in enumerate(jobs):
        seconds = min(job.seconds, setting.cut) if setting.cut is not None else job.seconds
        limit = seconds if setting.has_limits else None
        simulation.submit(_gang(job, number, limit), Work(seconds))
    simulation.run()
    return [Fate.of(job) for job in simulation.jobs.values()]


def _nodes(number: int, gpus: int) -> list[Node]:
    return [Node(f"n{each}", gpus) for each in range(1, number + 1)]


def _gang(job: TraceJob, number: int, limit: float | None) -> Gang:
    return Gang(
        key=f"trace/{job.job_id}",
        replicas=job.gpus,
        min_replicas=job.gpus,
        needs=_ONE_GPU,
        submitted=job.submitted,
        sequence=number,
        queue=job.tenant,
        max_run_time=limit,
    )


def _compared(
    tenant: str, shared: Sequence[Fate], apart: Sequence[Fate], quota: int, verdict: str
) -> TenantFigures:
    wait, alone_wait = figures.mean_wait(shared), figures.mean_wait(apart)
    return TenantFigures(
        tenant=tenant,
        jobs=len(shared),
        quota_gpus=quota,
        mean_wait_s=round(wait, 1),
        alone_mean_wait_s=round(alone_wait, 1),
        beyond_quota=sum(fate.gpus > quota for fate in shared),
        gpu_seconds=round(sum(fate.gpu_seconds for fate in shared)),
        preemptions=sum(fate.evictions for fate in shared),
        reason=verdict if wait > alone_wait else "",
    )


def _figures(
    trace: Path,
    setting: Setting,
    fates: Sequence[Fate],
    tenants: tuple[TenantFigures, ...],
    wall: float,
) -> TraceFigures:
    ended, makespan = figures.completions(fates), figures.makespan(fates)
    available = makespan * setting.nodes * setting.gpus
    return TraceFigures(
        trace=trace.name.partition(".")[0],
        nodes=setting.nodes,
        gpus=setting.gpus,
        order=setting.order.value,
        limits="declared" if setting.has_limits else "none",
        cut_s=setting.cut,
        restart_cost_s=setting.restart_cost,
        jobs=len(fates),
        unfinished=len(fates) - len(ended),
        mean_jct_s=round(mean(ended), 1),
        p50_jct_s=round(quantile(ended, 0.5), 1),
        p99_jct_s=round(quantile(ended, 0.99), 1),
        mean_wait_s=round(figures.mean_wait(fates), 1),
        mean_wait_8gpu_s=round(figures.mean_wait(fates, figures.BIG_GPUS), 1),
        makespan_s=round(makespan, 1),
        utilization=round(sum(fate.gpu_seconds for fate in fates) / available, 4)
        if available
        else 0.0,
        preemptions=sum(fate.evictions for fate in fates),
        wall_s=round(wall, 2),
        tenants=tenants,
    )


@dataclass(slots=True)
class _Teller(Onlooker):
    """Says now and then how far the run is."""

    tell: Tell
    jobs: int
    started: int = 0
    said: float = field(default_factory=time.perf_counter)

    def settled(self, simulation: Simulation, events: tuple[Event, ...]) -> None:
        """Tell now and then."""
        self.started += sum(event.kind is Kind.STARTED for event in events)
        now = time.perf_counter()
        if now - self.said >= _TOLD_EVERY:
            self.said = now
            waiting = sum(map(len, simulation.cluster.snapshot().pending.values()))
            self.tell(
                f"replaying {self.jobs} jobs\nday {simulation.now / 86_400:.1f}: "
                f"{self.started} starts, {waiting} jobs wait"
            )
