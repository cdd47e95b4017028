"""Small clusters in few words, for the tests of the scheduling core."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from muster.scheduling.cluster import Cluster
from muster.scheduling.cycle import plan_cycle
from muster.scheduling.plan import (
    Admit,
    Deed,
    Grow,
    Leave,
    Plan,
    Preempt,
    Replace,
    Requeue,
    Shrink,
    Victim,
    Withdraw,
)
from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import (
    NOWHERE,
    Gang,
    Level,
    Needs,
    Node,
    NodeRules,
    Queue,
    Run,
    TopologyRequest,
)

RACKS = (Level("rack", "rack"),)
BLOCKS = (Level("block", "block"), Level("rack", "rack"))
GIB = 1 << 30


def node(name: str, gpus: int = 8, **more: Any) -> Node:
    """A node; `rack` and `block` become labels."""
    labels = dict(more.pop("labels", {}))
    labels |= {level: more.pop(level) for level in ("block", "rack") if level in more}
    return Node(name, gpus, labels=labels, **more)


def nodes(names: str, gpus: int = 8, **more: Any) -> list[Node]:
    """Equal nodes."""
    return [node(name, gpus, **more) for name in names.split()]


BY_MODEL = [Queue("q", limit_by_model={"H100": 8, "A100": 4})]
MODELS = [*nodes("h1 h2", gpu_model="H100"), node("a1", gpu_model="A100")]


def gang(name: str, replicas: int = 1, gpus: int = 1, **more: Any) -> Gang:
    """A gang; the levels of its topology and the rules for its nodes may be given singly."""
    topology = {
        field: more.pop(field)
        for field in ("required", "preferred", "part_size", "part_required")
        if field in more
    }
    rules = {
        field: more.pop(field)
        for field in ("selector", "terms", "tolerations", "gpu_models", "capacity_types")
        if field in more
    }
    needs = {field: more.pop(field) for field in ("cpu_millis", "memory_bytes") if field in more}
    return Gang(
        key=name,
        replicas=replicas,
        min_replicas=more.pop("min_replicas", replicas),
        needs=Needs(gpus, **needs),
        submitted=more.pop("submitted", 0.0),
        rules=NodeRules(**rules),
        topology=TopologyRequest(**topology),
        **more,
    )


def holding(gang_: Gang, placement: str) -> Gang:
    """The gang, placed on these nodes."""
    return replace(gang_, placement=tuple(placement.split()))


def planned(cluster: Cluster) -> Plan:
    """What the next cycle decides."""
    return plan_cycle(cluster.snapshot(), Policy(), 0.0)


def outcome(plan: Plan) -> dict[str, str]:
    """What becomes of each gang: the nodes of its ranks, or the code it waits for."""
    starts = {admit.gang: " ".join(admit.nodes) for admit in plan.admitted}
    return starts | {wait.gang: wait.reason.value for wait in plan.waiting}


def messages(plan: Plan) -> dict[str, str]:
    """What each gang is told."""
    return {a.gang: a.why for a in plan.admitted} | {w.gang: w.message for w in plan.waiting}


def carry_out(cluster: Cluster, plan: Plan, gangs: Iterable[Gang]) -> None:
    """Place what the plan admits."""
    by_key = {gang_.key: gang_ for gang_ in gangs}
    for admit in plan.admitted:
        cluster.upsert_gang(replace(by_key[admit.gang], placement=admit.nodes))


NOW = 36_000.0
"""When the tests of decisions over time decide."""
AT_ONCE = Policy(reservation=False, leaves_at_once=True)
RESERVED = Policy(leaves_at_once=True)
NOTICE = Policy(reservation=False, notice=30.0)


def running(name: str, placement: str, gpus: int = 1, *, ago: float = 3600.0, **more: Any) -> Gang:
    """A gang that was started so many seconds before `NOW`; `saved` and `eta` are about it."""
    seats = tuple(NOWHERE if seat == "-" else seat for seat in placement.split())
    fields = ("saved", "eta", "behind", "grown_behind", "took", "lost_at")
    about: dict[str, Any] = {field: more.pop(field) for field in fields if field in more}
    replicas = more.pop("replicas", len(seats))
    started = gang(name, replicas, gpus, submitted=NOW - ago, **more)
    return replace(started, placement=seats, run=Run(NOW - ago, **about))


def decided(cluster: Cluster, policy: Policy = AT_ONCE) -> list[str]:
    """What the next cycle decides, in words, and who waits, in order."""
    plan = plan_cycle(cluster.snapshot(), policy, NOW)
    return [_in_words(deed) for deed in plan.deeds] + [f"{w.gang} waits" for w in plan.waiting]


def _in_words(deed: Deed) -> str:
    match deed:
        case Admit():
            behind = f" behind {' '.join(deed.behind)}" if deed.behind else ""
            return f"{deed.gang} starts on {' '.join(deed.nodes)}{behind}"
        case Preempt():
            victims = " and ".join(_of_victim(victim) for victim in deed.victims)
            return f"{deed.gang} takes {victims}"
        case Grow():
            return f"{deed.gang} grows on {' '.join(deed.nodes)}"
        case Replace():
            return f"{deed.gang} puts {_ranks(deed.ranks)} on {' '.join(deed.nodes)}"
        case Shrink():
            return f"{deed.gang} goes on without {_ranks(deed.ranks)}"
        case Leave():
            return f"{deed.gang} leaves with {_ranks(deed.ranks)}"
        case Requeue():
            return f"{deed.gang} is requeued"
        case Withdraw():
            return f"{deed.gang} claims no more"


def _of_victim(victim: Victim) -> str:
    ranks = "" if victim.ranks is None else f" {_ranks(victim.ranks)}"
    return f"{victim.gang}{ranks} by {victim.right.value}"


def _ranks(ranks: Iterable[int]) -> str:
    return ",".join(map(str, ranks))
