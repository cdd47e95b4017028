"""What a process node tells the API server about itself: its Node object and its lease.

Only computes; `node` writes it.
"""

import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from muster import wire
from muster_local.nodes.fields import LOOPBACK
from muster_local.nodes.status import time_of
from muster_local.nodes.table import NodeEntry

Json = dict[str, Any]

LEASE_NAMESPACE: Final = "kube-node-lease"
ANNOTATION_SIMULATED: Final = f"{wire.GROUP}/simulated-gpus"
"""How many GPUs of the node exist in a table only."""

_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
_HEALTHY: Final = {
    "MemoryPressure": ("False", "KubeletHasSufficientMemory"),
    "DiskPressure": ("False", "KubeletHasNoDiskPressure"),
    "PIDPressure": ("False", "KubeletHasSufficientPID"),
    "Ready": ("True", "KubeletReady"),
}


def allocatable_of(entry: NodeEntry) -> dict[str, str]:
    """What pods may take: all that the node claims to have."""
    gpus = {wire.GPU_RESOURCE: str(entry.gpus)} if entry.gpus else {}
    return {
        "cpu": str(entry.cpus),
        "memory": str(entry.memory_bytes),
        "ephemeral-storage": str(entry.storage_bytes),
        "pods": str(entry.pods),
        **gpus,
    }


def labels_of(entry: NodeEntry) -> dict[str, str]:
    """Those of a kubelet and of the table; a node with GPUs says that they are simulated."""
    system, machine = platform.system().lower(), platform.machine().lower()
    architecture = _ARCHITECTURES.get(machine, machine)
    simulated = {wire.LABEL_SIMULATED: "true"} if entry.gpus else {}
    return {
        "kubernetes.io/hostname": entry.name,
        "kubernetes.io/os": system,
        "kubernetes.io/arch": architecture,
        **simulated,
        **entry.labels,
    }


def metadata_of(entry: NodeEntry) -> Json:
    """Name, labels and annotations of the Node object."""
    annotations = {ANNOTATION_SIMULATED: str(entry.gpus)} if entry.gpus else {}
    return {"name": entry.name, "labels": labels_of(entry), "annotations": annotations}


def node_status(
    entry: NodeEntry, *, port: int, version: str, now: float, ready_since: float
) -> Json:
    """The status of a node that is well. *port* is the log endpoint's, 0 where there is none."""
    amounts = allocatable_of(entry)
    # A device that is no longer there must not stay in the map that the patch is merged into.
    gone = {} if entry.gpus else {wire.GPU_RESOURCE: None}
    uname = platform.uname()
    return {
        "capacity": {**amounts, **gone},
        "allocatable": {**amounts, **gone},
        "addresses": [
            {"type": "InternalIP", "address": LOOPBACK},
            {"type": "Hostname", "address": entry.name},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        "conditions": [
            {
                "type": kind,
                "status": status,
                "reason": reason,
                "message": "process node",
                "lastHeartbeatTime": time_of(now),
                "lastTransitionTime": time_of(ready_since),
            }
            for kind, (status, reason) in _HEALTHY.items()
        ],
        "nodeInfo": {
            "kubeletVersion": version,
            "kubeProxyVersion": "",
            "containerRuntimeVersion": "process://local",
            "kernelVersion": uname.release,
            "osImage": "the local machine",
            "operatingSystem": uname.system.lower(),
            "architecture": labels_of(entry)["kubernetes.io/arch"],
            "machineID": "",
            "systemUUID": "",
            "bootID": "",
        },
    }


def lease_of(node: Mapping[str, Any], *, seconds: int, now: float) -> Json:
    """The lease of *node*, a Node object, renewed at *now*; it goes when the node goes."""
    metadata = node["metadata"]
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": metadata["name"],
            "namespace": LEASE_NAMESPACE,
            "ownerReferences": [
                {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "name": metadata["name"],
                    "uid": metadata["uid"],
                }
            ],
        },
        "spec": {
            "holderIdentity": metadata["name"],
            "leaseDurationSeconds": seconds,
            "renewTime": micro_time_of(now),
        },
    }


def micro_time_of(seconds: float) -> str:
    """RFC 3339 in UTC with microseconds, as leases have it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
