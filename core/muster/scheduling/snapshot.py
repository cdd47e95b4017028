"""The frozen values that a cycle sees.

Whole numbers throughout: GPUs in devices, CPU in millicores, memory in bytes. Times are seconds
since the epoch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from muster.scheduling.amounts import Amounts
    from muster.scheduling.fit import Columns
    from muster.scheduling.quota import Held, Quotas
    from muster.scheduling.room import Memo
    from muster.scheduling.tree import Tree

Turn = tuple[int, float, tuple[str | int, ...], str]
"""What a queue is sorted by: priority, submission, name with its numbers as numbers, key."""

NODE_LEVEL = "node"
"""The implicit innermost level: the node itself."""


@dataclass(frozen=True, slots=True)
class Level:
    """One level of the topology: a node label whose equal values form a domain."""

    name: str
    label: str
    is_switch: bool = False


@dataclass(frozen=True, slots=True)
class Taint:
    """What keeps pods off a node unless they tolerate it. `effect` is as in Kubernetes."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


@dataclass(frozen=True, slots=True)
class Toleration:
    """What a pod puts up with. An empty key with `Exists` tolerates all, an empty effect any."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One expression of a node selector: `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt` or `Lt`."""

    key: str
    operator: str
    values: tuple[str, ...] = ()
    is_field: bool = False
    """Matches `metadata.name` rather than a label."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What one pod takes from its node, besides one pod slot."""

    gpus: int = 0
    cpu_millis: int = 0
    memory_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Node:
    """A node as the scheduler sees it. `None` as an amount means that it does not bind."""

    name: str
    gpus: int
    """Healthy, allocatable GPUs."""
    labels: Mapping[str, str] = field(default_factory=dict)
    gpu_model: str | None = None
    capacity_type: str | None = None
    """`spot`, `on-demand`, or unknown."""
    cpu_millis: int | None = None
    memory_bytes: int | None = None
    pods: int | None = None
    taints: tuple[Taint, ...] = ()
    is_ready: bool = True
    is_cordoned: bool = False


@dataclass(frozen=True, slots=True)
class NodeRules:
    """Where a pod may run at all: every selector pair, and all of the requirements of one term."""

    selector: tuple[tuple[str, str], ...] = ()
    """Sorted (label, value) pairs."""
    terms: tuple[tuple[Requirement, ...], ...] = ()
    """Required node affinity: any one term must match; no terms means no condition."""
    tolerations: tuple[Toleration, ...] = ()
    gpu_models: tuple[str, ...] = ()
    """Allowed models; empty means any."""
    capacity_types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TopologyRequest:
    """How close a gang wants to sit. Levels by name, `node` among them."""

    required: str | None = None
    preferred: str | None = None
    part_size: int | None = None
    part_required: str | None = None


@dataclass(frozen=True, slots=True)
class Gang:
    """Pods that start together or not at all."""

    key: str
    """`namespace/name`: unique, and the last criterion of every order."""
    replicas: int
    min_replicas: int
    needs: Needs
    submitted: float
    queue: str = "default"
    priority: int = 0
    is_suspended: bool = False
    rules: NodeRules = NodeRules()
    topology: TopologyRequest = TopologyRequest()
    user: str = ""
    placement: tuple[str, ...] | None = None
    """Node of each replica, in rank order, while it holds capacity; `None` while pending."""

    @property
    def is_pending(self) -> bool:
        """Whether it waits for capacity."""
        return self.placement is None


@dataclass(frozen=True, slots=True)
class Queue:
    """A holder of quota. Guarantee, weight and shares come with the fair-share policy."""

    name: str
    parent: str | None = None
    limit: int | None = None
    """GPUs that the queue and all below it may hold; `None` means no limit."""
    limit_by_model: Mapping[str, int] = field(default_factory=dict)
    is_paused: bool = False
    created: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """What a pending gang asks of the scheduler.

    Equal questions have equal answers, so the cluster keeps one object for all gangs that ask the
    same, and a cycle works each out once.
    """

    queue: str
    needs: Needs
    rules: NodeRules
    topology: TopologyRequest
    replicas: int
    """What must start together: the gang's minimum."""
    is_suspended: bool = False


class Pending(NamedTuple):
    """A gang in its queue. It sorts by its turn, which is unique."""

    turn: Turn
    gang: Gang
    question: Question


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """The cluster at one moment; `Cluster.snapshot` makes it, and nothing changes it.

    Arrays are indexed by node in the order of `tree` and cannot be written to. `tree`, `columns`
    and `memo` belong to the nodes and their labels and are shared by all snapshots in which these
    are the same; `memo` is the one thing in here that changes, and what it holds can be worked out
    again from the rest.
    """

    version: int
    """Grows with every change of the cluster that a cycle could notice."""
    nodes: tuple[Node, ...]
    tree: "Tree"
    columns: "Columns"
    memo: "Memo"
    capacity: "Amounts"
    """What the nodes have, a row for each of `RESOURCES`, as if nothing ran there."""
    capacity_version: int
    """Grows when `capacity` changes."""
    free: "Amounts"
    """What nobody holds; negative where a node shrank below what is held there."""
    is_up: "npt.NDArray[np.bool_]"
    """Ready and not cordoned."""
    touched: "Amounts"
    """The version at which the amounts or the health of each node last changed."""
    quotas: "Quotas"
    held: "Held"
    """What the placed gangs hold, by queue."""
    pending: Mapping[str, tuple[Pending, ...]]
    """By queue, in the order of their turns; queues in the order of their names."""
    running: tuple[Gang, ...]
    """The placed gangs, by key."""

    def facts(self) -> Mapping[str, object]:
        """The same as plain values, without version numbers, to compare and to show."""
        names = [node.name for node in self.nodes]
        return {
            "nodes": self.nodes,
            "layers": [
                (layer.name, layer.titles, layer.starts.tolist()) for layer in self.tree.layers
            ],
            "capacity": dict(zip(names, self.capacity.T.tolist(), strict=True)),
            "free": dict(zip(names, self.free.T.tolist(), strict=True)),
            "is_up": dict(zip(names, self.is_up.tolist(), strict=True)),
            "queues": dict(sorted(self.quotas.queues.items())),
            "held": dict(sorted(self.held.total.items())),
            "held by model": dict(sorted(self.held.by_model.items())),
            "pending": {
                queue: [pending.gang for pending in lane] for queue, lane in self.pending.items()
            },
            "running": self.running,
        }
