"""The decisions to wait: each gang's reason, its place in its queue, and when it may start."""

from collections.abc import Mapping, Sequence
from math import inf

from muster.scheduling.explain import Reason, explain
from muster.scheduling.outlook import Outlook
from muster.scheduling.plan import Wait, WaitReason
from muster.scheduling.reservation import UNKNOWN, Reservation, Start
from muster.scheduling.room import Said
from muster.scheduling.snapshot import Pending
from muster.scheduling.state import Ask, State

_ABOUT_TO_LEAVE = "those who make room for it were asked to save their work and are about to leave"


def waits(
    lanes: Mapping[str, Sequence[Pending]],
    claimants: frozenset[str],
    reservations: Sequence[Reservation],
    state: State,
    outlook: Outlook,
) -> list[Wait]:
    """One for each gang in *lanes*; *claimants* are those for whom others are leaving."""
    if state.policy.max_explained <= 0:
        return []
    memo = state.snapshot.memo
    last_said, memo.waits = memo.waits, {}
    starts = {reservation.key: reservation.start for reservation in reservations}
    verdicts: dict[object, Reason] = {}
    found: list[Wait] = []
    for queue in sorted(lanes):
        lane = _Lane(lanes[queue], state.lowest_priority(queue), claimants, starts)
        last = last_said.get(queue)
        reasons = _Reasons(verdicts, state, outlook)
        said = lane.said_again(last, reasons) or lane.said_anew(last, reasons)
        memo.waits[queue] = said
        found += said.waits
    return found


class _Reasons:
    """The reasons of one cycle, each worked out once."""

    def __init__(self, known: dict[object, Reason], state: State, outlook: Outlook) -> None:
        self._known = known
        self._state = state
        self._outlook = outlook

    def of(self, kind: object, pending: Pending) -> Reason | None:
        """Why a gang of some kind waits; `None` where too many reasons were worked out already."""
        found = self._known.get(kind)
        if found is None and len(self._known) < self._state.policy.max_explained:
            ask = Ask(pending.gang, pending.question, pending.question.replicas)
            found = self._known[kind] = explain(ask, self._state, self._outlook)
        return found


class _Lane:
    """The waiting gangs of one queue."""

    def __init__(
        self,
        lane: Sequence[Pending],
        lowest: float,
        claimants: frozenset[str],
        starts: Mapping[str, Start],
    ) -> None:
        """*lowest* is the lowest priority of who may be moved in the queue."""
        self._lane = lane
        self._lowest = lowest
        self._claimants = claimants
        self._starts = starts

    def said_again(self, last: Said | None, reasons: _Reasons) -> Said | None:
        """What was said last, if nothing of it has changed."""
        if last is None or last.lane is not self._lane or last.lowest != self._lowest:
            return None
        named = self._claimants | self._starts.keys() | last.named
        if any(pending.gang.key in named for pending in self._lane):
            return None
        for kind, (pending, verdict) in last.verdicts.items():
            if reasons.of(kind, pending) != verdict:
                return None
        return last

    def said_anew(self, last: Said | None, reasons: _Reasons) -> Said:
        """What each gang is told; equal values are kept, as ten thousand of them take long to make
        and to compare.
        """
        before = last.by_key() if last is not None else {}
        waits: list[Wait] = []
        mine: dict[object, tuple[Pending, Reason]] = {}
        for place, pending in enumerate(self._lane, start=1):
            gang, question = pending.gang, pending.question
            # Gangs of one question differ only where one might preempt and another might not.
            kind: object = question
            if gang.priority > self._lowest:
                kind = (question, gang.priority)
            verdict = reasons.of(kind, pending)
            if verdict is None:
                continue
            mine.setdefault(kind, (pending, verdict))
            key = gang.key
            if key in self._claimants:
                verdict = (WaitReason.WAITING_FOR_PREEMPTION, _ABOUT_TO_LEAVE)
            start = self._starts.get(key, UNKNOWN)
            waits.append(_wait(before.get(key), key, verdict, place, start))
        named = frozenset(self._claimants | self._starts.keys())
        return Said(self._lane, self._lowest, named, mine, waits)


def _wait(last: Wait | None, key: str, verdict: Reason, place: int, start: Start) -> Wait:
    """The decision to wait; the value of the last cycle where it says the same.

    To make ten thousand equal values anew takes longer than all the rest of a cycle.
    """
    reason, message = verdict
    predicted = start.at if start.at < inf else None
    if (
        last is not None
        and last.position == place
        and last.reason is reason
        and last.message == message
        and last.predicted_start == predicted
        and last.waits_for == start.waits_for
    ):
        return last
    return Wait(key, reason, message, place, predicted, start.waits_for)
