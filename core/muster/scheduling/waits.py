"""The decisions to wait: each gang's reason, its place in its queue, and when it may start."""

from collections.abc import Iterator, Mapping, Sequence
from math import inf

from muster.scheduling.explain import Reason, explain
from muster.scheduling.plan import Wait, WaitReason
from muster.scheduling.reservation import UNKNOWN, Reservation, Start
from muster.scheduling.snapshot import Pending, Question
from muster.scheduling.state import Ask, State

_ABOUT_TO_LEAVE = "those who make room for it were asked to save their work and are about to leave"


def waits(
    lanes: Mapping[str, Sequence[Pending]],
    claimants: frozenset[str],
    reservations: Sequence[Reservation],
    state: State,
) -> Iterator[Wait]:
    """One for each gang in *lanes*; *claimants* are those for whom others are leaving."""
    memo = state.snapshot.memo
    last_said = memo.waits
    said = memo.waits = {}
    if state.policy.max_explained <= 0:
        return
    starts = {reservation.key: reservation.start for reservation in reservations}
    verdicts: dict[tuple[Question, int | None], Reason] = {}
    for queue in sorted(lanes):
        for place, pending in enumerate(lanes[queue], start=1):
            key, question = pending.gang.key, pending.question
            if key in claimants:
                verdict: Reason | None = (WaitReason.WAITING_FOR_PREEMPTION, _ABOUT_TO_LEAVE)
            else:
                kind = (question, state.priority_that_counts(pending.gang))
                verdict = verdicts.get(kind)
            if verdict is None:
                if len(verdicts) >= state.policy.max_explained:
                    continue
                ask = Ask(pending.gang, question, question.replicas)
                verdict = verdicts[kind] = explain(ask, state)
            start = starts.get(key, UNKNOWN)
            said[key] = _wait(last_said.get(key), key, verdict, place, start)
            yield said[key]


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
