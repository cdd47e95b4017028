"""Manifests and starts of rounds, read exactly or not at all."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkpoint_stores import (
    CREATED,
    at,
    locations,
    manifest,
)
from muster.checkpoints import (
    Manifest,
    Round,
    RoundStart,
    manifest_of,
    raw_of_manifest,
    raw_of_round_start,
    round_start_of,
)
from muster.errors import InvalidSpec

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
