"""What the simulated nodes pretend to be."""

from muster_local.hardware import kwok_node, process_nodes
from muster_local.nodes.table import NodeEntry
from muster_local.shape import Shape


def racks(entries: list[NodeEntry]) -> list[str]:
    return [entry.labels["muster.dev/rack"] for entry in entries]


def test_racks_are_filled_one_after_the_other() -> None:
    entries = process_nodes("c", Shape(nodes=4, racks=2), ())

    assert ["rack-0", "rack-0", "rack-1", "rack-1"] == racks(entries)
    assert ["node-0", "node-1", "node-2", "node-3"] == [entry.name for entry in entries]


def test_no_rack_is_empty() -> None:
    for nodes in range(1, 12):
        for count in range(1, nodes + 1):
            entries = process_nodes("c", Shape(nodes=nodes, racks=count), ())

            assert count == len(set(racks(entries)))


def test_nodes_that_come_later_leave_the_others_as_they_are() -> None:
    before = tuple(process_nodes("c", Shape(nodes=2, racks=2), ()))

    entries = process_nodes("c", Shape(nodes=4, racks=2), before)

    assert before == tuple(entries[:2])
    assert ["rack-0", "rack-1"] == racks(entries[2:])


def test_a_node_carries_the_labels_of_real_ones_and_says_that_it_is_not() -> None:
    (entry,) = process_nodes("c", Shape(nodes=1, racks=1, gpu_model="H100"), ())

    assert {
        "muster.dev/block": "block-0",
        "muster.dev/rack": "rack-0",
        "muster.dev/simulated": "true",
        "muster.dev/local-cluster": "c",
        "karpenter.sh/capacity-type": "on-demand",
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    } == entry.labels


def test_a_node_without_gpus_names_no_product() -> None:
    (entry,) = process_nodes("c", Shape(nodes=1, racks=1, gpus=0), ())

    assert "nvidia.com/gpu.product" not in entry.labels
    assert 0 == entry.gpus


def test_kwok_nodes_stand_sixteen_to_a_rack_and_eight_racks_to_a_block() -> None:
    def place(index: int) -> tuple[str, str]:
        labels = kwok_node("c", Shape(kwok_nodes=200), index)["metadata"]["labels"]
        return labels["muster.dev/block"], labels["muster.dev/rack"]

    assert ("kwok-block-0", "kwok-rack-0000") == place(15)
    assert ("kwok-block-0", "kwok-rack-0001") == place(16)
    assert ("kwok-block-1", "kwok-rack-0008") == place(128)


def test_a_kwok_node_offers_its_gpus() -> None:
    node = kwok_node("c", Shape(gpus=4, kwok_nodes=1), 0)

    assert "4" == node["status"]["allocatable"]["nvidia.com/gpu"]
