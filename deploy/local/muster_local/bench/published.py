"""What others have published, for the columns beside our figures.

Read on 2026-12-01 from kubernetes/kubernetes (`test/integration/scheduler_perf`), KAI-Scheduler
(`docs/scale-tests`), kubernetes-sigs/kueue (`test/performance/scheduler`), and the artifacts of
the papers on Muri and Pollux. Some are decisions in a process, some runs end to end with an API
server: each says which, and only the first kind compares directly with ours.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Row:
    """One shape of `bench schedule` in words."""

    what: str
    others: str
    most_ms: float
    """What we want to stay below, on average of a decision."""


SHAPES: Final = {
    "gangs-5000-nodes": Row(
        "3,000 gangs of 3 pods, one after the other, on 5,000 nodes with three topology levels",
        "kube-scheduler 3.7–5.7 ms a gang, in process",
        1,
    ),
    "preferred-512": Row(
        "one gang of 512 pods, preferred topology, on 512 nodes that are busy in parts",
        "KAI 48.7 s end to end",
        50,
    ),
    "verdict-4000-jobs": Row(
        "the reason why a gang of 10 × 8 GPUs waits, reclaim tried, 500 nodes, 4,000 jobs",
        "KAI 249.5 s end to end",
        250,
    ),
    "reclaim-2000-gpus": Row(
        "the plan to reclaim 2,000 GPUs for one gang from 4,000 jobs",
        "KAI 102 s end to end",
        1_000,
    ),
    "full-100k-gpus": Row(
        "one pass with all reasons: 10,000 pending jobs in 200 queues, 12,500 nodes, all full",
        "–",
        2_000,
    ),
    "next-pass-100k-gpus": Row("the next pass there after one job ended", "–", 100),
    "kueue-baseline": Row(
        "Kueue's baseline: 15,000 workloads in 5 cohorts of 6 queues, in simulated time",
        "Kueue 42.7 workloads/s end to end, quota use 56 %",
        1,
    ),
}

TRACES: Final = {
    ("muri-3", "attained-service"): "Tiresias-L 347,213 s, Themis 397,059 s (neither knows them)",
    ("muri-3", "shortest-remaining"): "SRSF 185,022 s, SRTF 193,082 s (both know them)",
    ("philly-14d", "fifo"): (
        "first come first served 33,869 s, with skipping 12,727 s, shortest first 10,094 s; "
        "gangs of 8 and more wait 17,947 s, 18,738 s, 21,599 s"
    ),
}
"""By trace and order: mean completion times on the same input and cluster, restarts free."""
