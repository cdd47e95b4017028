"""The shapes by the names that `muster bench schedule` knows, and what one of them took."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from muster_local.bench.scheduling import full_cluster, one_gang
from muster_local.bench.scheduling.kueue_baseline import kueue_baseline
from muster_local.bench.scheduling.stopwatch import Measured

SHAPES: Final[Mapping[str, Callable[[int], Measured]]] = {
    "gangs-5000-nodes": one_gang.gangs_on_5000_nodes,
    "preferred-512": one_gang.preferred_512,
    "verdict-4000-jobs": one_gang.verdict_of_4000_jobs,
    "reclaim-2000-gpus": one_gang.reclaim_of_2000_gpus,
    "full-100k-gpus": full_cluster.full,
    "next-pass-100k-gpus": full_cluster.next_pass,
    "kueue-baseline": kueue_baseline,
}
TENTH: Final = 10


def measure(shape: str, part: int) -> dict[str, Any]:
    """The figures of a shape at its full size (1) or at a tenth (10), after a warm-up."""
    SHAPES[shape](TENTH)
    return SHAPES[shape](part).figures()
