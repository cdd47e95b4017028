"""What a training process may report, and what is refused with the field's name."""

import contextlib
import json
import math
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.errors import InvalidSpec
from muster.reports import (
    Checkpoint,
    CheckpointState,
    Epoch,
    EpochEvent,
    Heartbeat,
    Item,
    Metrics,
    Report,
    Step,
    item_of,
    raw_of,
    raw_of_report,
    report_of,
)

AT = "2026-12-01T09:30:00Z"
WHEN = datetime(2026, 12, 1, 9, 30, tzinfo=UTC)
SAVED = {
    "kind": "checkpoint",
    "at": AT,
    "id": "step-100",
    "step": 100,
    "state": "verified",
    "bytes": 2048,
    "world_size": 4,
    "uri": "file:///checkpoints/step-100",
}

ACCEPTED: dict[str, tuple[object, Item]] = {
    "an epoch's start needs no metrics": (
        {"kind": "epoch", "at": AT, "epoch": 0, "event": "start", "step": 0},
        Epoch(WHEN, 0, EpochEvent.START, 0, {}),
    ),
    "an epoch's end carries its metrics": (
        {
            "kind": "epoch",
            "at": AT,
            "epoch": 3,
            "event": "end",
            "step": 40,
            "metrics": {"accuracy": 1},
        },
        Epoch(WHEN, 3, EpochEvent.END, 40, {"accuracy": 1.0}),
    ),
    "a step": ({"kind": "step", "at": AT, "epoch": 1, "step": 7}, Step(WHEN, 1, 7)),
    "a loss that diverged is kept as infinity": (
        {"kind": "metrics", "at": AT, "epoch": 1, "step": 7, "values": {"loss": "Infinity"}},
        Metrics(WHEN, 1, 7, {"loss": math.inf}),
    ),
    "a time in another zone is the same moment in UTC": (
        {"kind": "heartbeat", "at": "2026-12-01T10:30:00+01:00"},
        Heartbeat(WHEN),
    ),
    "a verified checkpoint": (
        SAVED,
        Checkpoint(
            WHEN,
            "step-100",
            100,
            CheckpointState.VERIFIED,
            2048,
            4,
            "file:///checkpoints/step-100",
        ),
    ),
    "fields that a newer SDK adds are left aside": (
        {"kind": "heartbeat", "at": AT, "mood": "good"},
        Heartbeat(WHEN),
    ),
}

REFUSED: dict[str, tuple[object, str]] = {
    "an item that is no object": ("step", "items[2]: must be an object, is 'step'"),
    "an unknown kind": (
        {"kind": "gossip", "at": AT},
        "items[2].kind: must be epoch, step, metrics, checkpoint or heartbeat, is 'gossip'",
    ),
    "no kind": (
        {"at": AT},
        "items[2].kind: must be epoch, step, metrics, checkpoint or heartbeat, is missing",
    ),
    "a time without a zone": (
        {"kind": "heartbeat", "at": "2026-12-01T09:30:00"},
        "items[2].at: must be a time with its zone, as 2026-12-01T09:30:00Z, "
        "is '2026-12-01T09:30:00'",
    ),
    "a time beyond the calendar": (
        {"kind": "heartbeat", "at": "0001-01-01T00:00:00+23:00"},
        "items[2].at: must be a time with its zone, as 2026-12-01T09:30:00Z, "
        "is '0001-01-01T00:00:00+23:00'",
    ),
    "a negative step": (
        {"kind": "step", "at": AT, "epoch": 0, "step": -1},
        "items[2].step: must be between 0 and 9007199254740991, is -1",
    ),
    "a step that is a boolean": (
        {"kind": "step", "at": AT, "epoch": 0, "step": True},
        "items[2].step: must be a whole number, is True",
    ),
    "an epoch event that is no end": (
        {"kind": "epoch", "at": AT, "epoch": 0, "event": "middle", "step": 1},
        "items[2].event: must be start or end, is 'middle'",
    ),
    "a metric that is a text": (
        {"kind": "metrics", "at": AT, "epoch": 0, "step": 1, "values": {"loss": "low"}},
        "items[2].values.loss: must be a number, is 'low'",
    ),
    "a metric beyond any float": (
        {"kind": "metrics", "at": AT, "epoch": 0, "step": 1, "values": {"loss": 10**400}},
        "items[2].values.loss: is too large for a number",
    ),
    "a metric without a name": (
        {"kind": "metrics", "at": AT, "epoch": 0, "step": 1, "values": {"": 1}},
        "items[2].values: names must be texts of 1 to 128 characters, one is ''",
    ),
    "metrics without values": (
        {"kind": "metrics", "at": AT, "epoch": 0, "step": 1},
        "items[2].values: must be an object, is missing",
    ),
    "more metrics than one item may hold": (
        {
            "kind": "metrics",
            "at": AT,
            "epoch": 0,
            "step": 1,
            "values": {f"m{n}": n for n in range(65)},
        },
        "items[2].values: must hold at most 64 names, holds 65",
    ),
    "a checkpoint of nobody": (
        {**SAVED, "world_size": 0},
        "items[2].world_size: must be between 1 and 9007199254740991, is 0",
    ),
    "a checkpoint in a state that is never reported": (
        {**SAVED, "state": "staging"},
        "items[2].state: must be durable or verified or failed, is 'staging'",
    ),
    "a checkpoint without an id": ({**SAVED, "id": ""}, "items[2].id: must be a text, is ''"),
    "a URI without end": (
        {**SAVED, "uri": "x" * 1025},
        "items[2].uri: must have at most 1024 characters, has 1025",
    ),
    "a text that no database takes": (
        {**SAVED, "id": "step-\0"},
        "items[2].id: holds a character no text may have: 'step-\\x00'",
    ),
}


@pytest.mark.parametrize("claim", ACCEPTED)
def test_an_item_is_read(claim: str) -> None:
    raw, want = ACCEPTED[claim]

    assert want == item_of(raw)


@pytest.mark.parametrize("claim", REFUSED)
def test_an_item_is_refused_with_the_field_that_is_wrong(claim: str) -> None:
    raw, want = REFUSED[claim]

    with pytest.raises(InvalidSpec) as refused:
        item_of(raw, "items[2]")

    assert want == str(refused.value)


def test_nan_is_sent_as_a_string_because_json_has_no_word_for_it() -> None:
    raw = raw_of(Metrics(WHEN, 0, 1, {"loss": math.nan, "low": -math.inf}))

    assert {"loss": "NaN", "low": "-Infinity"} == raw["values"]
    assert math.isnan(item_of(raw).values["loss"])  # type: ignore[union-attr]


def test_a_failed_save_says_why() -> None:
    item = Checkpoint(
        WHEN, "step-9", 9, CheckpointState.FAILED, 10, 1, "file:///c", "the disk is full"
    )

    assert item == item_of(raw_of(item))


REPORTS_REFUSED: dict[str, tuple[object, str]] = {
    "a list": ([], "must be an object, is []"),
    "items that are a text": (
        {"attempt": 1, "replica": 0, "sequence": 1, "items": "many"},
        "items: must be a list, is 'many'",
    ),
    "more items than one report may hold": (
        {"attempt": 1, "replica": 0, "sequence": 1, "items": [{}] * 1001},
        "items: must hold at most 1000 items, holds 1001",
    ),
    "a wrong item names its place": (
        {"attempt": 1, "replica": 0, "sequence": 1, "items": [{"kind": "heartbeat"}]},
        "items[0].at: must be a time with its zone, as 2026-12-01T09:30:00Z, is missing",
    ),
    "no sequence": (
        {"attempt": 1, "replica": 0, "items": []},
        "sequence: must be a whole number, is missing",
    ),
}


@pytest.mark.parametrize("claim", REPORTS_REFUSED)
def test_a_report_is_refused_with_the_field_that_is_wrong(claim: str) -> None:
    raw, want = REPORTS_REFUSED[claim]

    with pytest.raises(InvalidSpec) as refused:
        report_of(raw)

    assert want == str(refused.value)


moments = st.integers(0, 10**10).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))
wholes = st.integers(0, 2**53 - 1)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=128)
names = texts.filter(bool)
numbers = st.dictionaries(names, st.floats(allow_nan=False), max_size=8)
items = st.one_of(
    st.builds(Epoch, moments, wholes, st.sampled_from(EpochEvent), wholes, numbers),
    st.builds(Step, moments, wholes, wholes),
    st.builds(Metrics, moments, wholes, wholes, numbers),
    st.builds(
        Checkpoint,
        moments,
        names,
        wholes,
        st.sampled_from(CheckpointState),
        wholes,
        st.integers(1, 10**6),
        names,
        texts,
    ),
    st.builds(Heartbeat, moments),
)


@settings(deadline=None)
@given(st.builds(Report, wholes, wholes, wholes, st.lists(items, max_size=5).map(tuple)))
def test_every_report_survives_the_wire(report: Report) -> None:
    body = json.dumps(raw_of_report(report), allow_nan=False)

    assert report == report_of(json.loads(body))


@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(
                st.sampled_from(["kind", "at", "epoch", "step", "values", "items", "attempt"]),
                inner,
            )
        ),
    )
)
def test_whatever_is_sent_is_read_or_refused_and_never_breaks(raw: object) -> None:
    with contextlib.suppress(InvalidSpec):
        report_of(raw)
