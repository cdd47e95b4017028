"""The decisions to wait: each gang's reason, its place in its queue, and when it may start."""

from collections.abc import Iterator, Mapping, Sequence
from math import inf

from muster.scheduling.explain import Reason, explain
from muster.scheduling.plan import Wait, WaitReason
from muster.scheduling.reservation import Reservation
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
    starts = {reservation.key: reservation.start for reservation in reservations}
    verdicts: dict[Question, Reason] = {}
    for queue in sorted(lanes):
        for place, pending in enumerate(lanes[queue], start=1):
            key, question = pending.gang.key, pending.question
            if key in claimants:
                verdict: Reason | None = (WaitReason.WAITING_FOR_PREEMPTION, _ABOUT_TO_LEAVE)
            else:
                verdict = verdicts.get(question)
            if verdict is None:
                if len(verdicts) >= state.policy.max_explained:
                    continue
                ask = Ask(pending.gang, question, question.replicas)
                verdict = verdicts[question] = explain(ask, state)
            start = starts.get(key)
            predicted = start.at if start is not None and start.at < inf else None
            waits_for = start.waits_for if start is not None else ""
            said[key] = _wait(last_said.get(key), Wait(key, *verdict, place, predicted, waits_for))
            yield said[key]


def _wait(last: Wait | None, wait: Wait) -> Wait:
    """The value of the last cycle where it says the same: to keep ten thousand equal values is
    cheaper for everybody who compares them.
    """
    return last if last == wait else wait
