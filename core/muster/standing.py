"""A job as the scheduler sees it: what it asks for, and where it stands."""

from dataclasses import dataclass, replace

from muster.claims import Departure
from muster.job_status import JobStatus
from muster.parse import TrainingJob, gang_of
from muster.scheduling.snapshot import NOWHERE, Gang, Leaving, Run


@dataclass(frozen=True, slots=True)
class Surrounding:
    """What is known of a job besides its object."""

    departures: tuple[Departure, ...] = ()
    """For whom it has to leave."""
    finished: tuple[int, ...] = ()
    """Ranks that exited 0."""
    held_back: str = ""
    """Why the job that it comes after does not let it go yet."""
    may_grow: bool = True


def standing(job: TrainingJob, status: JobStatus, around: Surrounding) -> Gang:
    """The gang, with all that the scheduler has to know of its past.

    A gang that lost a replica is restarted whole, so that none ever has lost ranks here.
    """
    placement = status.placement
    gang = replace(
        gang_of(job, None),
        held_back=around.held_back,
        attained=status.attained,
        ran=status.ran,
        is_returning=status.is_returning,
        displaced=status.displaced,
        claim=status.claim.nodes if status.claim is not None else (),
    )
    if placement is None:
        return gang
    nodes = placement.nodes
    finished = tuple(rank for rank in around.finished if rank < len(nodes))
    saved_at = status.saved_at
    return replace(
        gang,
        replicas=gang.replicas if around.may_grow else len(nodes),
        min_replicas=min(gang.min_replicas, len(nodes)),
        # What it stood for before it started does not go on.
        is_returning=False,
        displaced=None,
        placement=tuple(NOWHERE if rank in finished else node for rank, node in enumerate(nodes)),
        finished=finished,
        leaving=tuple(Leaving(d.claimant, d.ranks, d.deadline) for d in around.departures),
        run=Run(
            started=placement.decided_at,
            saved=saved_at if saved_at is not None and saved_at > placement.decided_at else None,
            eta=status.eta,
            behind=placement.behind,
            grown_behind=placement.grown_behind,
            took=placement.took,
        ),
    )
