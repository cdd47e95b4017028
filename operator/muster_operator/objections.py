"""What keeps a job from being planned, whatever the capacity: found before any pod exists."""

from collections.abc import Mapping, Sequence

from muster.errors import InvalidSpec
from muster.parse import QueueAccess, TrainingJob, admissible, unsupported
from muster.scheduling.snapshot import NODE_LEVEL, Level
from muster_operator.records import Words


def objection_to(
    job: TrainingJob,
    queues: Mapping[str, QueueAccess],
    levels: Sequence[Level],
    *,
    has_scheduler: bool,
) -> Words | None:
    """The first reason against *job*, `None` if there is none."""
    return (
        _of_template(job, has_scheduler=has_scheduler)
        or _of_queue(job, queues)
        or _of_levels(job, levels)
    )


def _of_template(job: TrainingJob, *, has_scheduler: bool) -> Words | None:
    try:
        problem = unsupported(
            job.template, has_scheduler=has_scheduler, gpus_per_replica=job.gpus_per_replica
        )
    except InvalidSpec as error:
        problem = str(error)
    return None if problem is None else Words("UnsupportedTemplate", problem)


def _of_queue(job: TrainingJob, queues: Mapping[str, QueueAccess]) -> Words | None:
    access = queues.get(job.queue)
    if access is None:
        known = ", ".join(sorted(queues)) or "none"
        message = f"spec.queue: there is no queue {job.queue!r}; there are: {known}"
        return Words("UnknownQueue", message)
    problem = admissible(access, job.namespace, job.user)
    return None if problem is None else Words("QueueForbidden", f"spec.queue: {problem}")


def _of_levels(job: TrainingJob, levels: Sequence[Level]) -> Words | None:
    known = [*(level.name for level in levels), NODE_LEVEL]
    asked = {
        "spec.topology.required": job.topology.required,
        "spec.topology.preferred": job.topology.preferred,
        "spec.topology.perPart.required": job.topology.part_required,
    }
    for path, level in asked.items():
        if level is not None and level not in known:
            message = f"{path}: there is no level {level!r}; there are: {', '.join(known)}"
            return Words("UnknownTopologyLevel", message)
    return None
