"""The words that separate processes share: labels, annotations, environment and names in the
Kubernetes API.

Only constants, and the rules by which names are built from them. Two processes that disagree on
one of these would fail silently, so nobody spells them out anywhere else.
"""

from typing import Final

GROUP: Final = "muster.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
SYSTEM_NAMESPACE: Final = "muster-system"
AUDIENCE: Final = "muster"
"""Audience of the projected token with which a pod reports; no other token may report."""
OPERATOR_AUDIENCE: Final = "muster-operator"
"""Audience of the token with which the API reads the operator's snapshot and decisions."""
SNAPSHOTS: Final = "snapshots"
DECISIONS: Final = "decisions"
"""Resources of our group that exist in roles only: who may `get` them may read what the scheduler
sees of all namespaces, and what it decided."""

DEFAULT_QUEUE: Final = "default"
DEFAULT_TOPOLOGY: Final = "default"
GPU_RESOURCE: Final = "nvidia.com/gpu"

# Labels of pods, services and jobs.
LABEL_JOB: Final = f"{GROUP}/job"
LABEL_ATTEMPT: Final = f"{GROUP}/attempt"
LABEL_REPLICA: Final = f"{GROUP}/replica"
LABEL_QUEUE: Final = f"{GROUP}/queue"
LABEL_TEAM: Final = f"{GROUP}/team"
LABEL_EXPERIMENT: Final = f"{GROUP}/experiment"

# Labels and annotations of nodes. A node whose GPUs only exist in a table says so.
LABEL_SIMULATED: Final = f"{GROUP}/simulated"
"""`true` on nodes without real GPUs: figures that come from them are marked as simulated."""
LABEL_CLUSTER: Final = f"{GROUP}/local-cluster"

ANNOTATION_USER: Final = f"{GROUP}/user"
"""Who created the job, as the API server knows them: set by the admission policy, immutable."""

RECORDER_FINALIZER: Final = f"{GROUP}/recorder"
"""Keeps a job that ever held GPUs until its end is in the database; the operator removes it after
a bounded wait."""

OPERATOR_MANAGER: Final = "muster-operator"
RECORDER_MANAGER: Final = "muster-recorder"

# Environment of a replica.
ENV_NAMESPACE: Final = "MUSTER_NAMESPACE"
ENV_JOB: Final = "MUSTER_JOB"
ENV_JOB_UID: Final = "MUSTER_JOB_UID"
ENV_ATTEMPT: Final = "MUSTER_ATTEMPT"
ENV_ROUND: Final = "MUSTER_ROUND"
ENV_REPLICA: Final = "MUSTER_REPLICA"
ENV_API_URL: Final = "MUSTER_API_URL"
ENV_TOKEN_FILE: Final = "MUSTER_TOKEN_FILE"
ENV_CHECKPOINT_URI: Final = "MUSTER_CHECKPOINT_URI"
ENV_TERMINATION_LOG: Final = "MUSTER_TERMINATION_LOG"
"""Where a replica writes the line that its pod's status shows; else `TERMINATION_LOG_PATH`."""
TERMINATION_LOG_PATH: Final = "/dev/termination-log"
"""Kubernetes' own default for `terminationMessagePath`."""

ENV_SIMULATED_GPUS: Final = "MUSTER_SIMULATED_GPUS"
"""`1` in pods of a node whose GPUs only exist in a table."""

# torchrun reads PET_*; a script without torchrun reads MASTER_*.
ENV_MASTER_ADDR: Final = "MASTER_ADDR"
ENV_MASTER_PORT: Final = "MASTER_PORT"
ENV_PET_NNODES: Final = "PET_NNODES"
ENV_PET_NPROC_PER_NODE: Final = "PET_NPROC_PER_NODE"
ENV_PET_NODE_RANK: Final = "PET_NODE_RANK"
ENV_PET_MASTER_ADDR: Final = "PET_MASTER_ADDR"
ENV_PET_MASTER_PORT: Final = "PET_MASTER_PORT"
# Gangs that change their size leave it to torchrun who takes part.
ENV_PET_RDZV_BACKEND: Final = "PET_RDZV_BACKEND"
ENV_PET_RDZV_ENDPOINT: Final = "PET_RDZV_ENDPOINT"
ENV_PET_RDZV_ID: Final = "PET_RDZV_ID"
ENV_PET_RDZV_CONF: Final = "PET_RDZV_CONF"
ENV_PET_MAX_RESTARTS: Final = "PET_MAX_RESTARTS"
ENV_TORCH_OWN_STORE: Final = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE"
"""`1`: the workers of each round meet at a store of their own."""

# Where a replica finds the token with which it reports.
TOKEN_VOLUME: Final = "muster-token"
TOKEN_DIRECTORY: Final = "/var/run/secrets/muster.dev"
TOKEN_PATH: Final = f"{TOKEN_DIRECTORY}/token"

JOB_NAME_MAX: Final = 40
"""Pod names add attempt, replica and incarnation and must stay host names (63 characters)."""


def pod_name(job: str, attempt: int, replica: int | str, incarnation: int | str = 0) -> str:
    """The name of a replica's pod: fixed by the decision, so creating it twice is harmless."""
    return f"{job}-{attempt}-{replica}-{incarnation}"


def host_name(job: str, replica: int | str) -> str:
    """The host name of a replica: the same in every attempt and incarnation."""
    return f"{job}-{replica}"


def service_name(job: str) -> str:
    """The headless service under which the replicas of *job* resolve."""
    return job


def replica_host(job: str, replica: int, namespace: str) -> str:
    """The DNS name of a replica inside the cluster, without the cluster domain."""
    return f"{host_name(job, replica)}.{service_name(job)}.{namespace}.svc"
