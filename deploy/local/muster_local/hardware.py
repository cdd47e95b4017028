"""What the simulated nodes of a cluster pretend to be: labels and amounts.

The labels are those that real nodes carry (GPU feature discovery, Karpenter), so that nothing else
has to know that these nodes are not real; `muster.dev/simulated` says so to whoever shows figures.
"""

from collections.abc import Mapping
from typing import Any, Final

from muster import wire
from muster_local.nodes.table import NodeEntry
from muster_local.shape import Shape

# How NVIDIA's feature discovery names them.
_PRODUCTS: Final[Mapping[str, str]] = {
    "H100": "NVIDIA-H100-80GB-HBM3",
    "H200": "NVIDIA-H200",
    "B200": "NVIDIA-B200",
    "A100": "NVIDIA-A100-SXM4-80GB",
    "L40S": "NVIDIA-L40S",
    "L4": "NVIDIA-L4",
    "T4": "Tesla-T4",
    "V100": "Tesla-V100-SXM2-16GB",
}
_LABEL_BLOCK: Final = f"{wire.GROUP}/block"
_LABEL_RACK: Final = f"{wire.GROUP}/rack"
_KWOK_NODES_IN_A_RACK: Final = 16
_KWOK_RACKS_IN_A_BLOCK: Final = 8
KWOK_MARK: Final = "kwok.x-k8s.io/node"
"""Annotation of the nodes that KWOK plays."""


def node_name(index: int) -> str:
    """The name of a process node."""
    return f"node-{index}"


def kwok_name(index: int) -> str:
    """The name of a KWOK node; they sort by number."""
    return f"kwok-{index:05}"


def process_nodes(cluster: str, shape: Shape, before: tuple[NodeEntry, ...]) -> list[NodeEntry]:
    """The table of process nodes: those there are *before* as they are, and new ones after them.

    Racks are filled one after the other; nodes that come later go to the racks in turn.
    """
    entries = list(before)
    first_time = max(shape.nodes, 1)
    for index in range(len(before), shape.nodes):
        rack = index % shape.racks if before else index * shape.racks // first_time
        labels = _labels(cluster, shape, "block-0", f"rack-{rack}")
        entries.append(NodeEntry(node_name(index), gpus=shape.gpus, labels=labels))
    return entries


def kwok_node(cluster: str, shape: Shape, index: int) -> dict[str, Any]:
    """A Node for KWOK to play: 16 in a rack, 8 racks in a block, apart from the process nodes."""
    rack = index // _KWOK_NODES_IN_A_RACK
    block = rack // _KWOK_RACKS_IN_A_BLOCK
    name = kwok_name(index)
    amounts = {"cpu": "64", "memory": "512Gi", "ephemeral-storage": "1Ti", "pods": "110"}
    if shape.gpus:
        amounts[wire.GPU_RESOURCE] = str(shape.gpus)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                **_labels(cluster, shape, f"kwok-block-{block}", f"kwok-rack-{rack:04}"),
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "type": "kwok",
            },
            "annotations": {KWOK_MARK: "fake"},
        },
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def _labels(cluster: str, shape: Shape, block: str, rack: str) -> dict[str, str]:
    labels = {
        _LABEL_BLOCK: block,
        _LABEL_RACK: rack,
        wire.LABEL_CLUSTER: cluster,
        wire.LABEL_SIMULATED: "true",
        "karpenter.sh/capacity-type": "on-demand",
    }
    if shape.gpus:
        model = shape.gpu_model
        labels["nvidia.com/gpu.product"] = _PRODUCTS.get(model, f"NVIDIA-{model}")
    return labels
