"""Whose turn it is.

Within a queue: higher priority first, then by the queue's order, then who was evicted, then
earlier submission, then name. Between queues: the one with the lowest share first, decided level
by level from the root of the tree, and looked at again after every job; equal shares go by the
head jobs.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import heappop, heappush
from math import inf

from muster.scheduling.fair_share import Shares, Stake
from muster.scheduling.snapshot import Gang, Order, Pending, Question, Turn
from muster.scheduling.tree import natural
from muster.scheduling.trial import Trial

_GPU_HOUR = 3600.0
_LEVEL_BOUNDS = (1 * _GPU_HOUR, 4 * _GPU_HOUR, 16 * _GPU_HOUR, 64 * _GPU_HOUR)
"""Levels of attained service, in GPU-seconds. Few, and none above 64 GPU-hours: among long jobs,
further levels only make them swap places (on the trace muri-3 the mean completion is a quarter
longer with levels up to 1,024)."""


_ROUNDING = 1e-3
"""GPU-seconds."""


def level_of(gpu_seconds: float) -> int:
    """The level of attained service: 0 below one GPU-hour, 1 below 4, and so on, 4 the last."""
    # A rounding error must not leave a gang just below a bound that it reached.
    return sum(gpu_seconds >= bound - _ROUNDING for bound in _LEVEL_BOUNDS)


def bound_of(level: int) -> float:
    """The GPU-seconds at which a gang leaves a level of attained service; none for the last."""
    return _LEVEL_BOUNDS[level] if level < len(_LEVEL_BOUNDS) else inf


def remaining_of(gang: Gang) -> float:
    """Seconds that a pending gang still takes by its declared limit; endless without one, and for
    a gang that has run for longer than it declared.
    """
    left = inf if gang.max_run_time is None else gang.max_run_time - gang.ran
    return left if left > 0 else inf


def turn_of(gang: Gang, order: Order = Order.FIFO) -> Turn:
    """What a queue is sorted by. The key breaks ties, so that the order is always the same."""
    rank = 0.0
    if order is Order.ATTAINED_SERVICE:
        rank = float(level_of(gang.attained))
    elif order is Order.SHORTEST_REMAINING:
        rank = remaining_of(gang)
    return (
        -gang.priority,
        rank,
        not gang.is_returning,
        gang.submitted,
        gang.sequence,
        natural(gang.key),
        gang.key,
    )


class Turns:
    """The pending gangs, one after the other, in the order in which they are tried.

    The order between queues follows from what the trial holds by then; whoever asks for the next
    gang has carried out what was decided on the last one.
    """

    def __init__(
        self,
        lanes: Mapping[str, Iterable[Pending]],
        shares: Shares,
        trial: Trial,
        judged_on: Callable[[Question], str | None],
        is_refused: Callable[[Pending], bool],
    ) -> None:
        """*judged_on* gives the GPU model of a question; gangs that are refused already when their
        turn comes are passed over.
        """
        self._shares = shares
        self._trial = trial
        self._judged_on = judged_on
        self._is_refused = is_refused
        self._branches: dict[tuple[str, ...], _Branch] = {(): _Branch(())}
        self._named: dict[str, list[_Branch]] = {}
        for queue in sorted(lanes):
            self._grow(trial.snapshot.quotas.lineage(queue)).lane = iter(lanes[queue])
        trial.stirred.clear()
        for path in sorted(self._branches, key=len, reverse=True):
            branch = self._branches[path]
            self._advance(branch)
            self._enter(branch)

    def __iter__(self) -> Iterator[Pending]:
        return self

    def __next__(self) -> Pending:
        if self._trial.stirred:
            self._resort()
        branch = self._branches[()]
        while True:
            top = branch.top()
            if top is None:
                raise StopIteration
            if top is branch or top.is_leaf:
                break
            branch = top
        head = top.head
        assert head is not None
        self._advance(top)
        self._enter_upwards(top)
        return head

    def _grow(self, lineage: tuple[str, ...]) -> "_Branch":
        branch = self._branches.get(lineage)
        if branch is None:
            branch = self._branches[lineage] = _Branch(lineage)
            branch.parent = self._grow(lineage[1:])
            branch.parent.is_leaf = False
            self._named.setdefault(lineage[0], []).append(branch)
        return branch

    def _advance(self, branch: "_Branch") -> None:
        """Take the next gang of the branch's own lane that is not refused already."""
        branch.head = next(
            (pending for pending in branch.lane if not self._is_refused(pending)), None
        )

    def _enter(self, branch: "_Branch") -> None:
        """Put the branch, and its own jobs beside its children, where they stand now."""
        branch.version += 1
        if not branch.is_leaf and branch.head is not None:
            stake = Stake(branch.lineage[0], is_own=True)
            share = self._shares.stake_share(stake, self._judged_on(branch.head.question))
            branch.put(_place(share, branch.head, branch))
        head = branch.first()
        if head is not None and branch.parent is not None:
            model = self._judged_on(head.question)
            share = self._shares.share(branch.lineage[0], model)
            branch.parent.put(_place(share, head, branch))

    def _enter_upwards(self, branch: "_Branch") -> None:
        current: _Branch | None = branch
        while current is not None:
            self._enter(current)
            current = current.parent

    def _resort(self) -> None:
        lineage = self._trial.snapshot.quotas.lineage
        for queue in sorted(self._trial.stirred):
            for name in lineage(queue):
                for branch in self._named.get(name, ()):
                    self._enter(branch)
        self._trial.stirred.clear()


_Place = tuple[float, float, int, tuple[str | int, ...], str, int, int, "_Branch"]


def _place(share: float, head: Pending, branch: "_Branch") -> _Place:
    *_, submitted, sequence, name, key = head.turn
    return (share, submitted, sequence, name, key, len(branch.lineage), branch.version, branch)


class _Branch:
    """A queue with pending gangs in it or below it."""

    def __init__(self, lineage: tuple[str, ...]) -> None:
        self.lineage = lineage
        self.parent: _Branch | None = None
        self.is_leaf = True
        self.lane: Iterator[Pending] = iter(())
        self.head: Pending | None = None
        """The first of its own gangs."""
        self.version = 0
        self._heap: list[_Place] = []

    def put(self, place: _Place) -> None:
        """Let a child, or its own gangs, stand in line; where it stood before does not count."""
        heappush(self._heap, place)

    def top(self) -> "_Branch | None":
        """Who is first among its children and its own gangs; itself stands for the latter."""
        if self.is_leaf:
            return self if self.head is not None else None
        while self._heap:
            *_, version, branch = self._heap[0]
            if version == branch.version:
                return branch
            heappop(self._heap)
        return None

    def first(self) -> Pending | None:
        """The gang whose turn it is in this branch."""
        top = self.top()
        if top is None:
            return None
        return top.head if top is self or top.is_leaf else top.first()
