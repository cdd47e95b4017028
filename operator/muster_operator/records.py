"""What the operator holds of one job and of one pod between two looks at it.

Mutable, owned by the cache, and never more than a listing can bring back: what must survive a
restart is in the objects themselves.
"""

from dataclasses import dataclass, field
from typing import Any

from muster import wire
from muster.claims import Claim, Departure
from muster.decisions import Decision
from muster.job_status import JobStatus
from muster.losses import PodFacts
from muster.moments import seconds_of
from muster.parse import TrainingJob
from muster.restarts import Budgets
from muster.steps import JobFacts


@dataclass(frozen=True, slots=True)
class Words:
    """Why a job waits, as it is shown in its status."""

    reason: str
    message: str
    position: int | None = None
    predicted_start: float | None = None
    """Seconds since the epoch."""
    waits_for: str = ""


@dataclass(slots=True)
class JobRecord:
    """One TrainingJob. `job` is `None` where its spec cannot be read."""

    key: str
    uid: str
    raw: dict[str, Any]
    version: int
    job: TrainingJob | None
    status: JobStatus
    objection: Words | None = None
    """What keeps it from being planned at all."""
    words: Words | None = None
    """Why the last cycle left it waiting."""
    words_written_at: float = 0.0
    decision: Decision | None = None
    """Decided and not committed yet; it counts as done meanwhile."""
    is_committing: bool = False
    """Whether that is being written at this moment."""
    refusal: str | None = None
    """What the API server said to the pods of the current attempt."""
    refusals: int = 0
    """Refusals in a row before any commit."""
    not_before: float = 0.0
    """No new decision is taken for it before this time, after a request that failed."""
    failures: int = 0
    """Requests in a row that failed without an answer to act on."""
    seen: set[int] = field(default_factory=set)
    seen_attempt: int = 0

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return self.key.partition("/")[0]

    @property
    def name(self) -> str:
        """Its name."""
        return self.key.partition("/")[2]

    @property
    def generation(self) -> int:
        """The generation of its spec."""
        return int(self.raw["metadata"].get("generation") or 0)

    @property
    def is_deleted(self) -> bool:
        """Whether its deletion was asked for."""
        return "deletionTimestamp" in self.raw["metadata"]

    @property
    def finalizers(self) -> tuple[str, ...]:
        """Who keeps it from going."""
        return tuple(self.raw["metadata"].get("finalizers") or ())

    @property
    def decided(self) -> JobStatus:
        """Its status as it will be once what was decided is written."""
        if self.decision is None or self.job is None:
            return self.status
        each = self.job.gpus_per_replica
        return self.decision.applied(self.status, gpus_per_replica=each)

    @property
    def nodes(self) -> tuple[str, ...] | None:
        """The nodes that it holds, or is about to hold."""
        placement = self.decided.placement
        return None if placement is None else placement.nodes

    @property
    def claim(self) -> Claim | None:
        """What is being freed for it, or is about to be; none for a job that cannot use it."""
        if self.job is None or self.job.suspend or self.is_deleted or self.status.is_final:
            return None
        if self.objection is not None and self.status.placement is None:
            return None
        return self.decided.claim

    def holds(self, pod: "PodRecord") -> bool:
        """Whether the placement accounts for *pod*."""
        placement = self.status.placement
        return (
            placement is not None
            and pod.facts is not None
            and pod.facts.attempt == placement.attempt
            and 0 <= pod.facts.replica < len(placement.nodes)
            and placement.nodes[pod.facts.replica] == pod.node
        )

    def note(self, pods: tuple[PodFacts, ...]) -> None:
        """Remember which replicas of the current attempt have been seen."""
        if self.seen_attempt != self.status.attempt:
            self.seen.clear()
            self.seen_attempt = self.status.attempt
            self.refusal = None
        self.seen.update(p.replica for p in pods if p.attempt == self.status.attempt)
        if self.status.placement is not None:
            # A rank that was given back and comes again has not been seen yet.
            size = self.status.placement.size
            self.seen = {replica for replica in self.seen if replica < size}

    def facts(self, departures: tuple[Departure, ...], changed: float) -> JobFacts:
        """What the object says besides its status, and who asks it to leave."""
        spec, job = self.raw.get("spec") or {}, self.job
        restarts = job.restarts if job else None
        return JobFacts(
            is_suspended=bool(spec.get("suspend")),
            deleted_at=seconds_of(self.raw["metadata"].get("deletionTimestamp")),
            is_held=wire.RECORDER_FINALIZER in self.finalizers,
            ttl_seconds=spec.get("ttlSecondsAfterFinished"),
            budgets=Budgets(None, restarts.infrastructure, restarts.user)
            if restarts
            else Budgets(),
            refusal=self.refusal,
            seen=frozenset(self.seen),
            has_checkpoints=job is not None and job.checkpoint_uri is not None,
            departures=departures,
            changed=changed,
        )


@dataclass(slots=True)
class PodRecord:
    """One pod of the cluster. `facts` is `None` for other people's."""

    key: str
    """`namespace/name`."""
    uid: str
    version: int
    node: str
    is_over: bool
    spec: dict[str, Any]
    owner: str | None = None
    """The uid of the job that controls it."""
    facts: PodFacts | None = None
