"""Whether the API server acts on our admission policies yet: it looks for new ones once a second.

A job that slips in before has no user, so nobody may submit one before this says yes.
"""

from typing import Any, Final

from muster import wire
from muster_kube import JOBS, QUEUES, AlreadyExists, ApiError, Kube

_JOB: Final[dict[str, Any]] = {
    "apiVersion": wire.API_VERSION,
    "kind": JOBS.kind,
    "metadata": {"generateName": "probe-"},
    "spec": {
        "replicas": 1,
        "template": {"spec": {"containers": [{"name": "main", "image": "probe"}]}},
    },
}
_QUEUE: Final[dict[str, Any]] = {
    "apiVersion": wire.API_VERSION,
    "kind": QUEUES.kind,
    "metadata": {"name": "probe"},
    "spec": {"limit": -1},
}


async def are_in_force(kube: Kube) -> bool:
    """Whether a job gets its user and a wrong limit is refused, both tried without effect."""
    job = await kube.create(JOBS.path("default"), _JOB, dryRun="All")
    if wire.ANNOTATION_USER not in job["metadata"].get("annotations", {}):
        return False
    try:
        await kube.create(QUEUES.path(), _QUEUE, dryRun="All")
    except AlreadyExists:
        return True
    except ApiError as error:
        if error.status != 422:
            raise
        return True
    return False
