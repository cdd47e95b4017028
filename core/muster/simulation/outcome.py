"""What came out of a scenario, as plain values for JSON."""

from collections.abc import Mapping

from muster.scheduling.snapshot import NOWHERE
from muster.simulation.job import Job, State
from muster.simulation.play import Play
from muster.simulation.timeline import as_json


def outcome_of(play: Play) -> Mapping[str, object]:
    """The one object that `muster simulate -o json` prints. Times are in seconds."""
    jobs = play.simulation.jobs
    return {
        "name": play.scenario.name,
        "end": play.end,
        "evictions": sum(job.evictions for job in jobs.values()),
        "utilization": round(play.utilization, 6),
        "jobs": {job.gang.key: _told(jobs[job.gang.key]) for job in play.scenario.jobs},
        "timeline": [as_json(event) for event in play.timeline],
    }


def _told(job: Job) -> Mapping[str, object]:
    wait = job.wait if job.is_submitted and job.state is State.PENDING else None
    return {
        "state": job.state.value,
        "queue": job.gang.queue,
        "submitted": job.gang.submitted,
        "starts": list(job.starts),
        "finished": job.finished,
        "evictions": job.evictions,
        "replicasLost": job.replicas_lost,
        "placement": [None if node == NOWHERE else node for node in job.placement],
        "reason": wait.reason.value if wait else None,
        "message": wait.message if wait else "",
    }
