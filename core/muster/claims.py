"""Who leaves for whom: the values that an eviction consists of while it is carried out.

An eviction touches many objects, and the API server writes one at a time. So the decision is one
guarded write: the claim in the claimant's status, which names all of its victims by uid and
attempt. It is written before anybody is asked, and what a victim has to do follows from the claims
that name it, each time anew, never from a note of its own. An operator may die between any two
writes, and the next one finds one of these:

- no claim: nobody was asked, and the decision is taken again;
- a claim, and victims that show nothing of it, or were asked, or have ended: each is told what it
  has to do, and one whose named attempt is over is meant no longer. For surplus, which leaves the
  attempt alive, the victim's placement keeps the ids of the asks that it has met;
- a claim of which all have left: the claimant starts, in the write that removes the claim;
- no claim any more: whoever was asked and is still there stays, whether the claimant started,
  gave up, was suspended or is gone.

Why a victim left (`displaced`) is in the write that decides its end, which is why that survives
its claimant's claim.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from muster.moments import seconds_of, text_of

CHECKPOINT: Final = "checkpoint"
"""The kind of directive that asks for a checkpoint at the next step."""
_MAX_WHY: Final = 1024


@dataclass(frozen=True, slots=True)
class Asked:
    """One job that has to leave, or to give up surplus."""

    job: str
    """`namespace/name`."""
    uid: str
    attempt: int
    """A later attempt is not meant."""
    ranks: tuple[int, ...] | None = None
    """Surplus replicas; `None` means the whole gang."""
    right: str = ""
    """Why it may be taken, as a word."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One decision: who leaves, and when at the latest."""

    id: str
    at: float
    deadline: float
    victims: tuple[Asked, ...]


@dataclass(frozen=True, slots=True)
class Claim:
    """What is being freed for a job."""

    nodes: tuple[str, ...]
    """Where it will go: see `Gang.claim`."""
    why: str = ""
    asks: tuple[Ask, ...] = ()
    took: tuple[str, ...] = ()
    """Queues from which it takes at its reserved time."""

    def victims(self) -> Iterator[tuple[Ask, Asked]]:
        """Everybody who was asked, with the decision."""
        return ((ask, asked) for ask in self.asks for asked in ask.victims)

    def extended(self, more: "Claim") -> "Claim":
        """This claim after a further decision: its place holds, and all that were asked."""
        took = tuple(sorted({*self.took, *more.took}))
        return replace(more, asks=(*self.asks, *more.asks), took=took)


@dataclass(frozen=True, slots=True)
class Departure:
    """That a job has to leave, as it follows from one claim."""

    id: str
    """Of the decision."""
    claimant: str
    ranks: tuple[int, ...] | None
    deadline: float


@dataclass(frozen=True, slots=True)
class Directive:
    """What the ranks of a job are asked for."""

    id: str
    kind: str
    deadline: float
    asked_at: float
    """A checkpoint that was verified later answers it."""


def claim_of(raw: Mapping[str, Any] | None) -> Claim | None:
    """The claim in a status."""
    if not raw:
        return None
    return Claim(
        nodes=tuple(raw.get("nodes") or ()),
        why=raw.get("why", ""),
        asks=tuple(_ask_of(ask) for ask in raw.get("asks") or ()),
        took=tuple(raw.get("took") or ()),
    )


def raw_of_claim(claim: Claim | None) -> dict[str, Any] | None:
    """The same as it is written."""
    if claim is None:
        return None
    return {
        "nodes": list(claim.nodes),
        "why": claim.why[:_MAX_WHY],
        "asks": [_raw_of_ask(ask) for ask in claim.asks],
        "took": list(claim.took),
    }


def directive_of(raw: Mapping[str, Any] | None) -> Directive | None:
    """The directive in a status."""
    if not raw or not raw.get("id"):
        return None
    return Directive(
        id=raw["id"],
        kind=raw.get("kind", ""),
        deadline=seconds_of(raw.get("deadline")) or 0.0,
        asked_at=seconds_of(raw.get("askedAt")) or 0.0,
    )


def raw_of_directive(directive: Directive | None) -> dict[str, Any] | None:
    """The same as it is written."""
    if directive is None:
        return None
    return {
        "id": directive.id,
        "kind": directive.kind,
        "deadline": text_of(directive.deadline),
        "askedAt": text_of(directive.asked_at),
    }


def _ask_of(raw: Mapping[str, Any]) -> Ask:
    return Ask(
        id=raw.get("id", ""),
        at=seconds_of(raw.get("at")) or 0.0,
        deadline=seconds_of(raw.get("deadline")) or 0.0,
        victims=tuple(
            Asked(
                job=each.get("job", ""),
                uid=each.get("uid", ""),
                attempt=each.get("attempt", 0),
                ranks=tuple(each["ranks"]) if "ranks" in each else None,
                right=each.get("right", ""),
            )
            for each in raw.get("victims") or ()
        ),
    )


def _raw_of_ask(ask: Ask) -> dict[str, Any]:
    return {
        "id": ask.id,
        "at": text_of(ask.at),
        "deadline": text_of(ask.deadline),
        "victims": [_raw_of_asked(each) for each in ask.victims],
    }


def _raw_of_asked(asked: Asked) -> dict[str, Any]:
    raw: dict[str, Any] = {
        "job": asked.job,
        "uid": asked.uid,
        "attempt": asked.attempt,
        "right": asked.right,
    }
    return raw if asked.ranks is None else {**raw, "ranks": list(asked.ranks)}
