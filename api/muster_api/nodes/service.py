"""Nodes as the operator sees them."""

from typing import Any

from muster.scheduling.cluster import Cluster
from muster.whatif.views import nodes_view
from muster_api.auth import Gate, Identity
from muster_api.explanations.service import names_for
from muster_api.nodes.schemas import NodeList
from muster_api.scheduler import Thinker


async def listed(thinker: Thinker, gate: Gate, caller: Identity) -> NodeList:
    """All nodes."""
    inputs = await thinker.inputs()
    shown = await names_for(gate, caller, inputs.objects)

    def think() -> dict[str, Any]:
        snapshot = Cluster.restored(inputs.objects).snapshot()
        return nodes_view(snapshot, inputs.objects, shown)

    return NodeList(**await thinker.work(think, is_quick=True))
