"""The rows as frozen values: what goes into the database and what comes out of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from muster.cost import EpochSpan, Holding

FINAL_PHASES: Final = ("Succeeded", "Failed", "Cancelled")
"""Phases after which nothing comes."""


@dataclass(frozen=True, slots=True)
class JobFacts:
    """A job as its object says it is."""

    uid: str
    namespace: str
    name: str
    queue: str
    user_name: str | None
    team: str | None
    experiment: str | None
    priority: int
    replicas: int
    gpus_per_replica: int
    generation: int
    phase: str
    reason: str
    message: str
    attempt: int
    submitted_ms: int
    started_ms: int | None
    finished_ms: int | None
    deleting_ms: int | None
    is_held: bool
    """The recorder's finalizer is on it."""
    status: Mapping[str, Any]

    @property
    def is_final(self) -> bool:
        """Whether its phase is one after which nothing comes."""
        return self.phase in FINAL_PHASES

    @property
    def gpus(self) -> int:
        """GPUs of the whole gang."""
        return self.replicas * self.gpus_per_replica


@dataclass(frozen=True, slots=True)
class Job(JobFacts):
    """A job as the database knows it."""

    deleted_ms: int | None = None
    is_end_uncertain: bool = False
    is_settled: bool = False
    epoch: int | None = None
    step: int | None = None
    reported_ms: int | None = None


@dataclass(frozen=True, slots=True)
class AttemptFacts:
    """One attempt of a job."""

    job_uid: str
    attempt: int
    decided_ms: int
    running_ms: int | None
    ended_ms: int | None
    outcome: str | None
    cause: str | None
    message: str | None
    replicas: int
    gpus: int
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlacedReplica:
    """A replica as it was decided: from then on it holds its GPUs."""

    job_uid: str
    attempt: int
    replica: int
    node: str
    gpus: int
    start_ms: int


@dataclass(frozen=True, slots=True)
class SeenPod:
    """The pod of a replica, and when it ended."""

    job_uid: str
    attempt: int
    replica: int
    incarnation: int
    pod_uid: str
    pod_ended_ms: int | None


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What a node's GPUs are, as far as money is concerned."""

    name: str
    gpu_model: str | None
    capacity_type: str | None
    is_simulated: bool


@dataclass(frozen=True, slots=True)
class EpochRow:
    """What was reported of one epoch in one attempt."""

    attempt: int
    epoch: int
    started_ms: int | None
    finished_ms: int | None
    step: int | None
    metrics: Mapping[str, float | str]


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """A checkpoint, as it was reported last."""

    id: str
    attempt: int
    step: int
    state: str
    bytes: int
    world_size: int
    uri: str
    message: str
    created_ms: int
    verified_ms: int | None


@dataclass(frozen=True, slots=True)
class MetricValue:
    """A value that a script logged; NaN and the infinities are words."""

    name: str
    value: str
    epoch: int
    step: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class Ledger:
    """What the bill of a job is made from, besides prices."""

    holdings: tuple[Holding, ...] = ()
    epochs: tuple[EpochSpan, ...] = ()
    failed_attempts: frozenset[int] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True)
class QueueUse:
    """What the jobs of a queue hold and wait for, in GPUs."""

    held: int = 0
    pending: int = 0


@dataclass(frozen=True, slots=True)
class Position:
    """How far the recorder came in a collection of a cluster."""

    cluster: str
    resource_version: str
    """Empty while a first list is not complete."""
    seen_ms: int
