"""What is seen of a gang's pods, and which replica's end explains the end of the gang.

When one replica goes, the others fail soon after, with errors of their own (a broken collective,
a SIGTERM). The blame is taken from the evidence, not from whoever is read first.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from muster.restarts import Cause, Loss, NodeState, cause_of


@dataclass(frozen=True, slots=True)
class PodFacts:
    """One pod of a job, as far as decisions need it."""

    name: str
    uid: str
    attempt: int
    replica: int
    phase: str = "Pending"
    """`status.phase` as Kubernetes has it."""
    deleting_since: float | None = None
    loss: Loss = field(default_factory=Loss)
    """How it ended; means something only once it failed."""
    message: str = ""
    """The last words of the container that failed."""
    waiting: str = ""
    """What a container waits for, such as `ImagePullBackOff: …`."""
    is_unschedulable: bool = False
    """Whether kube-scheduler, where it binds the pod, finds that it does not fit."""
    started_at: float | None = None
    finished_at: float | None = None
    node_state: NodeState = NodeState.UP

    @property
    def is_running(self) -> bool:
        """Whether it runs now."""
        return self.phase == "Running"

    @property
    def has_succeeded(self) -> bool:
        """Whether all of its containers exited 0."""
        return self.phase == "Succeeded"

    @property
    def is_on_its_way(self) -> bool:
        """Whether it starts or runs, and nothing speaks against that."""
        is_going = self.deleting_since is not None or bool(self.loss.disruption)
        return self.phase in ("Pending", "Running") and not is_going

    @property
    def is_over(self) -> bool:
        """Whether nothing of it can run any more: then it holds no GPU either."""
        return self.phase in ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class GangLoss:
    """Why a gang cannot go on."""

    cause: Cause
    message: str


# Evidence from outside the container explains the failures inside the others.
_ORDER = (Cause.REFUSED, Cause.PREEMPTION, Cause.INFRASTRUCTURE, Cause.USER)


def first_loss(pods: Sequence[PodFacts], size: int, expected: frozenset[int]) -> GangLoss | None:
    """The loss that explains the end of a gang of *size*; `None` while nothing is lost.

    A replica in *expected* has been seen or must have been there: without a pod it is lost.
    """
    found: list[tuple[int, float, int, GangLoss]] = []
    present = {pod.replica for pod in pods}
    for replica in sorted(expected - present):
        if replica < size:
            lost = GangLoss(Cause.INFRASTRUCTURE, f"replica {replica}: its pod was deleted")
            found.append((0, 0.0, replica, lost))
    for pod in pods:
        loss = _loss_of(pod)
        if loss is None:
            continue
        cause = cause_of(loss)
        outside = 0 if _is_outside(loss) else 1
        at = pod.finished_at if pod.finished_at is not None else 0.0
        found.append((outside, at, pod.replica, GangLoss(cause, _words(pod, loss))))
    if not found:
        return None
    best = min(found, key=lambda f: (f[0], _ORDER.index(f[3].cause) if f[0] == 0 else 0, *f[1:3]))
    return best[3]


def _loss_of(pod: PodFacts) -> Loss | None:
    """The end of *pod* as a loss. A replica that exited 0 is finished, not lost."""
    if pod.has_succeeded:
        return None
    is_deleted = pod.deleting_since is not None
    if pod.phase != "Failed" and not is_deleted and pod.node_state is NodeState.UP:
        return None
    known = pod.loss
    return Loss(
        exit_code=known.exit_code,
        signal=known.signal,
        reason=known.reason,
        disruption=known.disruption,
        is_deleted=is_deleted,
        node=pod.node_state,
    )


def _is_outside(loss: Loss) -> bool:
    """Whether something outside the container ended it: its node, or whoever took the pod away."""
    return (
        loss.node is not NodeState.UP
        or bool(loss.disruption)
        or loss.is_deleted
        or (loss.exit_code is None and loss.signal is None)
    )


def _words(pod: PodFacts, loss: Loss) -> str:
    """One line: which replica, what happened, and its last words."""
    if loss.node is NodeState.GONE:
        what = "its node is gone"
    elif loss.node is NodeState.UNREACHABLE:
        what = "its node does not answer"
    elif loss.disruption:
        what = f"taken away ({loss.disruption})"
    elif loss.killed_by is not None:
        what = f"killed by signal {loss.killed_by}" + (f" ({loss.reason})" if loss.reason else "")
    elif loss.exit_code:
        what = f"exit code {loss.exit_code}"
    elif loss.is_deleted:
        what = "its pod was deleted"
    else:
        what = loss.reason or "failed"
    return f"replica {pod.replica}: {what}" + (f": {pod.message}" if pod.message else "")
