"""The frozen values that a cycle sees.

Whole numbers throughout: GPUs in devices, CPU in millicores, memory in bytes. Times are seconds
since the epoch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

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


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The cluster at one moment. Only `Cluster.snapshot` makes one, and only the scheduler looks inside."""

    levels: tuple[Level, ...]
    nodes: tuple[Node, ...]
    queues: Mapping[str, Queue]
    gangs: tuple[Gang, ...]
    foreign: tuple[tuple[str, Needs], ...]
