"""From raw Kubernetes objects to the values that the core computes with, and nowhere else.

Strings such as `1500m` or `NVIDIA-H100-80GB-HBM3` end here. Every function takes plain
dictionaries as the API server sends them and gives frozen values; whatever is wrong becomes an
`InvalidSpec` that carries the path of the field. No request is made here, and nothing is decided.
"""

from muster.parse.job import Restarts, TrainingJob, gang_of, job_of
from muster.parse.node import CapacityRule, NodeTables, node_of
from muster.parse.pod import needs_of
from muster.parse.quantity import bytes_of, millis, seconds_of, whole
from muster.parse.queue import QueueAccess, access_of, admissible, queue_of, topology_of
from muster.parse.rules import rules_of
from muster.parse.template import needs_kube_scheduler, unsupported

__all__ = [
    "CapacityRule",
    "NodeTables",
    "QueueAccess",
    "Restarts",
    "TrainingJob",
    "access_of",
    "admissible",
    "bytes_of",
    "gang_of",
    "job_of",
    "millis",
    "needs_kube_scheduler",
    "needs_of",
    "node_of",
    "queue_of",
    "rules_of",
    "seconds_of",
    "topology_of",
    "unsupported",
    "whole",
]
