from typing import Any

import pytest

from muster.errors import InvalidSpec
from muster.parse import CapacityRule, NodeTables, node_of
from muster.scheduling.snapshot import Node, Taint

TABLES = NodeTables()


def a_node(labels: dict[str, str] | None = None, **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "n1", "labels": labels or {}}, "status": status}


def test_a_node_is_read_whole() -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "muster.dev/rack": "r1"}
    obj = {
        "metadata": {"name": "n1", "labels": labels},
        "spec": {
            "unschedulable": True,
            "taints": [{"key": "gpu", "value": "yes", "effect": "NoExecute"}, {"key": "k"}],
        },
        "status": {
            "allocatable": {
                "cpu": "7910m",
                "memory": "32Gi",
                "pods": "110",
                "nvidia.com/gpu": "8",
            },
            "conditions": [
                {"type": "MemoryPressure", "status": "False"},
                {"type": "Ready", "status": "True"},
            ],
        },
    }
    want = Node(
        name="n1",
        gpus=8,
        labels=labels,
        gpu_model="H100",
        cpu_millis=7910,
        memory_bytes=32 * 2**30,
        pods=110,
        taints=(Taint("gpu", "yes", "NoExecute"), Taint("k", "", "")),
        is_ready=True,
        is_cordoned=True,
    )
    assert want == node_of(obj)


def test_a_node_that_has_said_nothing_yet_binds_nothing_and_is_not_ready() -> None:
    assert Node(name="n1", gpus=0, is_ready=False) == node_of({"metadata": {"name": "n1"}})


@pytest.mark.parametrize("status", ["False", "Unknown"])
def test_a_node_is_ready_only_when_it_says_so(status: str) -> None:
    obj = a_node(conditions=[{"type": "Ready", "status": status}])
    assert not node_of(obj).is_ready


MODELS = {
    "nvidia.com/gpu.product": {
        "NVIDIA-H100-80GB-HBM3": "H100",
        "NVIDIA-H100-PCIe": "H100",
        "NVIDIA-H100-NVL": "H100",
        "NVIDIA-H200": "H200",
        "NVIDIA-B200": "B200",
        "NVIDIA-GB200": "GB200",
        "NVIDIA-GH200-480GB": "GH200",
        "NVIDIA-A100-SXM4-40GB": "A100",
        "NVIDIA-A100-SXM4-80GB": "A100",
        "NVIDIA-A100-SXM4-40GB-SHARED": "A100",
        "NVIDIA-A10G": "A10G",
        "NVIDIA-L4": "L4",
        "NVIDIA-L40S": "L40S",
        "Tesla-T4": "T4",
        "Tesla-V100-SXM2-16GB": "V100",
        "NVIDIA-GeForce-RTX-4090": "RTX-4090",
        "NVIDIA-RTX-6000-Ada-Generation": "RTX-6000-ADA",
        # A slice is no whole GPU, and must not pass for one.
        "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb": "H100-MIG-1G.10GB",
    },
    "karpenter.k8s.aws/instance-gpu-name": {"h100": "H100", "a10g": "A10G", "t4": "T4"},
    "eks.amazonaws.com/instance-gpu-name": {"l40s": "L40S"},
    "cloud.google.com/gke-accelerator": {
        "nvidia-tesla-t4": "T4",
        "nvidia-tesla-v100": "V100",
        "nvidia-tesla-a100": "A100",
        "nvidia-a100-80gb": "A100",
        "nvidia-h100-80gb": "H100",
        "nvidia-h100-mega-80gb": "H100",
        "nvidia-h200-141gb": "H200",
        "nvidia-l4": "L4",
        "nvidia-b200": "B200",
        "nvidia-rtx-pro-6000": "RTX-PRO-6000",
    },
    "gpu.nvidia.com/model": {"H100_NVLINK_80GB": "H100", "A100_PCIE_40GB": "A100"},
}


@pytest.mark.parametrize(
    ("label", "value", "want"),
    [(label, value, want) for label, values in MODELS.items() for value, want in values.items()],
)
def test_clouds_and_plugins_name_one_model_alike(label: str, value: str, want: str) -> None:
    assert want == node_of(a_node({label: value})).gpu_model


@pytest.mark.parametrize("value", ["nvidia", "", "NVIDIA-80GB"])
def test_a_label_that_names_no_model_gives_none(value: str) -> None:
    assert node_of(a_node({"cloud.google.com/gke-accelerator": value})).gpu_model is None


def test_the_first_label_of_the_table_counts() -> None:
    labels = {
        "cloud.google.com/gke-accelerator": "nvidia-l4",
        "nvidia.com/gpu.product": "Tesla-T4",
    }
    assert "T4" == node_of(a_node(labels)).gpu_model


CAPACITY = {
    "Karpenter, spot": ({"karpenter.sh/capacity-type": "spot"}, "spot"),
    "Karpenter, on demand": ({"karpenter.sh/capacity-type": "on-demand"}, "on-demand"),
    "Karpenter, reserved": ({"karpenter.sh/capacity-type": "reserved"}, "on-demand"),
    "EKS, spot": ({"eks.amazonaws.com/capacityType": "SPOT"}, "spot"),
    "EKS, on demand": ({"eks.amazonaws.com/capacityType": "ON_DEMAND"}, "on-demand"),
    "EKS, a capacity block": (
        {"eks.amazonaws.com/capacityType": "CAPACITY_BLOCK"},
        "on-demand",
    ),
    "GKE, spot": (
        {"cloud.google.com/gke-nodepool": "p", "cloud.google.com/gke-spot": "true"},
        "spot",
    ),
    "GKE, preemptible": (
        {"cloud.google.com/gke-nodepool": "p", "cloud.google.com/gke-preemptible": "true"},
        "spot",
    ),
    "GKE labels nothing else": ({"cloud.google.com/gke-nodepool": "p"}, "on-demand"),
    "AKS, spot": (
        {"kubernetes.azure.com/agentpool": "p", "kubernetes.azure.com/scalesetpriority": "spot"},
        "spot",
    ),
    "AKS, regular": ({"kubernetes.azure.com/agentpool": "p"}, "on-demand"),
    "a node that nobody labelled": ({"kubernetes.io/hostname": "n1"}, None),
}


@pytest.mark.parametrize("claim", CAPACITY)
def test_the_kind_of_capacity_is_read_from_labels(claim: str) -> None:
    labels, want = CAPACITY[claim]
    assert want == node_of(a_node(labels)).capacity_type


def test_the_tables_can_be_set() -> None:
    tables = NodeTables(
        gpu_resource="example.com/gpu",
        model_labels=("example.com/board",),
        aliases={"board-7": "H100"},
        capacity_rules=(CapacityRule("example.com/cheap", "spot", "yes"),),
    )
    labels = {"example.com/board": "board-7", "example.com/cheap": "yes"}
    obj = a_node(labels, allocatable={"example.com/gpu": 4, "nvidia.com/gpu": 8})
    node = node_of(obj, tables)
    assert (4, "H100", "spot") == (node.gpus, node.gpu_model, node.capacity_type)


def test_a_user_may_write_a_model_as_a_label_has_it() -> None:
    assert ["H100"] * 3 == [TABLES.model_of(text) for text in ("H100", "h100", "nvidia-h100-80gb")]


BAD_NODES = {
    "no name": ({"metadata": {}}, "metadata.name: is missing"),
    "GPUs in words": (
        a_node(allocatable={"nvidia.com/gpu": "all"}),
        "status.allocatable.nvidia.com/gpu: 'all' is no quantity; write it as 2, 500m, 1.5 or "
        "16Gi",
    ),
    "labels that are no mapping": (
        {"metadata": {"name": "n1", "labels": []}},
        "metadata.labels: must be a mapping, is a list",
    ),
}


@pytest.mark.parametrize("claim", BAD_NODES)
def test_a_bad_node_is_refused_with_the_path_of_the_field(claim: str) -> None:
    obj, want = BAD_NODES[claim]
    with pytest.raises(InvalidSpec) as refused:
        node_of(obj)
    assert want == str(refused.value)
