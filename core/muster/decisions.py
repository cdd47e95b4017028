"""What a plan decided for one job, as the status that commits it.

The same function counts a decision as done before it is written, and writes it: the scheduler's
account and the API server cannot tell different stories of it.
"""

from dataclasses import dataclass, replace
from typing import Final

from muster.claims import Claim
from muster.job_status import Attempt, Growth, JobStatus, Phase, Placement
from muster.scheduling.plan import Admit, Grow
from muster.scheduling.snapshot import Displaced, Took

_MAX_GROWTHS: Final = 64
_NOTHING: Final = Grow("", ())


@dataclass(frozen=True, slots=True)
class Decision:
    """What one instant decided for one job; nothing of it is written yet."""

    at: float
    changed: float
    """`Snapshot.changed` then."""
    claim: Claim | None = None
    """What is to be freed for it, beside what it claims already."""
    withdraws: bool = False
    """Whether it gives up what it claimed before."""
    start: Admit | None = None
    growth: Grow | None = None
    displaced: Displaced | None = None
    """For whom it was not started after all, in the same instant."""

    def applied(self, status: JobStatus, *, gpus_per_replica: int, port: int = 0) -> JobStatus:
        """*status* once this is done; *port* is where the replicas of a new attempt meet."""
        claim = self.claim_after(status)
        if self.start is not None:
            nodes = self.start.nodes
            took = Took(claim.took, self.changed) if claim is not None and claim.took else None
            return placed(
                replace(status, claim=None),
                nodes,
                self.start.why,
                gpus=len(nodes) * gpus_per_replica,
                port=port,
                now=self.at,
                behind=self.start.behind,
                took=took,
            )
        if self.growth is not None:
            grown = with_growth(status, self.growth, now=self.at)
            return replace(grown, claim=None)
        return replace(status, claim=claim, displaced=self.displaced or status.displaced)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The node of each replica that is to be created."""
        return (self.start or self.growth or _NOTHING).nodes

    def claim_after(self, status: JobStatus) -> Claim | None:
        """The claim that it leaves the job with, its start aside."""
        before = None if self.withdraws else status.claim
        if before is None or self.claim is None:
            return self.claim or before
        return before.extended(self.claim)


def placed(
    status: JobStatus,
    nodes: tuple[str, ...],
    why: str,
    *,
    gpus: int,
    port: int,
    now: float,
    behind: tuple[str, ...] = (),
    took: Took | None = None,
) -> JobStatus:
    """The decision to start on *nodes* as the next attempt: the value that is committed."""
    number, round_ = status.attempt + 1, status.round + 1
    attempt = Attempt(number, now, nodes=nodes, replicas=len(nodes), gpus=gpus)
    placement = Placement(number, now, port, nodes, why, round_, behind=behind, took=took)
    return replace(
        status.with_attempt(attempt),
        phase=Phase.STARTING,
        reason="Admitted",
        message=why,
        attempt=number,
        round=round_,
        gang=f"0/{len(nodes)}",
        queue_position=None,
        predicted_start=None,
        waits_for="",
        retry_at=None,
        placement=placement,
        leaving=(),
        directive=None,
        displaced=None,
        is_returning=False,
    )


def with_growth(status: JobStatus, growth: Grow, *, now: float) -> JobStatus:
    """The decision to give a gang more replicas: they and their round, in one value."""
    placement, attempt = status.placement, status.current
    if placement is None or attempt is None:
        return status
    nodes, round_ = (*placement.nodes, *growth.nodes), status.round + 1
    more = Growth(len(placement.nodes), now, round_)
    gpus = attempt.gpus_per_replica * len(nodes)
    larger = replace(attempt, nodes=nodes, replicas=len(nodes), gpus=gpus)
    return replace(
        status.with_attempt(larger),
        round=round_,
        placement=replace(
            placement,
            nodes=nodes,
            grown=(*placement.grown, more)[-_MAX_GROWTHS:],
            grown_behind=tuple(sorted({*placement.grown_behind, *growth.behind})),
        ),
    )
