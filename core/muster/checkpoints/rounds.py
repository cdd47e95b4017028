"""What each round resumes from, and the ancestry that follows.

A bare store cannot refuse what a partitioned old attempt still writes. So every round first
creates, only if absent, one object that names the checkpoint it resumes from; a manifest counts
only if it lies on the chain of these names. What a zombie commits later is on no chain.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from muster.checkpoints.documents import parsed, rendered
from muster.checkpoints.naming import Location, Round
from muster.errors import InvalidSpec
from muster.fields import Fields

FORMAT: Final = "muster.dev/round/v1"
_FIELDS: Final = frozenset({"format", "attempt", "round", "job_uid", "created", "resumes_from"})


@dataclass(frozen=True, slots=True)
class RoundStart:
    """A round began, from this checkpoint or from nothing."""

    round: Round
    resumes_from: Location | None
    job_uid: str
    created: datetime


@dataclass(frozen=True, slots=True)
class Span:
    """The ancestors that one round wrote, up to the one its successor resumed from."""

    round: Round
    last_step: int | None
    """None: all of them."""


def raw_of_round_start(start: RoundStart) -> bytes:
    """The object as a store keeps it."""
    origin = start.resumes_from
    return rendered(
        {
            "format": FORMAT,
            "attempt": start.round.attempt,
            "round": start.round.round,
            "job_uid": start.job_uid,
            "created": start.created.astimezone(UTC).isoformat().replace("+00:00", "Z"),
            "resumes_from": origin
            and {
                "step": origin.step,
                "attempt": origin.round.attempt,
                "round": origin.round.round,
            },
        }
    )


def round_start_of(text: bytes, round: Round) -> RoundStart:  # noqa: A002 - the word of the field
    """The start of *round* as the store holds it, or `InvalidSpec` with what is wrong in it."""
    fields = Fields(parsed(text), "")
    fields.only(_FIELDS)
    fields.word("format", (FORMAT,))
    written = Round(fields.whole("attempt"), fields.whole("round"))
    if written != round:
        raise InvalidSpec("", f"speaks of {written}, not of {round}")
    origin = fields.get("resumes_from")
    return RoundStart(
        round=round,
        resumes_from=None if origin is None else _origin_of(origin, round),
        job_uid=fields.text("job_uid", default=""),
        created=fields.moment("created"),
    )


def lineage(starts: Mapping[Round, RoundStart], current: Round) -> tuple[Span, ...]:
    """The spans that *current* descends from, newest first.

    A round that has started knows its origin. One that hasn't descends from the latest before it,
    whole: whatever that one committed was fenced by nobody yet.
    """
    newest = max((known for known in starts if known <= current), default=None)
    spans: list[Span] = []
    span = None if newest is None else Span(newest, None)
    while span is not None:
        spans.append(span)
        start = starts.get(span.round)
        origin = start.resumes_from if start else None
        # Ends, since `_origin_of` takes only rounds before the one that names them.
        span = Span(origin.round, origin.step) if origin else None
    return tuple(spans)


def _origin_of(raw: object, round: Round) -> Location:  # noqa: A002 - as above
    fields = Fields(raw, "resumes_from")
    fields.only({"step", "attempt", "round"})
    origin = Round(fields.whole("attempt"), fields.whole("round"))
    if origin >= round:
        raise InvalidSpec("resumes_from", f"{origin} is not before {round}")
    return Location(fields.whole("step"), origin)
