"""From what is seen of a job to what comes next: a pure function, asked again at every change.

`next_step(scene)` reads the facts and the status, and gives the next status with the deeds that
belong to it. The status is written first, guarded, and only then are the deeds done; each of them
may be repeated, and a crash between any two leads back here with the same facts. That is all the
state machine there is:

    Pending ──placed──> Starting ──all run──> Running ──all exit 0──> Succeeded
       ^                   │                     │
       └──── refused ──────┤                     │ a replica is lost: the whole gang goes
                           └─────────┬───────────┘
                Restarting, Failed, Suspended, Cancelled

How a gang makes room for another is in `departures`, how it grows and shrinks in `resizing`.

What is over stays over, whatever happens to its pods (kubeflow/trainer#3779).
"""

from collections.abc import Sequence
from dataclasses import replace

from muster.departures import asked_to_leave, stays, suspended_soon
from muster.endings import (
    cancel,
    close,
    end,
    lose,
    seen_or_told,
    succeed,
    suspended,
    without_placement,
)
from muster.job_status import Attempt, Outcome, Phase
from muster.losses import PodFacts, first_loss
from muster.resizing import growing, shrunk
from muster.restarts import Cause
from muster.steps import Create, Expire, Release, Scene, Step, Story


def next_step(scene: Scene) -> Step:
    """The one transition that the facts ask for now; the same facts give the same step."""
    status = scene.status
    if scene.job.deleted_at is not None:
        return _leave(scene, scene.job.deleted_at)
    if status.is_final:
        return _rest(scene)
    attempt = status.current
    if attempt is None:
        return _wait(scene)
    if attempt.outcome is not None:
        return close(scene, attempt)
    return _watch(scene, attempt)


def _leave(scene: Scene, deleted_at: float) -> Step:
    """The object is being deleted: nothing is created any more, and what runs is stopped."""
    status, attempt = scene.status, scene.status.current
    if attempt is not None and attempt.outcome is None and not status.is_final:
        if _has_succeeded(scene, attempt):
            return succeed(scene, attempt)
        return end(scene, attempt, Outcome.CANCELLED, message="the job was deleted")
    if not scene.is_clear:
        return Step(status, scene.removals(), wake_at=scene.forced_at)
    if not status.is_final:
        return cancel(scene)
    if not scene.job.is_held:
        return Step(status, scene.removals())
    # Counted from the later of the two, so that a slow end still leaves the recorder its time.
    due = max(deleted_at, status.finished_at or deleted_at) + scene.rules.recorder_wait
    if scene.now < due:
        return Step(status, scene.removals(), wake_at=due)
    words = f"the recorder did not release the job within {scene.rules.recorder_wait:g} s"
    told = (Story("Released", words, is_warning=True),)
    return Step(status, (*scene.removals(), Release()), told)


def _rest(scene: Scene) -> Step:
    """The job is over. Pods that ended stay for their logs; any other has no business here."""
    status, ttl = scene.status, scene.job.ttl_seconds
    deeds = scene.removals(keep_ended=True)
    if status.placement is not None:
        status = without_placement(status, scene.now)
    if ttl is None or status.finished_at is None:
        return Step(status, deeds)
    due = status.finished_at + ttl
    if scene.now < due:
        return Step(status, deeds, wake_at=due)
    return Step(status, (*deeds, Expire()))


def _wait(scene: Scene) -> Step:
    """The job holds nothing: pods of earlier attempts go, and suspension shows at once."""
    status, deeds = scene.status, scene.removals()
    if scene.job.is_suspended and status.phase is not Phase.SUSPENDED:
        return Step(suspended(status), deeds, (Story("Suspended", "suspended by its spec"),))
    if not scene.job.is_suspended and status.phase is Phase.SUSPENDED:
        resumed = replace(status, phase=Phase.PENDING, reason="Resumed", message="")
        return Step(resumed, deeds, (Story("Resumed", "waits for capacity again"),))
    is_pausing = status.retry_at is not None and status.retry_at > scene.now
    return Step(status, deeds, wake_at=status.retry_at if is_pausing else None)


def _watch(scene: Scene, attempt: Attempt) -> Step:
    """The gang starts or runs: follow it until something ends it."""
    placement, is_running = scene.status.placement, attempt.running_at is not None
    assert placement is not None
    pausing = suspended_soon(scene, attempt) if scene.job.is_suspended else None
    if scene.job.is_suspended and pausing is None:
        return end(scene, attempt, Outcome.SUSPENDED)
    if scene.job.refusal is not None and not is_running:
        return lose(scene, attempt, Cause.REFUSED, scene.job.refusal)
    mine = _mine(scene, attempt)
    expected = frozenset(range(placement.settled)) if is_running else frozenset()
    loss = first_loss(mine, placement.size, expected | scene.job.seen)
    if loss is not None:
        return lose(scene, attempt, loss.cause, loss.message)
    if _has_succeeded(scene, attempt):
        return succeed(scene, attempt)
    if pausing is not None:
        return pausing
    if placement.keeps is not None:
        return shrunk(scene, attempt, placement.keeps)
    if (step := asked_to_leave(scene, attempt)) is not None:
        return step
    scene = scene.with_status(stays(scene, attempt))
    if not is_running:
        return _start(scene, attempt, mine)
    if placement.settled < placement.size:
        return growing(scene, attempt, mine)
    return _run_on(scene, attempt)


def _run_on(scene: Scene, attempt: Attempt) -> Step:
    """All of it runs. After a growth that failed it may grow again at `retry_at`."""
    retry_at = scene.status.retry_at
    wake_at = retry_at if retry_at is not None and retry_at > scene.now else None
    return Step(scene.status, scene.removals(besides=attempt.attempt), wake_at=wake_at)


def _start(scene: Scene, attempt: Attempt, mine: Sequence[PodFacts]) -> Step:
    """Not all replicas run yet: create what is missing, and say what hinders the others."""
    stale = scene.removals(besides=attempt.attempt)
    if any(pod.attempt != attempt.attempt and not pod.is_over for pod in scene.pods):
        # Never two pods for one rank: the old one may still be writing (kubernetes#115844).
        return Step(scene.status, stale, wake_at=scene.forced_at)
    if len(mine) < attempt.replicas:
        return Step(scene.status, (*stale, Create()))
    if all(pod.is_running or pod.has_succeeded for pod in mine):
        return replace(_run(scene, attempt, mine), deeds=stale)
    due, told = attempt.decided_at + scene.rules.start_deadline, _hindrance(mine)
    if any(pod.is_unschedulable for pod in mine):
        due = attempt.decided_at + scene.rules.unschedulable_wait
        if scene.now >= due:
            return lose(scene, attempt, Cause.REFUSED, told)
    if scene.now >= due:
        words = f"not all replicas ran within {scene.rules.start_deadline:g} s"
        return lose(scene, attempt, Cause.INFRASTRUCTURE, f"{words}: {told}" if told else words)
    status = replace(scene.status, message=told) if told else scene.status
    return Step(status, stale, wake_at=due)


def _run(scene: Scene, attempt: Attempt, mine: Sequence[PodFacts]) -> Step:
    """All replicas run."""
    started = seen_or_told(scene.now, [pod.started_at for pod in mine], attempt)
    placement = scene.status.placement
    running = replace(
        scene.status.with_attempt(replace(attempt, running_at=started)),
        phase=Phase.RUNNING,
        reason="Running",
        message=placement.why if placement else "",
        gang=f"{attempt.replicas}/{attempt.replicas}",
        started_at=scene.status.started_at or started,
    )
    count = attempt.replicas
    words = f"all {count} replicas run" if count > 1 else "the only replica runs"
    return Step(running, (), (Story("Running", f"attempt {attempt.attempt}: {words}"),))


def _mine(scene: Scene, attempt: Attempt) -> tuple[PodFacts, ...]:
    """The pods of the replicas that are meant to go on."""
    placement = scene.status.placement
    size = placement.size if placement is not None else attempt.replicas
    return tuple(
        pod for pod in scene.pods if pod.attempt == attempt.attempt and pod.replica < size
    )


def _has_succeeded(scene: Scene, attempt: Attempt) -> bool:
    mine, placement = _mine(scene, attempt), scene.status.placement
    size = placement.size if placement is not None else attempt.replicas
    return len(mine) == size and all(pod.has_succeeded for pod in mine)


def _hindrance(pods: Sequence[PodFacts]) -> str:
    """What keeps the first waiting replica from starting, in the kubelet's words."""
    waiting = sorted((pod.replica, pod.waiting) for pod in pods if pod.waiting)
    return f"replica {waiting[0][0]}: {waiting[0][1]}" if waiting else ""
