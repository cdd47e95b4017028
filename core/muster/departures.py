"""A gang that has to leave, or to give up surplus, for another job or because it is suspended.

It is asked first to save a checkpoint: a directive in its status, with a deadline. It goes when a
checkpoint was verified after that, or when the deadline is over, whichever is first; a gang that
does not run yet has nothing to save. Who asks is looked up anew each time: once nobody does any
more, the gang stays.

    Running ──asked──> Preempting ──saved, or deadline──> outcome Preempted ──pods gone──> Pending
       ^                    │
       └─────withdrawn──────┘
"""

from collections.abc import Sequence
from dataclasses import replace

from muster.claims import CHECKPOINT, Departure, Directive
from muster.endings import end
from muster.job_status import Attempt, JobStatus, Outcome, Phase
from muster.moments import whole_ms
from muster.resizing import shrinking
from muster.restarts import Cause
from muster.scheduling.snapshot import Displaced, Leaving
from muster.steps import Deed, Scene, Step, Story

_SUSPENSION = "suspend-"


def asked_to_leave(scene: Scene, attempt: Attempt) -> Step | None:
    """What follows from the claims that name this gang; `None` where none does."""
    asked = sorted(scene.job.departures, key=lambda d: (d.deadline, d.claimant, d.id))
    if not asked:
        return None
    whole = [departure for departure in asked if departure.ranks is None]
    due = [departure for departure in asked if _is_due(scene, attempt, departure)]
    leaving = [departure for departure in whole if departure in due]
    if leaving:
        return _preempted(scene, attempt, leaving[0])
    if due:
        keeps = min(min(departure.ranks or ()) for departure in due)
        return shrinking(scene, attempt, keeps, f"for {_names(due)}")
    return _warned(scene, attempt, asked)


def suspended_soon(scene: Scene, attempt: Attempt) -> Step | None:
    """A gang that is suspended, while it is asked to save; `None` once it may be stopped.

    Without a place for checkpoints nobody would hear that one is saved, and it is stopped at once.
    """
    status, rules = scene.status, scene.rules
    if attempt.running_at is None or rules.notice <= 0 or not scene.job.has_checkpoints:
        return None
    directive = status.directive
    if directive is None or not directive.id.startswith(_SUSPENSION):
        now = whole_ms(scene.now)
        name = f"{_SUSPENSION}{int(now * 1000):x}"
        directive = Directive(name, CHECKPOINT, now + rules.notice, now)
        words = "suspended by its spec; asked to save a checkpoint first"
        warned = replace(status, directive=directive, reason="Suspending", message=words)
        told = (Story("Suspending", words),)
        return Step(warned, _stale(scene, attempt), told, wake_at=directive.deadline)
    if _is_saved(status) or scene.now >= directive.deadline:
        return None
    return Step(status, _stale(scene, attempt), wake_at=directive.deadline)


def stays(scene: Scene, attempt: Attempt) -> JobStatus:
    """The status of a gang that nobody asks to leave, or not any more."""
    status = scene.status
    if status.directive is None and not status.leaving and status.phase is not Phase.PREEMPTING:
        return status
    placement = status.placement
    is_running = attempt.running_at is not None
    return replace(
        status,
        phase=Phase.RUNNING if is_running else Phase.STARTING,
        reason="Running" if is_running else "Admitted",
        message=placement.why if placement else "",
        directive=None,
        leaving=(),
    )


def _is_due(scene: Scene, attempt: Attempt, departure: Departure) -> bool:
    if attempt.running_at is None or scene.now >= departure.deadline:
        return True
    return _is_asked(scene.status, departure.id) and _is_saved(scene.status)


def _is_asked(status: JobStatus, name: str) -> bool:
    return status.directive is not None and status.directive.id == name


def _is_saved(status: JobStatus) -> bool:
    """Whether a checkpoint was verified since it was asked for."""
    asked = status.directive
    return asked is not None and status.saved_at is not None and status.saved_at >= asked.asked_at


def _preempted(scene: Scene, attempt: Attempt, departure: Departure) -> Step:
    """The whole gang leaves: counted once, at nobody's cost, and first in its class again."""
    status = scene.status
    displaced = replace(
        status,
        restarts=status.restarts.plus(Cause.PREEMPTION),
        displaced=Displaced(departure.claimant, scene.job.changed),
        is_returning=True,
        phase=Phase.PREEMPTING,
    )
    how = "its checkpoint is saved" if _is_saved(status) else "its notice is over"
    if attempt.running_at is None:
        how = "it did not run yet"
    words = f"makes room for {departure.claimant}; {how}"
    step = end(
        scene.with_status(displaced), attempt, Outcome.PREEMPTED, cause="Preempted", message=words
    )
    return replace(step, stories=(Story("Evicted", words), *step.stories))


def _warned(scene: Scene, attempt: Attempt, asked: Sequence[Departure]) -> Step:
    """Ask for a checkpoint, once for each decision, and say for whom."""
    status, latest = scene.status, asked[-1]
    now = whole_ms(scene.now)
    directive = status.directive
    if not _is_asked(status, latest.id):
        directive = Directive(latest.id, CHECKPOINT, latest.deadline, now)
    is_whole = any(departure.ranks is None for departure in asked)
    words = f"asked to save a checkpoint and {_deed(asked)} for {_names(asked)}"
    warned = replace(
        status,
        phase=Phase.PREEMPTING if is_whole else Phase.RUNNING,
        reason="Preempting" if is_whole else "Running",
        message=words,
        directive=directive,
        leaving=tuple(Leaving(d.claimant, d.ranks, d.deadline) for d in asked),
    )
    told = () if directive == status.directive else (Story("Preempting", words),)
    return Step(warned, _stale(scene, attempt), told, wake_at=asked[0].deadline)


def _stale(scene: Scene, attempt: Attempt) -> tuple[Deed, ...]:
    return scene.removals(besides=attempt.attempt)


def _deed(asked: Sequence[Departure]) -> str:
    if any(departure.ranks is None for departure in asked):
        return "leave"
    count = len({rank for departure in asked for rank in departure.ranks or ()})
    return "give up 1 replica" if count == 1 else f"give up {count} replicas"


def _names(asked: Sequence[Departure]) -> str:
    return ", ".join(dict.fromkeys(departure.claimant for departure in asked))
