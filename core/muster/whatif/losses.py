"""What the work that a victim loses has cost, by the dated prices of the nodes that it was on."""

from collections.abc import Sequence
from typing import Final

from muster.cost import Holding, PriceRow, bill
from muster.scheduling.cluster import Objects
from muster.scheduling.plan import Victim
from muster.scheduling.snapshot import NOWHERE

_ON_DEMAND: Final = "on-demand"
"""What a node is that says nothing of its capacity, as in a bill."""


def cost_of_loss(
    victim: Victim, objects: Objects, prices: Sequence[PriceRow], now: float
) -> int | None:
    """Micro-dollars for the GPU time up to *now* that would have to be spent again; `None` where
    some of it has no price.
    """
    gang = next((gang for gang in objects.gangs if gang.key == victim.gang), None)
    if gang is None or not victim.lost_gpu_seconds or not gang.running * gang.needs.gpus:
        return 0
    nodes = {node.name: node for node in objects.nodes}
    now_ms = round(now * 1000)
    lost_ms = round(victim.lost_gpu_seconds * 1000 / (gang.running * gang.needs.gpus))
    holdings = []
    for rank, name in enumerate(gang.placement or ()):
        if name != NOWHERE:
            node = nodes.get(name)
            holdings.append(
                Holding(
                    attempt=1,
                    replica=rank,
                    gpus=gang.needs.gpus,
                    start_ms=now_ms - lost_ms,
                    end_ms=now_ms,
                    gpu_model=node.gpu_model if node else None,
                    capacity_type=(node.capacity_type if node else None) or _ON_DEMAND,
                )
            )
    return bill(holdings, (), prices, now_ms=now_ms).micro_usd
