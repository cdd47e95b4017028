"""How an attempt ends, and what a job does then.

An attempt ends in two steps. First its `outcome` is written and its pods are deleted; once none
is left that could still run, the placement is given back and the phase changes. A job is therefore
never called Failed while its pods hold GPUs (kubeflow/trainer#3994), and no rank has two pods
(kubernetes#115844).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from muster.job_status import Attempt, JobStatus, Outcome, Phase
from muster.restarts import REASONS, Cause
from muster.steps import Scene, Step, Story

_SHORT_SECONDS: Final = 60.0
"""An attempt that ran for less counts as one of a row of failures."""
_LATE_SECONDS: Final = 2.0
"""Pods tell times in whole seconds: what we saw ourselves is more exact, unless it is old."""


def succeed(scene: Scene, attempt: Attempt) -> Step:
    """All replicas exited 0: the GPUs are free from the moment the last one did."""
    status, pods = scene.status, scene.pods
    ended = seen_or_told(scene.now, [pod.finished_at for pod in pods], attempt)
    started = attempt.running_at or seen_or_told(ended, [p.started_at for p in pods], attempt)
    who = f"all {attempt.replicas} replicas" if attempt.replicas > 1 else "the only replica"
    words = f"{who} exited with 0"
    done = replace(attempt, running_at=started, ended_at=ended, outcome=Outcome.SUCCEEDED)
    succeeded = replace(
        status.with_attempt(done),
        phase=Phase.SUCCEEDED,
        reason="Succeeded",
        message=words,
        placement=None,
        claim=None,
        leaving=(),
        directive=None,
        gang=f"0/{attempt.replicas}",
        started_at=status.started_at or started,
        finished_at=ended,
    )
    return Step(succeeded, (), (Story("Succeeded", words),))


def lose(scene: Scene, attempt: Attempt, cause: Cause, message: str) -> Step:
    """A replica is lost, and the gang with it: it is counted once, in the same write."""
    reason = REASONS[cause]
    if cause is Cause.REFUSED:
        step = end(scene, attempt, Outcome.REFUSED, cause=reason, message=message)
        return replace(step, stories=(Story(reason, message, is_warning=True), *step.stories))
    counted = replace(scene.status, restarts=scene.status.restarts.plus(cause))
    outcome = Outcome.FAILED if cause is Cause.USER else Outcome.LOST
    step = end(scene.with_status(counted), attempt, outcome, cause=reason, message=message)
    told = Story("ReplicaFailed", message, is_warning=True)
    return replace(step, stories=(told, *step.stories))


def end(
    scene: Scene, attempt: Attempt, outcome: Outcome, *, cause: str = "", message: str = ""
) -> Step:
    """Decide the end of *attempt*; if no pod of it could still run, close it in the same write."""
    ended = replace(attempt, outcome=outcome, cause=cause or outcome.value, message=message)
    ending = replace(
        scene.status.with_attempt(ended),
        reason="Terminating",
        message=message or f"attempt {attempt.attempt} ends: {outcome.value}",
    )
    spent = scene.job.budgets.exhausted_by(ending.restarts)
    if outcome in (Outcome.FAILED, Outcome.LOST) and spent is None:
        ending = replace(ending, phase=Phase.RESTARTING, reason="Restarting")
    if outcome in (Outcome.REFUSED, Outcome.PREEMPTED):
        ending = replace(ending, reason=cause)
    return close(scene.with_status(ending), ended)


def close(scene: Scene, attempt: Attempt) -> Step:
    """Wait for the last pod of *attempt*, then give back its GPUs and say what comes next."""
    if not scene.is_clear:
        # Pods that ended hold nothing, and if the job fails for good their logs say why.
        return Step(scene.status, scene.removals(keep_ended=True), wake_at=scene.forced_at)
    closed = scene.with_status(without_placement(scene.status, scene.now))
    match attempt.outcome:
        case Outcome.SUSPENDED:
            words = f"attempt {attempt.attempt} was stopped by suspension"
            told = (Story("Suspended", words),)
            return Step(suspended(closed.status), scene.removals(), told)
        case Outcome.CANCELLED:
            return cancel(closed)
        case Outcome.REFUSED:
            return _retry_later(closed)
        case Outcome.PREEMPTED:
            return _requeue(closed, attempt)
    spent = scene.job.budgets.exhausted_by(closed.status.restarts)
    return _restart(closed, attempt) if spent is None else _fail(closed, attempt, spent)


def cancel(scene: Scene) -> Step:
    """The job was deleted, and nothing of it runs any more."""
    words = "the job was deleted"
    cancelled = replace(
        without_placement(scene.status, scene.now),
        phase=Phase.CANCELLED,
        reason="Cancelled",
        message=words,
        claim=None,
        finished_at=scene.now,
        retry_at=None,
    )
    return Step(cancelled, scene.removals(), (Story("Cancelled", words),))


def without_placement(status: JobStatus, now: float) -> JobStatus:
    """*status* with the GPUs given back, and the end of their attempt on record."""
    attempt = status.current
    cleared = replace(status, placement=None, leaving=(), directive=None)
    if attempt is None:
        return cleared
    ended = replace(attempt, ended_at=now, outcome=attempt.outcome or Outcome.CANCELLED)
    return replace(
        cleared.with_attempt(ended),
        gang=f"0/{attempt.replicas}",
        attained=status.attained + _held(status, attempt, now),
        ran=status.ran + _kept(status, attempt),
    )


def _held(status: JobStatus, attempt: Attempt, now: float) -> float:
    """GPU-seconds that the attempt held until *now*."""
    placement = status.placement
    assert placement is not None
    times = (max(now - placement.held_since(r), 0.0) for r in range(len(placement.nodes)))
    return sum(times) * attempt.gpus_per_replica


def _kept(status: JobStatus, attempt: Attempt) -> float:
    """Seconds of the attempt's work that its newest checkpoint holds."""
    if attempt.running_at is None or status.saved_at is None:
        return 0.0
    return max(status.saved_at - attempt.running_at, 0.0)


def suspended(status: JobStatus) -> JobStatus:
    """*status* of a job that holds nothing and asks for nothing."""
    return replace(
        status,
        phase=Phase.SUSPENDED,
        reason="Suspended",
        message="suspended by its spec",
        claim=None,
        queue_position=None,
        predicted_start=None,
        waits_for="",
        retry_at=None,
    )


def seen_or_told(now: float, told: Sequence[float | None], attempt: Attempt) -> float:
    """*now*, unless the pods tell of a time well before, as when the operator was away."""
    known = [moment for moment in told if moment is not None]
    if len(known) < len(told) or not known or now - max(known) < _LATE_SECONDS:
        return now
    return max(attempt.decided_at, *known)


def _fail(scene: Scene, attempt: Attempt, spent: Cause) -> Step:
    """The budget of this cause is used up. Pods that ended are kept: their logs say why."""
    reason = REASONS[spent]
    failed = replace(
        scene.status,
        phase=Phase.FAILED,
        reason=reason,
        message=attempt.message,
        claim=None,
        finished_at=scene.now,
        retry_at=None,
    )
    told = Story("Failed", f"{reason}: {attempt.message}", is_warning=True)
    return Step(failed, scene.removals(keep_ended=True), (told,))


def _restart(scene: Scene, attempt: Attempt) -> Step:
    """The gang starts anew, whole, as soon as it fits again and its pause is over."""
    pause = scene.rules.restart.pause(_in_a_row(scene.status, (Outcome.FAILED, Outcome.LOST)))
    again = replace(
        scene.status,
        phase=Phase.RESTARTING,
        reason="Restarting",
        message=attempt.message,
        retry_at=scene.now + pause if pause else None,
    )
    words = f"attempt {attempt.attempt} ended ({attempt.cause}): {attempt.message}"
    told = (Story("Restarting", words),)
    return Step(again, scene.removals(), told, wake_at=again.retry_at)


def _requeue(scene: Scene, attempt: Attempt) -> Step:
    """It made room for another, and waits again at the head of its priority class."""
    waiting = replace(
        scene.status,
        phase=Phase.PENDING,
        reason="Preempted",
        message=attempt.message,
        retry_at=None,
    )
    told = Story("Preempted", f"attempt {attempt.attempt} ended: {attempt.message}")
    return Step(waiting, scene.removals(), (told,))


def _retry_later(scene: Scene) -> Step:
    """Back in the queue after a refusal, with a pause that grows."""
    pause = scene.rules.refused.pause(_in_a_row(scene.status, (Outcome.REFUSED,)))
    later = replace(
        scene.status,
        phase=Phase.PENDING,
        reason=REASONS[Cause.REFUSED],
        message=scene.status.attempts[-1].message,
        retry_at=scene.now + pause,
    )
    return Step(later, scene.removals(), wake_at=later.retry_at)


def _in_a_row(status: JobStatus, outcomes: tuple[Outcome, ...]) -> int:
    """How many of the latest attempts ended like this without having run for long."""
    count = 0
    for attempt in reversed(status.attempts):
        if attempt.outcome not in outcomes:
            break
        count += 1
        if attempt.running_at and (attempt.ended_at or 0.0) - attempt.running_at >= _SHORT_SECONDS:
            break
    return count
