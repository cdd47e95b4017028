"""Where gangs go: section *Placement* of the policy, a sentence each."""

import pytest

from muster.scheduling.cluster import Cluster
from muster.scheduling.snapshot import Level
from small_clusters import BLOCKS, RACKS, gang, holding, node, nodes, outcome, planned

THREE_BY_FOUR = [node(f"n{n:02}", 1, rack=f"r{(n - 1) % 3 + 1}") for n in range(1, 13)]
THREE_LEAVES = [node(f"n{n}", 1, rack=f"l{(n - 1) % 3 + 1}") for n in range(1, 7)]


CASES = {
    "of two gangs that each need more than half of the cluster one starts whole": (
        Cluster.of(nodes=nodes("n1 n2"), gangs=[gang("a", 12), gang("b", 12)]),
        {"a": "n1 " * 7 + "n1 " + "n2 n2 n2 n2", "b": "InsufficientCapacity"},
    ),
    "a gang of ten on nine nodes holds none of them, and a small job behind it starts": (
        Cluster.of(
            nodes=[node(f"n{n}", 1) for n in range(1, 10)],
            gangs=[gang("g", 10), gang("s", submitted=1.0)],
        ),
        {"g": "NeverFits", "s": "n1"},
    ),
    "enough in the sum but not on the nodes holds nothing": (
        Cluster.of(
            nodes=nodes("n1 n2 n3 n4"),
            gangs=[
                holding(gang("hold1", 1, 2), "n1"),
                holding(gang("hold2", 1, 6), "n2"),
                holding(gang("hold3", 1, 6), "n3"),
                holding(gang("hold4", 1, 6), "n4"),
                gang("g", 3, 4),
            ],
        ),
        {"g": "Fragmented"},
    ),
    "a gang without room does not block the small jobs behind it, which leave big holes whole": (
        Cluster.of(
            nodes=nodes("n1 n2 n3 n4"),
            gangs=[
                holding(gang("hold1", 1, 2), "n1"),
                holding(gang("hold2", 1, 6), "n2"),
                holding(gang("hold3", 1, 6), "n3"),
                holding(gang("hold4", 1, 6), "n4"),
                gang("g", 3, 4),
                gang("two", 1, 2, submitted=60.0),
                gang("six", 1, 6, submitted=120.0),
            ],
        ),
        {"g": "InsufficientCapacity", "two": "n2", "six": "n1"},
    ),
    "ten ranks over three racks of four are contiguous in each, filled one after the other": (
        Cluster.of(
            levels=RACKS,
            nodes=THREE_BY_FOUR,
            gangs=[gang("g", 10, preferred="rack"), gang("pair", 2, required="rack", submitted=1)],
        ),
        {"g": "n01 n04 n07 n10 n02 n05 n08 n11 n03 n06", "pair": "n09 n12"},
    ),
    "four over three switches of two fill two and leave the third whole": (
        Cluster.of(
            levels=RACKS,
            nodes=THREE_LEAVES,
            gangs=[
                gang("four", 4, preferred="rack"),
                gang("pair", 2, required="rack", submitted=1),
            ],
        ),
        {"four": "n1 n4 n2 n5", "pair": "n3 n6"},
    ),
    "without any wish a gang that fits one node goes to one node": (
        Cluster.of(
            levels=RACKS,
            nodes=[*nodes("n1 n2", 4, rack="r1"), node("n3", 8, rack="r2")],
            gangs=[gang("g", 8)],
        ),
        {"g": "n3 n3 n3 n3 n3 n3 n3 n3"},
    ),
    "the tightest node is taken and the wide one kept": (
        Cluster.of(nodes=[node("n1", 8), node("n2", 4)], gangs=[gang("g", 4)]),
        {"g": "n2 n2 n2 n2"},
    ),
    "the tightest rack is taken and the wide one kept": (
        Cluster.of(
            levels=RACKS,
            nodes=[*nodes("n1 n2 n3", 8, rack="r1"), *nodes("n4 n5", 8, rack="r2")],
            gangs=[gang("g", 2, 8)],
        ),
        {"g": "n4 n5"},
    ),
    "of equal nodes the one in the rack with less left over is taken": (
        Cluster.of(
            levels=RACKS,
            nodes=[*nodes("n1 n2 n3", 8, rack="r1"), *nodes("n4 n5", 8, rack="r2")],
            gangs=[gang("g", 1, 8)],
        ),
        {"g": "n4"},
    ),
    "of equal racks the one in the block with less left over is taken": (
        Cluster.of(
            levels=BLOCKS,
            nodes=[
                *nodes("n1 n2", 8, block="b1", rack="r1"),
                *nodes("n3 n4", 8, block="b1", rack="r2"),
                *nodes("n5 n6", 8, block="b2", rack="r3"),
            ],
            gangs=[gang("g", 2, 8)],
        ),
        {"g": "n5 n6"},
    ),
    "left over is counted in GPUs, not in replicas": (
        Cluster.of(
            nodes=[node("n1", 7), node("n2", 6)],
            gangs=[gang("g", 1, 4)],
        ),
        {"g": "n2"},
    ),
    "a job without GPUs goes where no GPU is kept from others": (
        Cluster.of(
            nodes=[node("n1", 8, cpu_millis=64000), node("n2", 0, cpu_millis=64000)],
            gangs=[gang("g", 2, 0, cpu_millis=1000)],
        ),
        {"g": "n2 n2"},
    ),
    "numbers inside names compare as numbers": (
        Cluster.of(nodes=[node("n10"), node("n2")], gangs=[gang("g", 1, 8)]),
        {"g": "n2"},
    ),
    "a required rack is kept, though another rack would fill up better with part of it": (
        Cluster.of(
            levels=RACKS,
            nodes=[*nodes("n1 n2", 2, rack="r1"), *nodes("n3 n4 n5", 2, rack="r2")],
            gangs=[gang("g", 6, required="rack")],
        ),
        {"g": "n3 n3 n4 n4 n5 n5"},
    ),
    "a required rack that is not there now is waited for": (
        Cluster.of(
            levels=RACKS,
            nodes=[*nodes("n1 n2", 2, rack="r1"), *nodes("n3 n4", 2, rack="r2")],
            gangs=[
                holding(gang("h", 1), "n1"),
                holding(gang("i", 1), "n3"),
                gang("g", 4, required="rack"),
            ],
        ),
        {"g": "TopologyUnsatisfied"},
    ),
    "inside a required block the lowest level goes first": (
        Cluster.of(
            levels=BLOCKS,
            nodes=[
                *nodes("n1 n2", 1, block="b1", rack="r1"),
                *nodes("n3 n4", 1, block="b1", rack="r2"),
                *nodes("n5 n6 n7", 1, block="b2", rack="r3"),
            ],
            gangs=[gang("g", 3, required="block")],
        ),
        {"g": "n5 n6 n7"},
    ),
    "required and preferred combine: the preferred one is looked at first": (
        Cluster.of(
            levels=BLOCKS,
            nodes=[
                node("n1", 4, block="b1", rack="r1"),
                *nodes("n2 n3", 1, block="b2", rack="r2"),
            ],
            gangs=[gang("g", 2, preferred="rack", required="block")],
        ),
        {"g": "n2 n3"},
    ),
    "a level may be required on the node itself": (
        Cluster.of(
            nodes=nodes("n1 n2", 4),
            gangs=[gang("g", 5, required="node"), gang("h", 4, required="node")],
        ),
        {"g": "NeverFits", "h": "n1 n1 n1 n1"},
    ),
    "nodes without the label are in no domain of the level": (
        Cluster.of(
            levels=RACKS,
            nodes=[*nodes("n1 n2 n3", 1), *nodes("n4 n5", 1, rack="r1")],
            gangs=[gang("g", 2, required="rack"), gang("h", 3, submitted=1.0)],
        ),
        {"g": "n4 n5", "h": "n1 n2 n3"},
    ),
    "a node without the label satisfies no requirement of the level, even alone": (
        Cluster.of(levels=RACKS, nodes=nodes("n1"), gangs=[gang("g", 1, required="rack")]),
        {"g": "NeverFits"},
    ),
    "racks count where the outer label is missing": (
        Cluster.of(
            levels=BLOCKS,
            nodes=[*nodes("n1 n2", 1, rack="r1"), *nodes("n3 n4", 1, rack="r2")],
            gangs=[gang("g", 2, required="rack"), gang("h", 2, required="rack", submitted=1.0)],
        ),
        {"g": "n1 n2", "h": "n3 n4"},
    ),
    "the fewest blocks first, and inside them the fewest racks": (
        Cluster.of(
            levels=BLOCKS,
            nodes=[
                *nodes("n1 n2", 1, block="b1", rack="r1"),
                *nodes("n3 n4", 1, block="b1", rack="r2"),
                *nodes("n5 n6 n7", 1, block="b2", rack="r3"),
                *nodes("n8", 1, block="b3", rack="r4"),
            ],
            gangs=[gang("g", 6)],
        ),
        {"g": "n1 n2 n3 n4 n5 n6"},
    ),
    "the last domain opened is the tightest that takes the rest": (
        Cluster.of(
            levels=RACKS,
            nodes=[
                *nodes("n1 n2 n3 n4", 1, rack="r1"),
                *nodes("n5 n6 n7", 1, rack="r2"),
                *nodes("n8", 1, rack="r3"),
            ],
            gangs=[gang("g", 5)],
        ),
        {"g": "n1 n2 n3 n4 n8"},
    ),
    "of three switches over six, with five of twelve nodes cordoned, the one that holds it": (
        Cluster.of(
            levels=BLOCKS,
            nodes=[
                node(
                    f"n{n}",
                    block=f"sw2{(n + 3) // 4}",
                    rack=f"sw1{(n + 1) // 2}",
                    is_cordoned=n in {1, 3, 6, 11, 12},
                )
                for n in range(1, 13)
            ],
            gangs=[gang("g", 3, 8)],
        ),
        {"g": "n7 n8 n5"},
    ),
    "a gang that needs every node waits for the busy ones": (
        Cluster.of(
            nodes=nodes("n1 n2 n3 n4"),
            gangs=[
                *(holding(gang(f"r{n}", 1, 8, priority=10), f"n{n}") for n in range(1, 5)),
                gang("big", 4, 8, priority=10),
            ],
        ),
        {"big": "InsufficientCapacity"},
    ),
    "a gang whose members went to nodes that died holds up nobody": (
        Cluster.of(
            nodes=[node("n1", 1, is_ready=False), *nodes("n2 n3 n4 n5", 1)],
            gangs=[holding(gang("g", 4), "n1 n2 n3 n4"), gang("next")],
        ),
        {"next": "n5"},
    ),
    "each part lies within one rack": (
        Cluster.of(
            levels=RACKS,
            nodes=[*nodes("n1 n2 n3", 1, rack="r1"), *nodes("n4 n5 n6", 1, rack="r2")],
            gangs=[gang("g", 4, part_size=2, part_required="rack")],
        ),
        {"g": "n1 n2 n4 n5"},
    ),
    "three racks of three take three parts of two and no fourth": (
        Cluster.of(
            levels=RACKS,
            nodes=[node(f"n{n}", 1, rack=f"r{(n - 1) // 3}") for n in range(1, 10)],
            gangs=[gang("g", 8, part_size=2, part_required="rack")],
        ),
        {"g": "NeverFits"},
    ),
    "the last part may be smaller and takes what a full one leaves": (
        Cluster.of(
            levels=RACKS,
            nodes=[node(f"n{n}", 1, rack=f"r{(n - 1) // 3}") for n in range(1, 10)],
            gangs=[gang("g", 7, part_size=2, part_required="rack")],
        ),
        {"g": "n1 n2 n4 n5 n7 n8 n9"},
    ),
    "the last part may join a domain that full ones left room in": (
        Cluster.of(
            levels=RACKS,
            nodes=[*nodes("n1 n2 n3", 1, rack="r1"), *nodes("n4 n5", 1, rack="r2")],
            gangs=[gang("g", 5, part_size=2, part_required="rack")],
        ),
        {"g": "n4 n5 n1 n2 n3"},
    ),
    "the last part may open a domain that takes no full one": (
        Cluster.of(
            levels=RACKS,
            nodes=[*nodes("n1 n2", 1, rack="r1"), node("n3", 1, rack="r2")],
            gangs=[gang("g", 3, part_size=2, part_required="rack")],
        ),
        {"g": "n1 n2 n3"},
    ),
    "a gang of one part lies within one domain": (
        Cluster.of(
            levels=RACKS,
            nodes=[*nodes("n1 n2", 1, rack="r1"), *nodes("n3 n4 n5", 1, rack="r2")],
            gangs=[gang("g", 3, part_size=4, part_required="rack")],
        ),
        {"g": "n3 n4 n5"},
    ),
    "parts of a gang in one rack do not share a node when they need not": (
        Cluster.of(
            levels=RACKS,
            nodes=[*nodes("n1 n2", 3, rack="r1"), node("n3", 2, rack="r2")],
            gangs=[gang("g", 6, part_size=3, part_required="rack")],
        ),
        {"g": "n1 n1 n1 n2 n2 n2"},
    ),
    "parts within nodes": (
        Cluster.of(
            nodes=[node("n1", 3), node("n2", 4)],
            gangs=[gang("g", 6, part_size=2, part_required="node")],
        ),
        {"g": "n2 n2 n2 n2 n1 n1"},
    ),
    "parts without a level are no condition": (
        Cluster.of(nodes=nodes("n1 n2 n3", 1), gangs=[gang("g", 3, part_size=2)]),
        {"g": "n1 n2 n3"},
    ),
    "parts over racks, all within a required block": (
        Cluster.of(
            levels=BLOCKS,
            nodes=[
                *nodes("n1 n2", 1, block="b1", rack="r1"),
                *nodes("n3 n4", 1, block="b2", rack="r2"),
                *nodes("n5 n6", 1, block="b2", rack="r3"),
            ],
            gangs=[gang("g", 4, required="block", part_size=2, part_required="rack")],
        ),
        {"g": "n3 n4 n5 n6"},
    ),
    "a preferred level that does not exist is no condition": (
        Cluster.of(nodes=nodes("n1"), gangs=[gang("g", 2, preferred="pod")]),
        {"g": "n1 n1"},
    ),
    "a required level that does not exist is said": (
        Cluster.of(
            nodes=nodes("n1"),
            gangs=[gang("g", 2, required="pod"), gang("h", 2, part_size=1, part_required="pod")],
        ),
        {"g": "UnknownTopologyLevel", "h": "UnknownTopologyLevel"},
    ),
    "without nodes nothing starts": (
        Cluster.of(levels=[Level("rack", "rack")], gangs=[gang("g", 2, required="rack")]),
        {"g": "NoMatchingNodes"},
    ),
}


@pytest.mark.parametrize(("given", "want"), CASES.values(), ids=CASES.keys())
def test_placement(given, want):
    assert want == outcome(planned(given))
