"""What a Gantt chart shows, in numbers: who ran when, and how many GPUs were held."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from muster.simulation.play import Play
from muster.simulation.scenario import NodeEvent
from muster.simulation.timeline import Event, Kind
from muster.simulation.world import Becomes


@dataclass(frozen=True, slots=True)
class Span:
    """A job between two events."""

    start: float
    end: float
    replicas: int
    """That run; 0 while it waits."""


def spans(events: Iterable[Event], end: float) -> list[Span]:
    """What a job did from its submission to its own end, or that of the simulation."""
    found: list[Span] = []
    since, replicas = 0.0, -1
    for event in events:
        if replicas >= 0 and event.at > since:
            found.append(Span(since, event.at, replicas))
        since, replicas = event.at, event.replicas
        if event.kind in (Kind.FINISHED, Kind.FAILED):
            replicas = -1
    if replicas >= 0 and end > since:
        found.append(Span(since, end, replicas))
    return _joined(found)


def _joined(found: Sequence[Span]) -> list[Span]:
    """Spans that look the same are one."""
    joined: list[Span] = []
    for span in found:
        if joined and joined[-1].replicas == span.replicas and joined[-1].end == span.start:
            joined[-1] = Span(joined[-1].start, span.end, span.replicas)
        else:
            joined.append(span)
    return joined


def by_job(timeline: Iterable[Event]) -> Mapping[str, Sequence[Event]]:
    """The events of each job, in their order."""
    found: dict[str, list[Event]] = {}
    for event in timeline:
        found.setdefault(event.job, []).append(event)
    return found


def held_gpus(play: Play, end: float) -> tuple[list[float], Mapping[str, list[int]]]:
    """Times at which that changes, and the GPUs that each queue holds from then on."""
    changes: dict[float, dict[str, int]] = {0.0: {}, end: {}}
    events = by_job(play.timeline)
    for job in play.scenario.jobs:
        queue, each = job.gang.queue, job.gang.needs.gpus
        for span in spans(events.get(job.gang.key, ()), end):
            for at, gpus in (
                (span.start, each * span.replicas),
                (span.end, -each * span.replicas),
            ):
                of_queues = changes.setdefault(at, {})
                of_queues[queue] = of_queues.get(queue, 0) + gpus
    times = sorted(changes)
    held = {job.gang.queue: [0] for job in play.scenario.jobs}
    for queue, counts in held.items():
        for at in times:
            counts.append(counts[-1] + changes[at].get(queue, 0))
        del counts[0]
        # What ends with the simulation is held up to there.
        counts[-1] = counts[-2]
    return times, held


def up_gpus(play: Play, end: float) -> tuple[list[float], list[int]]:
    """Times at which that changes, and the GPUs of nodes that are up from then on."""
    gpus = {node.name: node.gpus for node in play.scenario.nodes}
    is_up = dict.fromkeys(gpus, True)
    times, counts = [0.0], [sum(gpus.values())]
    for event in sorted(play.scenario.events, key=lambda event: event.at):
        if isinstance(event, NodeEvent) and event.at <= end:
            is_up[event.node] = event.becomes is not Becomes.DOWN and (
                is_up[event.node] or event.becomes is Becomes.UP
            )
            times.append(event.at)
            counts.append(sum(each for name, each in gpus.items() if is_up[name]))
    return [*times, end], [*counts, counts[-1]]
