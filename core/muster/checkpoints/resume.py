"""Which checkpoint a round resumes from.

The newest one on its ancestry that reads back as its manifest says. Each one that is passed over
is named with its reason; where some were committed and none is left, that is said and never taken
for a fresh start (case T11).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from muster.checkpoints.listing import Listing
from muster.checkpoints.manifest import Manifest
from muster.checkpoints.naming import Location, Round
from muster.checkpoints.rounds import Span, lineage


@dataclass(frozen=True, slots=True)
class Skipped:
    """A checkpoint, or what looks like one, that was not resumed from."""

    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Choice:
    """What to resume from."""

    manifest: Manifest | None
    skipped: tuple[Skipped, ...]
    """What was passed over on the way, newest first."""
    is_exhausted: bool = False
    """Checkpoints were committed and none can be used: a person must look, since starting anew
    would throw their work away."""


def newest_verified(
    listing: Listing,
    current: Round,
    fault: Callable[[Manifest], str | None],
    *,
    job_uid: str = "",
) -> Choice:
    """The newest checkpoint that *current* may resume from.

    *fault* reads a checkpoint back and gives what is wrong with it, None where nothing is. It is
    asked only until one is sound, since reading costs as much as the checkpoint is large.
    """
    starts, unreadable = listing.rounds()
    committed = listing.committed()
    passed: list[Skipped] = [
        Skipped(known.document, f"this round's start cannot be read ({problem})")
        for known, problem in sorted(unreadable.items(), reverse=True)
    ]
    spans = lineage(starts, current)
    is_any = _is_cut_off(unreadable, committed)
    for location in _in_order(committed, spans):
        is_any = True
        manifest = listing.manifest(location, job_uid)
        problem = manifest if isinstance(manifest, str) else fault(manifest)
        if problem is None and isinstance(manifest, Manifest):
            return Choice(manifest, (*passed, *_aside(listing, spans, after=location)))
        passed.append(Skipped(location.directory, str(problem)))
    return Choice(None, (*passed, *_aside(listing, spans, after=None)), is_exhausted=is_any)


def _in_order(committed: tuple[Location, ...], spans: tuple[Span, ...]) -> Iterator[Location]:
    for span in spans:
        inside = (location for location in committed if _holds(span, location))
        yield from sorted(inside, reverse=True)


def _holds(span: Span, location: Location) -> bool:
    is_early = span.last_step is None or location.step <= span.last_step
    return location.round == span.round and is_early


def _aside(
    listing: Listing, spans: tuple[Span, ...], *, after: Location | None
) -> Iterator[Skipped]:
    """What never came into question, as far as a person would take it for newer than *after*."""
    step = -1 if after is None else after.step
    for location in reversed(listing.unsettled()):
        if location.step > step:
            yield Skipped(location.directory, "it has no manifest: the save never ended")
    for location in reversed(listing.committed()):
        if location.step > step and not any(_holds(span, location) for span in spans):
            yield Skipped(
                location.directory, f"no later round descends from it ({location.round})"
            )


def _is_cut_off(unreadable: Mapping[Round, str], committed: tuple[Location, ...]) -> bool:
    """Whether checkpoints lie in a round whose origin nobody can tell any more."""
    return any(at.round in unreadable for at in committed)
