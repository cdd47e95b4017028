"""The values of the life cycle: what it looks at, and what it says.

A `Scene` is everything that is known of one job at one moment; a `Step` is what follows from it.
Reading and doing are the operator's; deciding is in `lifecycle` and `endings`.
"""

from dataclasses import dataclass, field, replace

from muster.claims import Departure
from muster.job_status import JobStatus
from muster.losses import PodFacts
from muster.restarts import Backoff, Budgets, NodeState


@dataclass(frozen=True, slots=True)
class JobFacts:
    """What the object says besides its status, and what was met on the way."""

    is_suspended: bool = False
    deleted_at: float | None = None
    is_held: bool = False
    """Whether the recorder's finalizer is on it."""
    ttl_seconds: int | None = None
    budgets: Budgets = field(default_factory=Budgets)
    refusal: str | None = None
    """The words with which the API server refused a pod of the current attempt."""
    seen: frozenset[int] = frozenset()
    """Replicas of the current attempt that were seen in this life of the operator."""
    has_checkpoints: bool = True
    """Whether the platform knows where it saves checkpoints."""
    departures: tuple[Departure, ...] = ()
    """For whom it has to leave, as the claims of others say."""
    changed: float = 0.0
    """`Snapshot.changed` now."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The pauses and deadlines. All in seconds."""

    restart: Backoff = field(default_factory=lambda: Backoff(free=1))
    refused: Backoff = field(default_factory=Backoff)
    recorder_wait: float = 30.0
    start_deadline: float = 1800.0
    unschedulable_wait: float = 30.0
    """How long kube-scheduler may find no room on the node that was chosen for a pinned pod."""
    notice: float = 0.0
    """Between the request to save a checkpoint and the end, for a job that is suspended."""
    unreachable_wait: float = 60.0
    """How long a pod on an unreachable node may take to go before it is removed by force."""


@dataclass(frozen=True, slots=True)
class Create:
    """Create the missing pods of the placement."""


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete one pod. By force where no kubelet is left that could confirm it."""

    name: str
    uid: str
    by_force: bool = False


@dataclass(frozen=True, slots=True)
class Release:
    """Remove the recorder's finalizer: it had its time."""


@dataclass(frozen=True, slots=True)
class Expire:
    """Delete the job object."""


Deed = Create | Delete | Release | Expire


@dataclass(frozen=True, slots=True)
class Story:
    """One line for `kubectl describe`."""

    reason: str
    message: str
    is_warning: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """What comes next: write `status`, do `deeds`, tell `stories`, and look again at `wake_at`."""

    status: JobStatus
    deeds: tuple[Deed, ...] = ()
    stories: tuple[Story, ...] = ()
    wake_at: float | None = None


@dataclass(frozen=True, slots=True)
class Scene:
    """All that is known of a job now."""

    job: JobFacts
    status: JobStatus
    pods: tuple[PodFacts, ...]
    now: float
    rules: Rules = field(default_factory=Rules)

    @property
    def is_clear(self) -> bool:
        """Whether no pod is left that could still run: then none holds a GPU."""
        return all(pod.is_over for pod in self.pods)

    @property
    def forced_at(self) -> float | None:
        """When the first pod on a silent node may be removed by force."""
        dues = [due for pod in self.pods if (due := self._force_due(pod))]
        return min(dues, default=None)

    def with_status(self, status: JobStatus) -> "Scene":
        """The same scene under another status."""
        return replace(self, status=status)

    def removals(
        self, *, keep_ended: bool = False, besides: int | None = None, below: int | None = None
    ) -> tuple[Deed, ...]:
        """Deletes for all pods, once each, and by force where nobody is left to confirm it.

        Pods that have ended can be kept for their logs, and those of attempt *besides* for good,
        or with *below* its ranks below that.
        """
        deeds: list[Deed] = []
        for pod in self.pods:
            is_mine = pod.attempt == besides and (below is None or pod.replica < below)
            if is_mine or (keep_ended and pod.is_over):
                continue
            due = self._force_due(pod)
            if due is not None and self.now >= due:
                deeds.append(Delete(pod.name, pod.uid, by_force=True))
            elif pod.deleting_since is None:
                deeds.append(Delete(pod.name, pod.uid))
        return tuple(deeds)

    def _force_due(self, pod: PodFacts) -> float | None:
        """When to remove a pod by force: at once if its node is gone, later if it is silent.

        On a partitioned node the process may live on; the commit of a checkpoint refuses it.
        """
        match pod.node_state:
            case NodeState.GONE:
                return 0.0
            case NodeState.UNREACHABLE if pod.deleting_since is not None:
                return pod.deleting_since + self.rules.unreachable_wait
        return None
