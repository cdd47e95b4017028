"""An elastic gang that changes its size while it runs.

Growth is one write: nodes and round. Its pods then start beside the others, and the gang is of its
new size when all of them run; those that cannot are given back, and nothing more is taken for a
while. Shrinking takes two writes, as an end does: first what stays and the new round, then, once
the pods of the others are gone, the nodes without theirs, so that nobody gets a GPU that is still
in use.
"""

from collections.abc import Sequence
from dataclasses import replace

from muster.job_status import Attempt, JobStatus
from muster.losses import PodFacts
from muster.steps import Create, Scene, Step, Story


def shrinking(scene: Scene, attempt: Attempt, keeps: int, why: str) -> Step:
    """Begin to give back all ranks from *keeps* on."""
    status = scene.status
    assert status.placement is not None
    smaller = replace(
        status,
        round=status.round + 1,
        placement=replace(status.placement, keeps=keeps),
        gang=f"{keeps}/{keeps}",
    )
    lost = attempt.replicas - keeps
    told = Story("Shrinking", f"gives back {lost} of {attempt.replicas} replicas: {why}")
    deeds = scene.removals(besides=attempt.attempt, below=keeps)
    return Step(smaller, deeds, (told,), wake_at=scene.forced_at)


def shrunk(scene: Scene, attempt: Attempt, keeps: int) -> Step:
    """Wait for the pods of the ranks from *keeps* on, then give back their nodes."""
    placement = scene.status.placement
    assert placement is not None
    deeds = scene.removals(besides=attempt.attempt, below=keeps)
    if any(pod.attempt == attempt.attempt and pod.replica >= keeps for pod in scene.pods):
        return Step(scene.status, deeds, wake_at=scene.forced_at)
    each = attempt.gpus_per_replica
    held = sum(
        scene.now - placement.held_since(rank) for rank in range(keeps, len(placement.nodes))
    )
    done = {
        departure.id
        for departure in scene.job.departures
        if departure.ranks is not None and min(departure.ranks) >= keeps
    }
    left = replace(attempt, nodes=placement.nodes[:keeps], replicas=keeps, gpus=each * keeps)
    smaller = replace(
        scene.status.with_attempt(left),
        attained=scene.status.attained + each * max(held, 0.0),
        placement=replace(
            placement,
            nodes=placement.nodes[:keeps],
            keeps=None,
            grown=tuple(growth for growth in placement.grown if growth.first < keeps),
            yielded=(*placement.yielded, *sorted(done - {*placement.yielded}))[-32:],
        ),
    )
    return Step(smaller, deeds, (Story("Shrunk", f"goes on with {_replicas(keeps)}"),))


def growing(scene: Scene, attempt: Attempt, mine: Sequence[PodFacts]) -> Step:
    """Some replicas were given lately and do not all run yet."""
    placement = scene.status.placement
    assert placement is not None
    stale, settled = scene.removals(besides=attempt.attempt), placement.settled
    if scene.job.refusal is not None:
        return _give_back(scene, attempt, settled, scene.job.refusal)
    if len(mine) < attempt.replicas:
        return Step(scene.status, (*stale, Create()))
    if all(pod.is_running or pod.has_succeeded for pod in mine):
        return Step(_grown(scene.status, attempt, scene.now), stale, (_told(attempt, settled),))
    began = min(g.at for g in placement.grown if g.running_at is None)
    due = began + scene.rules.start_deadline
    if any(pod.is_unschedulable for pod in mine):
        due = began + scene.rules.unschedulable_wait
    if scene.now >= due:
        waiting = next((pod.waiting for pod in mine if pod.waiting), "they did not start in time")
        return _give_back(scene, attempt, settled, waiting)
    return Step(scene.status, stale, wake_at=due)


def _give_back(scene: Scene, attempt: Attempt, settled: int, why: str) -> Step:
    """What was given does not start: go on without it, and take nothing more for a while."""
    pause = scene.rules.refused.most_seconds
    step = shrinking(scene, attempt, settled, why)
    return replace(step, status=replace(step.status, retry_at=scene.now + pause))


def _grown(status: JobStatus, attempt: Attempt, now: float) -> JobStatus:
    placement = status.placement
    assert placement is not None
    count = attempt.replicas
    grown = tuple(
        growth if growth.running_at is not None else replace(growth, running_at=now)
        for growth in placement.grown
    )
    return replace(status, placement=replace(placement, grown=grown), gang=f"{count}/{count}")


def _told(attempt: Attempt, settled: int) -> Story:
    return Story("Grown", f"runs with {_replicas(attempt.replicas)}, {settled} before")


def _replicas(count: int) -> str:
    return "1 replica" if count == 1 else f"{count} replicas"
