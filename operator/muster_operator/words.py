"""What is told of a decision once it is written: log lines with their facts, and events."""

from collections.abc import Iterator, Mapping

from muster.decisions import Decision
from muster.job_status import JobStatus
from muster.steps import Story

Told = tuple[str, Story, Mapping[str, object]]


def told_of(decision: Decision, status: JobStatus) -> Iterator[Told]:
    """The word of the log line, the event and the facts, for each part of *decision*."""
    if decision.claim is not None:
        claim = decision.claim
        number = sum(1 for _ in claim.victims())
        facts = {"victims": number, "why": claim.why}
        yield "preempts", Story("Preempts", claim.why), facts
    elif decision.withdraws:
        words = "it no longer needs what was to be freed for it"
        yield "withdrawn", Story("Withdrawn", words), {}
    placement = status.placement
    if placement is None:
        return
    if decision.start is not None:
        facts = {
            "attempt": status.attempt,
            "nodes": len(set(placement.nodes)),
            "port": placement.port,
            "why": decision.start.why,
        }
        words = f"attempt {status.attempt}: {decision.start.why}"
        yield "admitted", Story("Admitted", words), facts
    if decision.growth is not None:
        more, size = len(decision.growth.nodes), len(placement.nodes)
        words = f"gets {more} more, {size} replicas in all"
        yield "grows", Story("Growing", words), {"replicas": size, "round": status.round}
