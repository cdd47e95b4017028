"""Which checkpoints exist, and which one a round resumes from (execution-cases.md, part A)."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.checkpoints import (
    Listing,
    Location,
    Manifest,
    Part,
    Round,
    RoundStart,
    documents_in,
    location_of,
    location_of_part,
    manifest_of,
    newest_round,
    newest_verified,
    rank_of,
    raw_of_manifest,
    raw_of_round_start,
    round_start_of,
)
from muster.errors import InvalidSpec

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


def bad(*steps: int) -> Callable[[Manifest], str | None]:
    return lambda found: "part-0.pt has another hash" if found.step in steps else None


NAMES: dict[str, Location | None] = {
    "step-100/attempt-1-round-0/manifest.json": at(100),
    "step-0/attempt-12-round-3/manifest.json": at(0, 12, 3),
    "step-100.backup/attempt-1-round-0/manifest.json": None,
    "foo-step-200/attempt-1-round-0/manifest.json": None,
    "step-0x9/attempt-1-round-0/manifest.json": None,
    "step-1e3/attempt-1-round-0/manifest.json": None,
    "step-0100/attempt-1-round-0/manifest.json": None,
    "step-٣/attempt-1-round-0/manifest.json": None,
    "step-100/attempt-1-round-0/manifest.json\n": None,
    "step-100/attempt-1-round-0/manifest.json.tmp": None,
    "step-100/attempt-1/manifest.json": None,
    "step-100/manifest.json": None,
    "old/step-100/attempt-1-round-0/manifest.json": None,
    "step-300": None,
}


@pytest.mark.parametrize("name", NAMES)
def test_only_an_exact_name_is_a_checkpoint(name: str) -> None:
    assert NAMES[name] == location_of(name)


def test_what_only_resembles_a_checkpoint_is_never_seen() -> None:
    # Case T6, with whole checkpoints under the other names.
    backup = {f"step-100.backup/{n[9:]}": b for n, b in saved(at(100)).items()}
    foreign = {f"foo-{n}": b for n, b in saved(at(200)).items()}
    others = {"step-0x9/a": b"", "step-1e3/a": b"", "step-300": b"a file"}
    store = listing(began(1), saved(at(100)), backup, foreign, others)

    choice = newest_verified(store, Round(2, 0), sound, job_uid="uid")

    assert (at(100),) == store.committed()
    assert () == store.unsettled()
    assert (manifest(at(100)), ()) == (choice.manifest, choice.skipped)


PARTS: dict[str, tuple[Location | None, int | None]] = {
    "part-0.pt": (at(7), 0),
    "part-12.npz": (at(7), 12),
    "replicated.pt": (at(7), None),
    "part-01.pt": (at(7), None),
    ".part-0.pt.tmp": (None, None),
    "more/part-0.pt": (None, None),
    "Part-0.pt": (None, None),
}


@pytest.mark.parametrize("name", PARTS)
def test_a_part_lies_right_in_its_round_s_directory(name: str) -> None:
    directory = f"{at(7).directory}/{name}"

    assert PARTS[name] == (location_of_part(directory), rank_of(name))


CHOICES: dict[
    str, tuple[Listing, Callable[[Manifest], str | None], Location | None, list[str]]
] = {
    "an empty store is a fresh start": (listing(), sound, None, []),
    "the newest committed one of the round before": (
        listing(began(1), saved(at(100)), saved(at(200))),
        sound,
        at(200),
        [],
    ),
    "T1: parts without a manifest are passed over": (
        listing(began(1), saved(at(100)), without(saved(at(200)), "manifest.json")),
        sound,
        at(100),
        ["step-200/attempt-1-round-0: it has no manifest: the save never ended"],
    ),
    "T3: two attempts at one step stay apart": (
        listing(
            began(1),
            without(saved(at(100)), "manifest.json"),
            began(2),
            saved(at(100, 2)),
        ),
        sound,
        at(100, 2),
        [],
    ),
    "T11a: no manifest": (
        listing(began(1), saved(at(90)), without(saved(at(100)), "manifest.json")),
        sound,
        at(90),
        ["step-100/attempt-1-round-0: it has no manifest: the save never ended"],
    ),
    "T11b: a part of no bytes": (
        listing(began(1), saved(at(90)), with_body(saved(at(100)), "part-1.pt", b"")),
        sound,
        at(90),
        ["step-100/attempt-1-round-0: part-1.pt has 0 bytes instead of 10"],
    ),
    "T11c: a part with another hash": (
        listing(began(1), saved(at(90)), saved(at(100))),
        bad(100),
        at(90),
        ["step-100/attempt-1-round-0: part-0.pt has another hash"],
    ),
    "T11d: a part that the manifest names is missing": (
        listing(began(1), saved(at(90)), without(saved(at(100)), "part-1.pt")),
        sound,
        at(90),
        ["step-100/attempt-1-round-0: part-1.pt is missing"],
    ),
    "a manifest that breaks off is passed over": (
        listing(began(1), saved(at(90)), with_body(saved(at(100)), "manifest.json", b'{"id"')),
        sound,
        at(90),
        [
            "step-100/attempt-1-round-0: its manifest cannot be read: is not JSON: "
            "Expecting ':' delimiter: line 1 column 6 (char 5)"
        ],
    ),
    "a zombie's save after its successor began does not count": (
        # Attempt 2 resumed from 100; attempt 1, cut off, went on to 300.
        listing(
            began(1), saved(at(100)), saved(at(300)), began(2, origin=at(100)), saved(at(200, 2))
        ),
        sound,
        at(200, 2),
        ["step-300/attempt-1-round-0: no later round descends from it (attempt 1, round 0)"],
    ),
    "nor where the successor has saved nothing yet": (
        listing(began(1), saved(at(100)), saved(at(300)), began(2, origin=at(100))),
        sound,
        at(100),
        ["step-300/attempt-1-round-0: no later round descends from it (attempt 1, round 0)"],
    ),
    "a broken checkpoint falls back along the ancestry": (
        listing(
            began(1),
            saved(at(50)),
            saved(at(100)),
            began(2, origin=at(100)),
            saved(at(200, 2)),
        ),
        bad(100, 200),
        at(50),
        [
            "step-200/attempt-2-round-0: part-0.pt has another hash",
            "step-100/attempt-1-round-0: part-0.pt has another hash",
        ],
    ),
    "rounds of one attempt fence each other too": (
        listing(began(1), saved(at(100)), began(1, 1, origin=at(100)), saved(at(900))),
        sound,
        at(100),
        ["step-900/attempt-1-round-0: no later round descends from it (attempt 1, round 0)"],
    ),
    "a round that started anew is not joined to older work": (
        listing(began(1), saved(at(100)), began(2), saved(at(10, 2))),
        sound,
        at(10, 2),
        ["step-100/attempt-1-round-0: no later round descends from it (attempt 1, round 0)"],
    ),
    "a round whose start cannot be read is said": (
        listing(began(1), saved(at(100)), {Round(2, 0).document: b"{}"}),
        sound,
        at(100),
        [
            "rounds/attempt-2-round-0.json: this round's start cannot be read "
            "(rounds/attempt-2-round-0.json: format: must be muster.dev/round/v1, is missing)"
        ],
    ),
}


@pytest.mark.parametrize("claim", CHOICES)
def test_a_round_resumes_from(claim: str) -> None:
    store, fault, want, skipped = CHOICES[claim]

    choice = newest_verified(store, Round(9, 0), fault, job_uid="uid")

    assert (want, skipped) == (
        choice.manifest and choice.manifest.location,
        [str(each) for each in choice.skipped],
    )
    assert not choice.is_exhausted


EXHAUSTED: dict[str, tuple[Listing, Callable[[Manifest], str | None]]] = {
    "every one is broken": (listing(began(1), saved(at(100)), saved(at(200))), bad(100, 200)),
    "the only one belongs to another job": (
        listing(
            began(1),
            {
                **saved(at(100)),
                at(100).manifest: raw_of_manifest(replace(manifest(at(100)), job_uid="else")),
            },
        ),
        sound,
    ),
    "nobody can tell where the round with the checkpoints came from": (
        listing({Round(1, 0).document: b""}, saved(at(100))),
        sound,
    ),
}


@pytest.mark.parametrize("claim", EXHAUSTED)
def test_work_that_cannot_be_used_is_never_taken_for_a_fresh_start(claim: str) -> None:
    store, fault = EXHAUSTED[claim]

    choice = newest_verified(store, Round(9, 0), fault, job_uid="uid")

    assert (None, True) == (choice.manifest, choice.is_exhausted)
    assert choice.skipped


def test_a_process_that_restarts_within_its_round_finds_its_own_checkpoints() -> None:
    store = listing(began(1), saved(at(100)), began(2, origin=at(100)), saved(at(200, 2)))

    choice = newest_verified(store, Round(2, 0), sound, job_uid="uid")

    assert choice.manifest is not None
    assert at(200, 2) == choice.manifest.location


def test_hashes_are_read_only_until_one_checkpoint_is_sound() -> None:
    asked: list[int] = []
    store = listing(began(1), *(saved(at(step)) for step in (100, 200, 300)))

    newest_verified(store, Round(2, 0), lambda m: asked.append(m.step), job_uid="uid")

    assert [300] == asked


def test_a_round_learns_that_a_later_one_has_begun() -> None:
    names = [*began(1), *began(2), *began(2, 1), *saved(at(5, 7)), "rounds/attempt-9.json"]

    assert Round(2, 1) == newest_round(names)
    assert newest_round([]) is None


RAW = json.loads(raw_of_manifest(manifest(at(100))))
PART = RAW["parts"][0]

MANIFESTS_REFUSED: dict[str, tuple[object, str]] = {
    "a list": ([], "must be an object, is []"),
    "another format": (
        {**RAW, "format": "v2"},
        "format: must be muster.dev/checkpoint/v1, is 'v2'",
    ),
    "a field that nobody knows": ({**RAW, "sparse": 1}, "sparse: is not a field of this object"),
    "another id": ({**RAW, "id": "step-1"}, "id: must be step-100, is 'step-1'"),
    "another attempt": (
        {**RAW, "attempt": 3},
        "speaks of step-100/attempt-3-round-0, not of step-100/attempt-1-round-0",
    ),
    "a rank without a part": (
        {**RAW, "world_size": 3},
        "parts: must hold a part of each of 3 ranks and no others",
    ),
    "a part named twice": ({**RAW, "parts": [PART, PART]}, "parts: names a part twice"),
    "a part outside the checkpoint": (
        {**RAW, "parts": [{**PART, "name": "../part-0.pt"}]},
        "parts[0].name: is no name of a part: '../part-0.pt'",
    ),
    "a manifest as its own part": (
        {**RAW, "parts": [{**PART, "name": "manifest.json"}]},
        "parts[0].name: is no name of a part: 'manifest.json'",
    ),
    "a hash that is none": (
        {**RAW, "parts": [{**PART, "sha256": "G" * 64}]},
        "parts[0].sha256: must be 64 hexadecimal digits",
    ),
    "a negative size": (
        {**RAW, "parts": [{**PART, "size": -1}]},
        "parts[0].size: must be between 0 and 9007199254740991, is -1",
    ),
}


@pytest.mark.parametrize("claim", MANIFESTS_REFUSED)
def test_a_manifest_is_read_exactly_or_not_at_all(claim: str) -> None:
    raw, want = MANIFESTS_REFUSED[claim]

    with pytest.raises(InvalidSpec) as refused:
        manifest_of(json.dumps(raw).encode(), at(100))

    assert want == str(refused.value)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        (b'{"step": 1, "step": 2}', "is not JSON: a key is there twice"),
        (b'{"step": NaN}', "is not JSON: NaN is no number"),
        (b"\xff", "is not JSON: 'utf-8' codec can't decode byte 0xff in position 0"),
        (b"[" * 100_000, "is not JSON: maximum recursion depth exceeded"),
    ],
)
def test_a_manifest_that_is_no_json_says_so(text: bytes, want: str) -> None:
    with pytest.raises(InvalidSpec) as refused:
        manifest_of(text, at(100))

    assert str(refused.value).startswith(want)


STARTS_REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a round that descends from itself": (
        {"resumes_from": {"step": 1, "attempt": 2, "round": 1}},
        "resumes_from: attempt 2, round 1 is not before attempt 2, round 1",
    ),
    "a round under another's name": (
        {"attempt": 7},
        "speaks of attempt 7, round 1, not of attempt 2, round 1",
    ),
    "an origin that is a text": (
        {"resumes_from": "step-1"},
        "resumes_from: must be an object, is 'step-1'",
    ),
}


@pytest.mark.parametrize("claim", STARTS_REFUSED)
def test_a_round_s_start_is_read_exactly_or_not_at_all(claim: str) -> None:
    changes, want = STARTS_REFUSED[claim]
    here = Round(2, 1)
    raw = json.loads(raw_of_round_start(RoundStart(here, at(5), "uid", CREATED)))

    with pytest.raises(InvalidSpec) as refused:
        round_start_of(json.dumps({**raw, **changes}).encode(), here)

    assert want == str(refused.value)


rounds = st.builds(Round, st.integers(1, 4), st.integers(0, 1))
locations = st.builds(Location, st.integers(0, 30), rounds)


@settings(deadline=None)
@given(st.dictionaries(locations, st.sampled_from(["whole", "hash", "size", "staging"])))
def test_whatever_was_left_behind_only_a_sound_checkpoint_is_chosen(
    states: dict[Location, str],
) -> None:
    objects = [began(attempt, round_) for attempt in range(1, 5) for round_ in (0, 1)]
    for location, state in states.items():
        whole = saved(location)
        cut = {
            "staging": without(whole, "manifest.json"),
            "size": with_body(whole, "part-1.pt", b""),
        }
        objects.append(cut.get(state, whole))

    def fault(found: Manifest) -> str | None:
        return "another hash" if states[found.location] == "hash" else None

    choice = newest_verified(listing(*objects), Round(9, 0), fault, job_uid="uid")

    if choice.manifest is not None:
        assert "whole" == states[choice.manifest.location]
        assert Round(4, 1) == choice.manifest.location.round
        passed = {each.name for each in choice.skipped}
        newer = {found.directory for found in states if found > choice.manifest.location}
        assert newer <= passed


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 5), st.booleans()), max_size=8))
def test_what_a_cut_off_attempt_still_writes_is_never_resumed_from(
    story: list[tuple[int, bool]],
) -> None:
    # Each entry: steps that the living attempt makes and saves; whether the one before it,
    # cut off, saves something far ahead meanwhile.
    objects: list[Mapping[str, bytes]] = [began(1)]
    last: Location | None = None
    step, attempt = 0, 1
    for steps, has_zombie in story:
        step += steps
        last = at(step, attempt)
        objects.append(saved(last))
        attempt += 1
        objects.append(began(attempt, origin=last))
        if has_zombie:
            objects.append(saved(at(step + 1000, attempt - 1)))

    choice = newest_verified(listing(*objects), Round(attempt, 0), sound, job_uid="uid")

    assert last == (choice.manifest and choice.manifest.location)


@settings(deadline=None)
@given(
    st.builds(
        lambda location, ranks, size: manifest(location, ranks=ranks, size=size),
        locations,
        st.integers(1, 5),
        st.integers(0, 10**12),
    )
)
def test_every_manifest_survives_its_store(what: Manifest) -> None:
    assert what == manifest_of(raw_of_manifest(what), what.location)
    assert sum(part.size for part in what.parts) == what.bytes
