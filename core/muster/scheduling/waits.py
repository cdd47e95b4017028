"""The decisions to wait: each gang's reason, its place in its queue, and when it may start."""

from collections.abc import Mapping, Sequence
from math import inf

from muster.scheduling.explain import Reason, explain
from muster.scheduling.plan import Wait, WaitReason
from muster.scheduling.reservation import UNKNOWN, Reservation, Start
from muster.scheduling.snapshot import Pending
from muster.scheduling.state import Ask, State

_ABOUT_TO_LEAVE = "those who make room for it were asked to save their work and are about to leave"


def waits(
    lanes: Mapping[str, Sequence[Pending]],
    claimants: frozenset[str],
    reservations: Sequence[Reservation],
    state: State,
) -> list[Wait]:
    """One for each gang in *lanes*; *claimants* are those for whom others are leaving."""
    memo = state.snapshot.memo
    last_said = memo.waits
    said = memo.waits = {}
    if state.policy.max_explained <= 0:
        return []
    found: list[Wait] = []
    starts = {reservation.key: reservation.start for reservation in reservations}
    verdicts: dict[object, Reason] = {}
    for queue in sorted(lanes):
        lowest = state.lowest_priority(queue)
        for place, pending in enumerate(lanes[queue], start=1):
            gang, question = pending.gang, pending.question
            # Gangs of one question differ only where one might preempt and another might not.
            kind = question if gang.priority <= lowest else (question, gang.priority)
            verdict = verdicts.get(kind)
            if verdict is None:
                if len(verdicts) >= state.policy.max_explained:
                    continue
                verdict = verdicts[kind] = explain(Ask(gang, question, question.replicas), state)
            key = gang.key
            if key in claimants:
                verdict = (WaitReason.WAITING_FOR_PREEMPTION, _ABOUT_TO_LEAVE)
            wait = _wait(last_said.get(key), key, verdict, place, starts.get(key, UNKNOWN))
            said[key] = wait
            found.append(wait)
    return found


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
