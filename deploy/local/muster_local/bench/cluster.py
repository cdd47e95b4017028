"""`muster bench cluster`: gangs through the operator on fake nodes, against bare creation.

The control plane, the fake nodes and the operator are started for this run alone and are gone
afterwards. What is measured is what a user waits for: from the first job's creation to the last
pod bound.
"""

import asyncio
import contextlib
import time
from collections import Counter
from dataclasses import dataclass
from typing import Final

from muster import wire
from muster.errors import Unavailable
from muster_kube import JOBS, NAMESPACES, PODS, Kube
from muster_local.bench import bare, requests, usage
from muster_local.bench.observer import Observer
from muster_local.bench.quantiles import quantile
from muster_local.bench.shape import NAMESPACE, Shape
from muster_local.bench.stage import Stage, set_up
from muster_local.component import last_lines
from muster_local.progress import Tell

_SUBMITTERS: Final = 16
_STUCK_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True)
class Figures:
    """What one run printed; keys are a contract with outside checks."""

    nodes: int
    gangs: int
    gang_size: int
    pods_bound: int
    gangs_partial: int
    seconds: float
    pods_per_second: float
    bare_create_pods_per_second: float
    ratio: float
    """`pods_per_second` as a part of `bare_create_pods_per_second`."""
    gang_p50_s: float
    gang_p99_s: float
    operator_cpu_s: float
    apiserver_etcd_cpu_s: float
    operator_peak_rss_mb: float
    requests_per_pod: float
    makespan_s: float
    """From the first job's creation until every pod had ended, or was bound where pods run on."""


def run(shape: Shape, tell: Tell) -> Figures:
    """Run *shape* on a cluster of its own. Raises `Unavailable` when the operator gets stuck."""
    with set_up(shape, tell) as stage:
        return asyncio.run(_measure(stage, shape, tell))


async def _measure(stage: Stage, shape: Shape, tell: Tell) -> Figures:
    async with await Kube.connect(stage.kubeconfig, connections=256) as kube:
        await kube.create(NAMESPACES.path(), {"metadata": {"name": NAMESPACE}})
        await bare.default_account(kube, NAMESPACE)
        observer = Observer(shape)
        watching = asyncio.create_task(observer.watch(kube))
        await observer.synced.wait()
        requests_before = await requests.served(kube)
        cpu_before = usage.cpu_seconds(stage.store_pids)
        operator_before = usage.cpu_seconds([stage.operator.pid])
        tell(f"submitting {shape.gangs} gangs of {shape.gang_size}")
        await _submit(kube, shape, observer)
        await _until_whole(observer, stage, tell)
        cpu = usage.cpu_seconds(stage.store_pids) - cpu_before
        operator_cpu = usage.cpu_seconds([stage.operator.pid]) - operator_before
        asked = await requests.served(kube) - requests_before
        await watching
        makespan = await _makespan(kube, shape, observer)
        bound, partial = await _audit(kube, shape)
        peak = usage.peak_rss_mb(stage.operator.pid)
        stage.stop_operator()
        rate = await bare.best_rate(kube, list(observer.pods.values()), tell)
    seconds = observer.seconds()
    waits = observer.waits()
    return Figures(
        nodes=shape.nodes,
        gangs=shape.gangs,
        gang_size=shape.gang_size,
        pods_bound=bound,
        gangs_partial=partial,
        seconds=round(seconds, 3),
        pods_per_second=round(bound / seconds, 1),
        bare_create_pods_per_second=round(rate, 1),
        ratio=round(bound / seconds / rate, 3),
        gang_p50_s=round(quantile(waits, 0.5), 3),
        gang_p99_s=round(quantile(waits, 0.99), 3),
        operator_cpu_s=round(operator_cpu, 2),
        apiserver_etcd_cpu_s=round(cpu, 2),
        operator_peak_rss_mb=round(peak, 1),
        requests_per_pod=round(asked / bound, 2),
        makespan_s=round(makespan, 3),
    )


async def _submit(kube: Kube, shape: Shape, observer: Observer) -> None:
    indexes = iter(range(shape.gangs))

    async def work() -> None:
        for index in indexes:
            job = shape.job(index)
            observer.submitted[job["metadata"]["name"]] = time.perf_counter()
            await kube.create(JOBS.path(NAMESPACE), job)

    await asyncio.gather(*(work() for _ in range(_SUBMITTERS)))


async def _until_whole(observer: Observer, stage: Stage, tell: Tell) -> None:
    """Wait for the last gang. Raises `Unavailable` when none became whole for a minute."""
    before, since = -1, time.perf_counter()
    while not observer.done.is_set():
        if len(observer.pods) != before:
            before, since = len(observer.pods), time.perf_counter()
            tell(f"placing\n{before} of {observer.shape.pods} pods bound")
        if time.perf_counter() - since > _STUCK_SECONDS:
            told = "\n".join(last_lines(stage.operator.log))
            raise Unavailable(
                f"{before} of {observer.shape.pods} pods were bound, and none more for "
                f"{_STUCK_SECONDS:g} s; the end of the operator's log:\n{told}"
            )
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_POLL_SECONDS):
                await observer.done.wait()


async def _audit(kube: Kube, shape: Shape) -> tuple[int, int]:
    """Pods bound and gangs in part, counted anew from what the API server has in the end."""
    pods, _ = await kube.list(PODS.path(NAMESPACE))
    by_gang = Counter(
        pod["metadata"]["labels"][wire.LABEL_JOB] for pod in pods if pod["spec"].get("nodeName")
    )
    partial = sum(count != shape.gang_size for count in by_gang.values())
    return by_gang.total(), partial


async def _makespan(kube: Kube, shape: Shape, observer: Observer) -> float:
    if not shape.duration_seconds:
        return observer.seconds()
    async with asyncio.timeout(_STUCK_SECONDS + shape.duration_seconds):
        while True:
            jobs, _ = await kube.list(JOBS.path(NAMESPACE))
            if all((job.get("status") or {}).get("phase") == "Succeeded" for job in jobs):
                return time.perf_counter() - min(observer.submitted.values())
            await asyncio.sleep(_POLL_SECONDS)
