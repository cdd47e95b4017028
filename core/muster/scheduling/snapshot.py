"""The frozen values that a cycle sees.

Whole numbers throughout: GPUs in devices, CPU in millicores, memory in bytes. Times are seconds
since the epoch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from muster.scheduling.amounts import Amounts
    from muster.scheduling.fit import Columns
    from muster.scheduling.holders import Base
    from muster.scheduling.quota import Held, Quotas
    from muster.scheduling.room import Memo
    from muster.scheduling.tree import Tree

Turn = tuple[int, float, bool, float, int, tuple[str | int, ...], str]
"""What a queue is sorted by: see `order.turn_of`."""

NOWHERE = ""
"""Stands in a placement where a replica holds nothing: it is lost, or has finished."""

NODE_LEVEL = "node"
"""The implicit innermost level: the node itself."""


class Order(StrEnum):
    """Who goes first among jobs of one queue and one priority."""

    FIFO = "fifo"
    ATTAINED_SERVICE = "attained-service"
    SHORTEST_REMAINING = "shortest-remaining"


class TieBreak(StrEnum):
    """What a queue looks at where two places fit a gang equally well."""

    HEALTH = "health"
    """Nodes with fewer GPUs out of order."""
    SPOT = "spot"
    """Fewer nodes that may be taken away: a gang survives only if all of its nodes do."""


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
    is_draining: bool = False
    """Cordoned, and whoever runs there is asked to leave."""
    bad_gpus: int = 0
    """GPUs that are out of order; `gpus` does not count them."""


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
class Leaving:
    """A decision that replicas leave, while they are asked to save their work first."""

    claimant: str
    """The gang that gets what they free; empty where they leave for nobody, as on a drain."""
    ranks: tuple[int, ...] | None = None
    """Which replicas; `None` means the whole gang, which is an eviction."""
    deadline: float = 0.0
    """When they go at the latest."""


@dataclass(frozen=True, slots=True)
class Displaced:
    """What became of a gang that was evicted."""

    by: str
    """The gang that it made room for. It takes nothing back from it until something changed."""
    at: float
    """`Snapshot.changed` when it was evicted."""


@dataclass(frozen=True, slots=True)
class Took:
    """What a gang took at its reserved time."""

    queues: tuple[str, ...]
    """The queues it took it from; they reclaim nothing above their guarantee from its queue."""
    at: float
    """`Snapshot.changed` when it did."""


@dataclass(frozen=True, slots=True)
class Run:
    """What a placed gang has done since it was started last. Times are seconds since the epoch."""

    started: float
    saved: float | None = None
    """When its newest checkpoint was committed, if it has one of this run."""
    eta: float | None = None
    """When it ends by the progress that it reports; `None` where it reports none."""
    behind: tuple[str, ...] = ()
    """Gangs whose reservation it started behind: when one of them starts, it may have to leave."""
    grown_behind: tuple[str, ...] = ()
    """Gangs whose reservation its surplus was given behind."""
    took: Took | None = None
    lost_at: float | None = None
    """Since when it lacks replicas that it lost; what `Policy.replace_failed_for` counts from."""


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
    """Node of each replica, in rank order, while it holds capacity; `None` while pending.

    `NOWHERE` for a rank that is lost or has finished. A rank that has finished is in `finished`.
    """
    sequence: int = 0
    """Decides between gangs of the same submission time, before the name does."""
    is_preemptible: bool = True
    max_run_time: float | None = None
    """Declared limit of a run, in seconds; what backfill relies on."""
    held_back: str = ""
    """Why the job that it comes after has not let it go yet, in words; empty where nothing
    does."""
    attained: float = 0.0
    """GPU-seconds held in earlier runs."""
    ran: float = 0.0
    """Seconds of its work that earlier runs have done and that are not lost."""
    is_returning: bool = False
    """It was evicted, and goes to the head of its priority class."""
    displaced: Displaced | None = None
    claim: tuple[str, ...] = ()
    """Nodes that are being freed for it. While pending: of all replicas that it starts with, in
    rank order. While placed: of its lost ranks in their order, or else of further replicas.
    """
    leaving: tuple[Leaving, ...] = ()
    """Decisions that are being carried out against it."""
    run: Run | None = None
    """Where it is placed; `None` means a run that began at the epoch and is not known further."""
    finished: tuple[int, ...] = ()
    """Ranks that exited 0: they hold nothing, and are not lost."""

    @property
    def is_pending(self) -> bool:
        """Whether it waits for capacity."""
        return self.placement is None

    @property
    def lost(self) -> tuple[int, ...]:
        """Ranks that are to be replaced, in order."""
        return tuple(
            rank
            for rank, node in enumerate(self.placement or ())
            if node == NOWHERE and rank not in self.finished
        )

    @property
    def running(self) -> int:
        """How many replicas hold a node."""
        return sum(node != NOWHERE for node in self.placement or ())


@dataclass(frozen=True, slots=True)
class Queue:
    """A holder of quota."""

    name: str
    parent: str | None = None
    limit: int | None = None
    """GPUs that the queue and all below it may hold; `None` means no limit."""
    limit_by_model: Mapping[str, int] = field(default_factory=dict)
    is_paused: bool = False
    created: float = 0.0
    weight: float = 1.0
    """Its part of what nobody is guaranteed, beside its siblings; not negative."""
    guaranteed: int = 0
    """GPUs that the queue and all below it get back whenever they ask for them."""
    guaranteed_by_model: Mapping[str, int] = field(default_factory=dict)
    order: Order = Order.FIFO
    per_user_limit: int | None = None
    """GPUs that one user may hold in the queue and all below it."""
    min_run_time: float = 0.0
    """Seconds that its jobs run before anybody may evict them."""
    tie_break: tuple[TieBreak, ...] = tuple(TieBreak)
    """What decides between places that fit equally well."""


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
    user: str = ""
    """Who asks; empty where no queue limits what one user holds."""
    held_back: str = ""


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
    draining: frozenset[int]
    """The nodes that everybody is asked to leave."""
    touched: "Amounts"
    """The version at which the amounts or the health of each node last changed."""
    quotas: "Quotas"
    held: "Held"
    """What the placed gangs hold, by queue."""
    pending: Mapping[str, tuple[Pending, ...]]
    """By queue, in the order of their turns; queues in the order of their names."""
    running: tuple[Gang, ...]
    """The placed gangs, by key."""
    foreign: "Amounts"
    """What other people's pods hold on each node."""
    changed: float = 0.0
    """A clock of changes from outside (a submission, a node or queue event, a completion, the end
    of a replacement time): only greater or equal values are compared. Evictions between two of
    them must not undo each other.
    """
    usage: Mapping[str, float] = field(default_factory=dict)
    """Decayed usage in GPUs of each queue, those below it included, at `usage_at`; see
    `scheduling.usage`. Empty without a half-life."""
    usage_by_model: Mapping[tuple[str, str], float] = field(default_factory=dict)
    usage_at: float = 0.0
    base: "Base | None" = None
    """The placed gangs as a cycle sees them, shared with the cluster while that stays the same."""

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
