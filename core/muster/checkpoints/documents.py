"""Strict JSON: what commits a checkpoint is read exactly, or not at all."""

import json
from typing import Any

from muster.errors import InvalidSpec


def parsed(text: bytes) -> object:
    """The JSON value of *text*; doubled keys, NaN and whatever else JSON lacks are refused."""
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        raise InvalidSpec("", f"is not JSON: {error}") from error


def rendered(raw: dict[str, Any]) -> bytes:
    """The same bytes for the same value, readable by people."""
    return json.dumps(raw, indent=2, allow_nan=False).encode() + b"\n"


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a key is there twice")
    return fields


def _refused(constant: str) -> None:
    raise ValueError(f"{constant} is no number")
