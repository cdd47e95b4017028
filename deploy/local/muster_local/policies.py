"""Whether the API server acts on our admission policies yet: it looks for new ones once a second.

A job that slips in before has no user, so nobody may submit one before this says yes.
"""

from typing import Any, Final

from muster import wire
from muster_kube import JOBS, QUEUES, ApiError, ApiUnreachable, Invalid, Kube

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
    try:
        job = await kube.create(JOBS.path("default"), _JOB, dryRun="All")
    except ApiUnreachable:
        raise
    except ApiError:
        # It cannot patch a kind whose schema it has not read yet, and says so with an error.
        return False
    if wire.ANNOTATION_USER not in job["metadata"].get("annotations", {}):
        return False
    try:
        await kube.create(QUEUES.path(), _QUEUE, dryRun="All")
    except Invalid:
        return True
    return False
