"""The objects that carry out a placement: pods and the headless service.

What is the same for all replicas is built and serialised once a gang; a replica costs two byte
substitutions. Owner references are only ever made here, to the job in its own namespace:
references across namespaces or scopes delete live things later (kubernetes#65200).
"""

import secrets
from collections.abc import Mapping
from copy import copy
from typing import Any, Final

import orjson

from muster import wire
from muster.job_status import Placement
from muster.parse import TrainingJob, needs_kube_scheduler

_TOKEN_SECONDS: Final = 3600
# Nobody can guess these, so that no template can hold them.
_REPLICA: Final = f"R{secrets.token_hex(12)}"
_NODE: Final = f"N{secrets.token_hex(12)}"
_INCARNATION: Final = f"I{secrets.token_hex(12)}"
_IS_HOST: Final = f"H{secrets.token_hex(12)}"
_LAST_CALL_SECONDS: Final = 10
_RESTARTS: Final = 3
_COPIED_LABELS: Final = (wire.LABEL_TEAM, wire.LABEL_EXPERIMENT)

Raw = dict[str, Any]


class GangBody:
    """The bodies of a gang's pods: `pod(replica)` is ready to be sent."""

    def __init__(
        self,
        job: TrainingJob,
        placement: Placement,
        round_: int,
        labels: Mapping[str, str],
        api_url: str,
    ) -> None:
        """*labels* are those of the job object."""
        self._placement = placement
        self._bytes = orjson.dumps(_pod(job, placement, round_, labels, api_url))

    def pod(self, replica: int) -> bytes:
        """The JSON of one replica's pod."""
        values = {
            _REPLICA: str(replica),
            _NODE: self._placement.nodes[replica],
            _INCARNATION: str(self._placement.incarnation(replica)),
            _IS_HOST: str(int(replica == 0)),
        }
        body = self._bytes
        for marker, value in values.items():
            body = body.replace(marker.encode(), value.encode())
        return body


def service(job: TrainingJob) -> Raw:
    """The headless service under which replicas find each other before they are ready."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": wire.service_name(job.name),
            "namespace": job.namespace,
            "labels": {wire.LABEL_JOB: job.name},
            "ownerReferences": [owner_reference(job)],
        },
        "spec": {
            "clusterIP": "None",
            "selector": {wire.LABEL_JOB: job.name},
            "publishNotReadyAddresses": True,
        },
    }


def owner_reference(job: TrainingJob) -> Raw:
    """What makes an object in the job's namespace go when the job goes."""
    return {
        "apiVersion": wire.API_VERSION,
        "kind": "TrainingJob",
        "name": job.name,
        "uid": job.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _pod(
    job: TrainingJob, placement: Placement, round_: int, labels: Mapping[str, str], api_url: str
) -> Raw:
    metadata = job.template.get("metadata") or {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": wire.pod_name(job.name, placement.attempt, _REPLICA, _INCARNATION),
            "namespace": job.namespace,
            "labels": {
                **(metadata.get("labels") or {}),
                **{key: labels[key] for key in _COPIED_LABELS if key in labels},
                wire.LABEL_JOB: job.name,
                wire.LABEL_ATTEMPT: str(placement.attempt),
                wire.LABEL_REPLICA: _REPLICA,
                wire.LABEL_QUEUE: job.queue,
            },
            "annotations": dict(metadata.get("annotations") or {}),
            "ownerReferences": [owner_reference(job)],
        },
        "spec": _spec(job, placement, round_, api_url),
    }


def _spec(job: TrainingJob, placement: Placement, round_: int, api_url: str) -> Raw:
    template = job.template["spec"]
    environment = _environment(job, placement, round_, api_url)
    spec: Raw = {
        **template,
        "hostname": wire.host_name(job.name, _REPLICA),
        "subdomain": wire.service_name(job.name),
        "enableServiceLinks": False,
        "restartPolicy": "Never",
        "containers": [_container(c, environment) for c in template["containers"]],
        "volumes": [*(template.get("volumes") or ()), _token_volume()],
    }
    if template.get("initContainers"):
        spec["initContainers"] = [_container(c, environment) for c in template["initContainers"]]
    if job.gpus_per_replica:
        spec["containers"][0] = _with_gpus(spec["containers"][0], job.gpus_per_replica)
    if needs_kube_scheduler(job.template):
        spec["affinity"] = _pinned(template.get("affinity") or {})
    else:
        spec["nodeName"] = _NODE
    return spec


def _container(container: Mapping[str, Any], environment: list[Raw]) -> Raw:
    ours = {variable["name"] for variable in environment}
    theirs = [v for v in container.get("env") or () if v.get("name") not in ours]
    if path := container.get("terminationMessagePath"):
        theirs.append({"name": wire.ENV_TERMINATION_LOG, "value": path})
    mount = {"name": wire.TOKEN_VOLUME, "mountPath": wire.TOKEN_DIRECTORY, "readOnly": True}
    return {
        # The last words of a script that raises reach the status without anybody reading logs.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **container,
        # Ours come first, so that theirs may refer to them as $(MUSTER_REPLICA).
        "env": [*environment, *theirs],
        "volumeMounts": [*(container.get("volumeMounts") or ()), mount],
    }


def _with_gpus(container: Raw, gpus: int) -> Raw:
    container = copy(container)
    resources = dict(container.get("resources") or {})
    for kind in ("limits", "requests"):
        resources[kind] = {**(resources.get(kind) or {}), wire.GPU_RESOURCE: str(gpus)}
    container["resources"] = resources
    return container


def _environment(job: TrainingJob, placement: Placement, round_: int, api_url: str) -> list[Raw]:
    leader = wire.replica_host(job.name, 0, job.namespace)
    port = str(placement.port)
    values = {
        wire.ENV_NAMESPACE: job.namespace,
        wire.ENV_JOB: job.name,
        wire.ENV_JOB_UID: job.uid,
        wire.ENV_ATTEMPT: str(placement.attempt),
        wire.ENV_ROUND: str(round_),
        wire.ENV_REPLICA: _REPLICA,
        wire.ENV_TOKEN_FILE: wire.TOKEN_PATH,
        wire.ENV_MASTER_ADDR: leader,
        wire.ENV_MASTER_PORT: port,
        wire.ENV_PET_MASTER_ADDR: leader,
        wire.ENV_PET_MASTER_PORT: port,
        wire.ENV_PET_NNODES: str(len(placement.nodes)),
        wire.ENV_PET_NPROC_PER_NODE: str(job.processes_per_replica),
        wire.ENV_PET_NODE_RANK: _REPLICA,
    }
    if api_url:
        values[wire.ENV_API_URL] = api_url
    if job.checkpoint_uri:
        # With the uid in it, a job of the same name starts afresh.
        values[wire.ENV_CHECKPOINT_URI] = f"{job.checkpoint_uri.rstrip('/')}/{job.uid}"
    if job.min_replicas < job.replicas:
        values |= _elastic(job, placement, leader)
    return [{"name": name, "value": value} for name, value in values.items()]


def _elastic(job: TrainingJob, placement: Placement, leader: str) -> dict[str, str]:
    """What has torchrun find out by itself who takes part, and form anew when that changes.

    Its store is on replica 0. Nothing of it differs between replicas that start at different
    times; a worker that ends because others went is started anew by torchrun itself.
    """
    conf = {
        "is_host": _IS_HOST,
        # With fewer than the most it waits so long for further ones.
        "last_call_timeout": str(_LAST_CALL_SECONDS),
    }
    return {
        wire.ENV_PET_NNODES: f"{job.min_replicas}:{job.replicas}",
        wire.ENV_PET_RDZV_BACKEND: "c10d",
        wire.ENV_PET_RDZV_ENDPOINT: f"{leader}:{placement.port}",
        wire.ENV_PET_RDZV_ID: f"{job.uid}-{placement.attempt}",
        wire.ENV_PET_RDZV_CONF: ",".join(f"{key}={value}" for key, value in conf.items()),
        wire.ENV_PET_MAX_RESTARTS: str(_RESTARTS),
        # Else a replica that joins later waits for the address of a store that is told only once.
        wire.ENV_TORCH_OWN_STORE: "1",
    }


def _token_volume() -> Raw:
    token = {
        "audience": wire.AUDIENCE,
        "expirationSeconds": _TOKEN_SECONDS,
        "path": wire.TOKEN_PATH.removeprefix(f"{wire.TOKEN_DIRECTORY}/"),
    }
    return {
        "name": wire.TOKEN_VOLUME,
        "projected": {"sources": [{"serviceAccountToken": token}]},
    }


def _pinned(affinity: Mapping[str, Any]) -> Raw:
    """*affinity* and the chosen node: each term gets the node, since any one of them may match."""
    key = "requiredDuringSchedulingIgnoredDuringExecution"
    node_affinity = dict(affinity.get("nodeAffinity") or {})
    terms = (node_affinity.get(key) or {}).get("nodeSelectorTerms") or [{}]
    field = {"key": "metadata.name", "operator": "In", "values": [_NODE]}
    node_affinity[key] = {
        "nodeSelectorTerms": [
            {**term, "matchFields": [*(term.get("matchFields") or ()), field]} for term in terms
        ]
    }
    return {**affinity, "nodeAffinity": node_affinity}
