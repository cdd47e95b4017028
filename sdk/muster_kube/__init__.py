"""The one Kubernetes client of Muster: raw JSON over `kubernetes.aio`'s credentials and
connection.

The operator, the recorder, the process nodes and the command all speak to the API server through
this. No models: bulk reads and writes stay dictionaries, since building a pydantic object for each
of 4,000 pods costs more than the requests. Nothing here knows what a TrainingJob is beyond its
resource path.
"""

from muster_kube.client import Kube
from muster_kube.errors import (
    AlreadyExists,
    ApiError,
    ApiForbidden,
    ApiNotFound,
    ApiUnauthorized,
    ApiUnreachable,
    Expired,
    Invalid,
    StaleVersion,
    TooManyRequests,
)
from muster_kube.reflector import Change, Kind, reflect
from muster_kube.resources import (
    EVENTS,
    JOBS,
    NAMESPACES,
    NODES,
    PODS,
    QUEUES,
    SERVICES,
    TOPOLOGIES,
    Resource,
)

__all__ = [
    "EVENTS",
    "JOBS",
    "NAMESPACES",
    "NODES",
    "PODS",
    "QUEUES",
    "SERVICES",
    "TOPOLOGIES",
    "AlreadyExists",
    "ApiError",
    "ApiForbidden",
    "ApiNotFound",
    "ApiUnauthorized",
    "ApiUnreachable",
    "Change",
    "Expired",
    "Invalid",
    "Kind",
    "Kube",
    "Resource",
    "StaleVersion",
    "TooManyRequests",
    "reflect",
]
