"""What a store holds of checkpoints, in few words and without a store."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from muster.checkpoints import (
    Listing,
    Location,
    Manifest,
    Part,
    Round,
    RoundStart,
    documents_in,
    raw_of_manifest,
    raw_of_round_start,
)

CREATED = datetime(2026, 12, 1, 9, 30, tzinfo=UTC)
HASH = "0" * 64


def at(step: int, attempt: int = 1, round_: int = 0) -> Location:
    return Location(step, Round(attempt, round_))


def manifest(location: Location, *, ranks: int = 2, size: int = 10) -> Manifest:
    parts = tuple(Part(f"part-{rank}.pt", size, HASH) for rank in range(ranks))
    return Manifest(location, ranks, "uid", CREATED, parts)


def saved(location: Location, **changes: Any) -> dict[str, bytes]:
    """A whole checkpoint, as objects of a store."""
    what = manifest(location, **changes)
    parts = {location.part(part.name): b"x" * part.size for part in what.parts}
    return {**parts, location.manifest: raw_of_manifest(what)}


def began(attempt: int, round_: int = 0, *, origin: Location | None = None) -> dict[str, bytes]:
    start = RoundStart(Round(attempt, round_), origin, "uid", CREATED)
    return {start.round.document: raw_of_round_start(start)}


def listing(*objects: Mapping[str, bytes]) -> Listing:
    store = {name: body for each in objects for name, body in each.items()}
    sizes = {name: len(body) for name, body in store.items()}
    return Listing(sizes, {name: store[name] for name in documents_in(store)})


def without(objects: Mapping[str, bytes], ending: str) -> dict[str, bytes]:
    return {name: body for name, body in objects.items() if not name.endswith(ending)}


def with_body(objects: Mapping[str, bytes], ending: str, body: bytes) -> dict[str, bytes]:
    return {name: body if name.endswith(ending) else old for name, old in objects.items()}


def sound(_: Manifest) -> str | None:
    return None


rounds = st.builds(Round, st.integers(1, 4), st.integers(0, 1))
locations = st.builds(Location, st.integers(0, 30), rounds)
