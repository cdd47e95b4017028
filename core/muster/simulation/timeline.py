"""What happened to jobs, as values in the order in which it happened."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from muster.scheduling.snapshot import NOWHERE, Gang


class Kind(StrEnum):
    """What may happen to a job."""

    SUBMITTED = "submitted"
    STARTED = "started"
    GROWN = "grown"
    SHRUNK = "shrunk"
    """Surplus replicas were taken, or an elastic job goes on without lost ones."""
    PREEMPTING = "preempting"
    """It was asked to checkpoint and leave, in whole or in part."""
    EVICTED = "evicted"
    REPLICA_LOST = "replica-lost"
    REPLICA_REPLACED = "replica-replaced"
    REQUEUED = "requeued"
    SUSPENDED = "suspended"
    FINISHED = "finished"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a job, and what it holds after it."""

    at: float
    """In seconds on the clock of the simulation."""
    job: str
    kind: Kind
    replicas: int
    """Replicas that hold a node now."""
    placement: tuple[str, ...]
    """The node of each rank; `NOWHERE` for one that is lost or has finished."""
    by: str = ""
    """The job that it made room for."""


def event_of(at: float, kind: Kind, gang: Gang, by: str = "") -> Event:
    """An event of *gang* as it is after it."""
    return Event(at, gang.key, kind, gang.running, gang.placement or (), by)


def told(events: Iterable[Event]) -> tuple[Event, ...]:
    """What happened at one instant: a job that starts and grows starts with what it has then."""
    found: list[Event] = []
    starts: dict[str, int] = {}
    for event in events:
        start = starts.get(event.job)
        if start is not None and event.kind in (Kind.GROWN, Kind.SHRUNK):
            found[start] = replace(
                found[start], replicas=event.replicas, placement=event.placement
            )
            continue
        if event.kind is Kind.STARTED:
            starts[event.job] = len(found)
        else:
            starts.pop(event.job, None)
        found.append(event)
    return tuple(found)


def as_json(event: Event) -> Mapping[str, object]:
    """The event as `simulate -o json` prints it."""
    told: dict[str, object] = {
        "at": event.at,
        "job": event.job,
        "event": event.kind.value,
        "replicas": event.replicas,
        "placement": [None if node == NOWHERE else node for node in event.placement],
    }
    if event.by:
        told["by"] = event.by
    return told
