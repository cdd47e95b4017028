"""What a training process reports to the API: the values, and their one way in and out of JSON.

The SDK builds them, the API checks them with the same code, so that the two cannot drift apart.
A report carries items in order; (attempt, replica, sequence) names it, and sending it twice is
harmless. What an item means for status or cost is not decided here.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from muster.errors import InvalidSpec
from muster.fields import NAME_MAX, Fields, shown

ITEMS_MAX: Final = 1_000
"""Items in one report; a body beyond it is refused rather than held in memory."""


class EpochEvent(StrEnum):
    """The two ends of an epoch."""

    START = "start"
    END = "end"


class CheckpointState(StrEnum):
    """How far a save came; only `verified` may be resumed from."""

    DURABLE = "durable"
    """Every part and the manifest are written."""
    VERIFIED = "verified"
    """Every part has been read back with the size and hash that the manifest names."""
    FAILED = "failed"
    """The save was given up and its parts removed; `message` says why. Earlier ones stand."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """An epoch began or ended."""

    at: datetime
    epoch: int
    event: EpochEvent
    step: int
    """Steps done since the job began, not since the epoch did."""
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """How far training is; sent at most once a second."""

    at: datetime
    epoch: int
    step: int


@dataclass(frozen=True, slots=True)
class Metrics:
    """Numbers that the script wants kept, such as its loss."""

    at: datetime
    epoch: int
    step: int
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint reached a state."""

    at: datetime
    id: str
    step: int
    state: CheckpointState
    bytes: int
    world_size: int
    uri: str
    message: str = ""
    """Why it failed; empty otherwise."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The process lives and has nothing else to say."""

    at: datetime


Item = Epoch | Step | Metrics | Checkpoint | Heartbeat


@dataclass(frozen=True, slots=True)
class Report:
    """What one process sends at once."""

    attempt: int
    replica: int
    sequence: int
    """Grows by one a report within an attempt and replica; a repeat is the same report again."""
    items: tuple[Item, ...]


def report_of(raw: object) -> Report:
    """The report that the JSON value *raw* stands for, or `InvalidSpec` with the field's path."""
    fields = Fields(raw, "")
    items = fields.listed("items", most=ITEMS_MAX)
    return Report(
        attempt=fields.whole("attempt"),
        replica=fields.whole("replica"),
        sequence=fields.whole("sequence"),
        items=tuple(item_of(item, f"items[{index}]") for index, item in enumerate(items)),
    )


def raw_of_report(report: Report) -> dict[str, Any]:
    """The JSON value of *report*."""
    return {
        "attempt": report.attempt,
        "replica": report.replica,
        "sequence": report.sequence,
        "items": [raw_of(item) for item in report.items],
    }


def item_of(raw: object, path: str = "") -> Item:
    """The item that the JSON value *raw* stands for; *path* says where it lies in the report."""
    fields = Fields(raw, path)
    at = fields.moment("at")
    match fields.get("kind"):
        case "epoch":
            return Epoch(
                at,
                fields.whole("epoch"),
                EpochEvent(fields.word("event", tuple(EpochEvent))),
                fields.whole("step"),
                fields.numbers("metrics", default={}),
            )
        case "step":
            return Step(at, fields.whole("epoch"), fields.whole("step"))
        case "metrics":
            return Metrics(
                at, fields.whole("epoch"), fields.whole("step"), fields.numbers("values")
            )
        case "checkpoint":
            return _checkpoint_of(at, fields)
        case "heartbeat":
            return Heartbeat(at)
        case other:
            kinds = "epoch, step, metrics, checkpoint or heartbeat"
            raise InvalidSpec(fields.path("kind"), f"must be {kinds}, is {shown(other)}")


def raw_of(item: Item) -> dict[str, Any]:
    """The JSON value of *item*; `item_of` gives the same item back."""
    at = {"at": item.at.astimezone(UTC).isoformat().replace("+00:00", "Z")}
    match item:
        case Epoch():
            values = {"epoch": item.epoch, "event": item.event.value, "step": item.step}
            return {"kind": "epoch", **at, **values, "metrics": _raw_numbers(item.metrics)}
        case Step():
            return {"kind": "step", **at, "epoch": item.epoch, "step": item.step}
        case Metrics():
            where = {"epoch": item.epoch, "step": item.step}
            return {"kind": "metrics", **at, **where, "values": _raw_numbers(item.values)}
        case Checkpoint():
            return {"kind": "checkpoint", **at, **_raw_checkpoint(item)}
        case _:  # A heartbeat says no more than that.
            return {"kind": "heartbeat", **at}


def _checkpoint_of(at: datetime, fields: Fields) -> Checkpoint:
    return Checkpoint(
        at=at,
        id=fields.text("id", longest=NAME_MAX),
        step=fields.whole("step"),
        state=CheckpointState(fields.word("state", tuple(CheckpointState))),
        bytes=fields.whole("bytes"),
        world_size=fields.whole("world_size", least=1),
        uri=fields.text("uri"),
        message=fields.text("message", default=""),
    )


def _raw_checkpoint(item: Checkpoint) -> dict[str, Any]:
    raw = {
        "id": item.id,
        "step": item.step,
        "state": item.state.value,
        "bytes": item.bytes,
        "world_size": item.world_size,
        "uri": item.uri,
    }
    return {**raw, "message": item.message} if item.message else raw


def _raw_numbers(numbers: Mapping[str, float]) -> dict[str, float | str]:
    # JSON has no word for them, and a lost gradient is what a user most wants to see.
    return {
        name: value if math.isfinite(value) else _word(value) for name, value in numbers.items()
    }


def _word(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"
