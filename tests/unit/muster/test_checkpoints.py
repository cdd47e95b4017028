"""Which checkpoints exist, and which one a round resumes from (execution-cases.md, part A)."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from checkpoint_stores import at, began, listing, manifest, saved, sound, with_body, without
from muster.checkpoints import (
    Listing,
    Location,
    Manifest,
    Round,
    location_of,
    location_of_part,
    newest_round,
    newest_verified,
    rank_of,
    raw_of_manifest,
)


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
