"""A job of two replicas at every point of its life, and its next step."""

from dataclasses import replace

from muster.decisions import placed
from muster.job_status import JobStatus, Outcome, Phase
from muster.lifecycle import next_step
from muster.losses import PodFacts
from muster.restarts import Loss, Restarts
from muster.steps import JobFacts, Rules, Scene, Step

NOW = 1000.0
RULES = Rules()
PENDING = JobStatus(phase=Phase.PENDING)
STARTING = placed(PENDING, ("n1", "n2"), "2 GPUs", gpus=2, port=20_000, now=NOW - 10)
RUNNING = replace(
    STARTING.with_attempt(replace(STARTING.attempts[0], running_at=NOW - 5)),
    phase=Phase.RUNNING,
    gang="2/2",
)
SEEN = JobFacts(seen=frozenset({0, 1}))

FAILED = replace(
    RUNNING, phase=Phase.FAILED, placement=None, finished_at=NOW - 100, reason="UserError"
)


def pod(replica: int, phase: str = "Running", attempt: int = 1, **facts: object) -> PodFacts:
    name = f"p-{attempt}-{replica}"
    return PodFacts(name, f"u-{attempt}-{replica}", attempt, replica, phase, **facts)  # type: ignore[arg-type]


def failed(replica: int, code: int = 1, **facts: object) -> PodFacts:
    return pod(replica, "Failed", loss=Loss(exit_code=code), message="boom", **facts)


def step(status: JobStatus, *pods: PodFacts, job: JobFacts = SEEN, now: float = NOW) -> Step:
    return next_step(Scene(job, status, pods, now, RULES))


def ended(status: JobStatus, outcome: Outcome, **counts: int) -> JobStatus:
    """*status* with the end of its attempt decided."""
    attempt = replace(status.attempts[-1], outcome=outcome, cause="Why", message="boom")
    return replace(status.with_attempt(attempt), restarts=Restarts(**counts))
