"""Amounts and placements in words, as people read them in status, events and messages."""

from collections.abc import Collection

from muster.scheduling.amounts import CPU, GPUS, MEMORY
from muster.scheduling.snapshot import Needs
from muster.scheduling.tree import ROOT, Tree


def number_of(number: int, noun: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{number} {noun}{'s' * (number != 1)}"


def gpus_of(number: int) -> str:
    """`1 GPU`, `8 GPUs`."""
    return number_of(number, "GPU")


def replicas_of(number: int, needs: Needs) -> str:
    """`3 replicas of 4 GPUs`, or without the GPUs where there are none."""
    each = f" of {gpus_of(needs.gpus)}" if needs.gpus else ""
    return number_of(number, "replica") + each


def amount_of(resource: int, amount: int) -> str:
    """An amount of one resource with its unit."""
    if resource == GPUS:
        return gpus_of(amount)
    if resource == CPU:
        return f"{amount / 1000:g} CPUs"
    if resource == MEMORY:
        return f"{amount / (1 << 30):.1f} GiB of memory"
    return number_of(amount, "pod slot")


def place_of(tree: Tree, nodes: Collection[int]) -> str:
    """`2 nodes in rack r1`, `10 nodes over 3 racks in block b1`."""
    text = number_of(len(nodes), "node")
    for number in range(tree.node_layer - 1, ROOT, -1):
        layer = tree.layers[number]
        domains = sorted({int(layer.of_node[node]) for node in nodes})
        if not all(layer.is_domain[domain] for domain in domains):
            continue
        if len(domains) == 1:
            return f"{text} in {layer.name} {layer.titles[domains[0]]}"
        text += f" over {number_of(len(domains), layer.name)}"
    return text
