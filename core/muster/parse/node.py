"""Nodes, and the table of labels that tells GPU models and kinds of capacity.

Clouds and device plugins each name the same things in their own way. The table says which labels
are read, in which order; a value such as `NVIDIA-H100-80GB-HBM3` or `nvidia-h100-80gb` becomes the
model `H100`, which is what jobs, queues and prices speak of.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from muster import wire
from muster.parse.quantity import bytes_of, millis, whole
from muster.parse.raw import Raw, at, flag, required_text, section, sections, text
from muster.scheduling.snapshot import Node, Taint

SPOT: Final = "spot"
ON_DEMAND: Final = "on-demand"

# Maker, form factor, memory and edition: what tells apart boards of one model.
_NOISE: Final = re.compile(
    r"NVIDIA|TESLA|GEFORCE|QUADRO|PCIE|SXM\d*|HBM\d\w*|\d+GB|NVL\d*|NVLINK|MEGA|SHARED"
    r"|BLACKWELL|SERVER|WORKSTATION|EDITION|GENERATION"
)


@dataclass(frozen=True, slots=True)
class CapacityRule:
    """A node with *label* is of *capacity_type*; where *value* is given, only with that value."""

    label: str
    capacity_type: str
    value: str | None = None


@dataclass(frozen=True, slots=True)
class NodeTables:
    """Which labels and resources of a node say what. The first that applies counts."""

    gpu_resource: str = wire.GPU_RESOURCE
    model_labels: tuple[str, ...] = (
        "nvidia.com/gpu.product",
        "karpenter.k8s.aws/instance-gpu-name",
        "eks.amazonaws.com/instance-gpu-name",
        "cloud.google.com/gke-accelerator",
        "gpu.nvidia.com/model",
    )
    """Labels whose value names the GPU model."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Label values whose model cannot be read from them, to the model."""
    capacity_rules: tuple[CapacityRule, ...] = (
        CapacityRule("karpenter.sh/capacity-type", SPOT, "spot"),
        CapacityRule("karpenter.sh/capacity-type", ON_DEMAND),
        CapacityRule("eks.amazonaws.com/capacityType", SPOT, "SPOT"),
        CapacityRule("eks.amazonaws.com/capacityType", ON_DEMAND),
        CapacityRule("cloud.google.com/gke-spot", SPOT, "true"),
        CapacityRule("cloud.google.com/gke-preemptible", SPOT, "true"),
        CapacityRule("cloud.google.com/gke-nodepool", ON_DEMAND),
        CapacityRule("kubernetes.azure.com/scalesetpriority", SPOT, "spot"),
        CapacityRule("kubernetes.azure.com/agentpool", ON_DEMAND),
    )
    """GKE and AKS label spot nodes only: another node of their pools is on-demand."""

    def model_of(self, value: str) -> str | None:
        """The GPU model in a label value, or in what a user wrote; `None` where it names none."""
        return self.aliases.get(value) or _model_in(value)

    def model_by(self, labels: Mapping[str, str]) -> str | None:
        """The GPU model of a node with *labels*."""
        for label in self.model_labels:
            if value := labels.get(label):
                return self.model_of(value)
        return None

    def capacity_type_by(self, labels: Mapping[str, str]) -> str | None:
        """The capacity type of a node with *labels*, `None` where none tells."""
        for rule in self.capacity_rules:
            value = labels.get(rule.label)
            if value is not None and rule.value in (None, value):
                return rule.capacity_type
        return None


DEFAULT_TABLES: Final = NodeTables()


def node_of(obj: Raw, tables: NodeTables = DEFAULT_TABLES) -> Node:
    """The node as the scheduler sees it. Raises `InvalidSpec` for an amount that is none."""
    metadata, spec = section(obj, "metadata", ""), section(obj, "spec", "")
    status = section(obj, "status", "")
    labels = section(metadata, "labels", "metadata")
    allocatable = section(status, "allocatable", "status")
    cpu, memory, pods = (allocatable.get(key) for key in ("cpu", "memory", "pods"))
    here = "status.allocatable"
    return Node(
        name=required_text(metadata, "name", "metadata"),
        gpus=whole(allocatable.get(tables.gpu_resource, 0), at(here, tables.gpu_resource)),
        labels=labels,
        gpu_model=tables.model_by(labels),
        capacity_type=tables.capacity_type_by(labels),
        cpu_millis=None if cpu is None else millis(cpu, at(here, "cpu")),
        memory_bytes=None if memory is None else bytes_of(memory, at(here, "memory")),
        pods=None if pods is None else whole(pods, at(here, "pods")),
        taints=tuple(
            Taint(
                key=text(taint, "key", "spec.taints") or "",
                value=text(taint, "value", "spec.taints") or "",
                effect=text(taint, "effect", "spec.taints") or "",
            )
            for taint in sections(spec, "taints", "spec")
        ),
        is_ready=any(
            condition.get("type") == "Ready" and condition.get("status") == "True"
            for condition in sections(status, "conditions", "status")
        ),
        is_cordoned=flag(spec, "unschedulable", "spec"),
    )


@lru_cache(maxsize=1024)
def _model_in(value: str) -> str | None:
    tokens = [token for token in re.split(r"[-_ ]+", value.upper()) if token]
    return "-".join(token for token in tokens if not _NOISE.fullmatch(token)) or None
