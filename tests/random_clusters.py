"""Random clusters, for the laws of the scheduling core."""

from dataclasses import dataclass, replace

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from muster.scheduling.cluster import Cluster
from muster.scheduling.snapshot import (
    Gang,
    Needs,
    Node,
    NodeRules,
    Queue,
    Taint,
    Toleration,
    TopologyRequest,
)
from small_clusters import BLOCKS


def tried(times: int) -> settings:
    """How often; a busy machine makes no test fail, and what failed once fails again."""
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    return settings(
        max_examples=times,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=slow,
    )


MODELS = (None, "A100", "H100")
QUEUES = ("default", "org", "a", "b")
NAMES = tuple(f"n{number}" for number in range(1, 8))
TAINT = Taint("dedicated", "ml")


@dataclass(frozen=True)
class World:
    """Everything that a cluster is told."""

    nodes: tuple[Node, ...]
    queues: tuple[Queue, ...]
    gangs: tuple[Gang, ...]
    foreign: tuple[tuple[str, str, Needs], ...]

    def cluster(self) -> Cluster:
        return Cluster.of(
            levels=BLOCKS,
            nodes=self.nodes,
            queues=self.queues,
            gangs=self.gangs,
            foreign=self.foreign,
        )


amounts = st.one_of(st.none(), st.integers(0, 6))
needs = st.builds(Needs, st.integers(0, 3), st.integers(0, 2), st.integers(0, 2))


@st.composite
def nodes_named(draw: st.DrawFn, name: str) -> Node:
    labels = {
        level: draw(st.sampled_from(values))
        for level, values in (("block", ("x", "y", "")), ("rack", ("r1", "r2", "r3", "")))
    }
    return Node(
        name=name,
        gpus=draw(st.integers(0, 5)),
        labels={level: value for level, value in labels.items() if value},
        gpu_model=draw(st.sampled_from(MODELS)),
        cpu_millis=draw(amounts),
        memory_bytes=draw(amounts),
        pods=draw(amounts),
        taints=draw(st.sampled_from([(), (), (TAINT,)])),
        is_ready=draw(st.integers(0, 5)) > 0,
        is_cordoned=draw(st.integers(0, 5)) == 0,
    )


@st.composite
def queues_named(draw: st.DrawFn, name: str) -> Queue:
    limits = draw(st.dictionaries(st.sampled_from(["A100", "H100"]), st.integers(0, 8)))
    return Queue(
        name=name,
        parent="org" if name in {"a", "b"} else None,
        limit=draw(st.one_of(st.none(), st.integers(0, 12))),
        limit_by_model=limits,
        is_paused=draw(st.integers(0, 9)) == 0,
    )


levels = st.sampled_from([None, None, "block", "rack", "node"])


@st.composite
def gangs_named(draw: st.DrawFn, name: str, *, may_run: bool = True) -> Gang:
    replicas = draw(st.integers(1, 7))
    size = draw(st.sampled_from([None, None, 1, 2, 3]))
    gang = Gang(
        key=name,
        replicas=replicas,
        min_replicas=draw(st.integers(1, replicas)),
        needs=draw(needs),
        submitted=float(draw(st.integers(0, 3))),
        queue=draw(st.sampled_from(QUEUES)),
        priority=draw(st.integers(0, 2)),
        is_suspended=draw(st.integers(0, 9)) == 0,
        rules=NodeRules(
            gpu_models=draw(st.sampled_from([(), (), ("H100",), ("A100", "H100")])),
            tolerations=draw(st.sampled_from([(), (Toleration("dedicated", "Exists"),)])),
        ),
        topology=TopologyRequest(
            required=draw(levels),
            preferred=draw(levels),
            part_size=size,
            part_required=draw(st.sampled_from(["block", "rack", "node"])) if size else None,
        ),
    )
    if may_run and draw(st.integers(0, 3)) == 0:
        placement = draw(st.lists(st.sampled_from((*NAMES, "gone")), min_size=1, max_size=4))
        return replace(gang, placement=tuple(placement))
    return gang


@st.composite
def worlds(draw: st.DrawFn, *, may_run: bool = True) -> World:
    return World(
        nodes=tuple(draw(nodes_named(name)) for name in NAMES[: draw(st.integers(0, 7))]),
        queues=tuple(draw(queues_named(name)) for name in QUEUES),
        gangs=tuple(
            draw(gangs_named(f"g{number}", may_run=may_run))
            for number in range(draw(st.integers(1, 9)))
        ),
        foreign=tuple(
            (f"p{number}", draw(st.sampled_from((*NAMES, "gone"))), draw(needs))
            for number in range(draw(st.integers(0, 2)))
        ),
    )


def group(node: Node, level: str | None) -> object:
    path = (node.labels.get("block"), node.labels.get("rack"), node.name)
    return path[: {"block": 1, "rack": 2, "node": 3}.get(level or "", 0)]
