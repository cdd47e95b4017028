"""Reading a raw object field by field, with errors that name the field.

The API server has validated what it stores, but the same functions read files before they are
sent and templates that no schema has looked into, so that no type is taken for granted.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import isfinite
from typing import Any, Final

from muster.errors import InvalidSpec

Raw = Mapping[str, Any]

_EMPTY: Final[Raw] = {}
_WORDS: Final = {
    bool: "true or false",
    int: "a whole number",
    str: "a string",
}


def at(path: str, key: str | int) -> str:
    """The path of *key* under *path*: `spec.topology`, `spec.gpuModels[0]`."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def section(raw: Raw, key: str, path: str) -> Raw:
    """The mapping under *key*, an empty one where there is none."""
    value = raw.get(key)
    if value is None:
        return _EMPTY
    # Almost always a dict, and asking for the abstract class costs as much as the rest.
    if type(value) is not dict and not isinstance(value, Mapping):
        raise InvalidSpec(at(path, key), f"must be a mapping, is {shown(value)}")
    return value


def listed(raw: Raw, key: str, path: str) -> Sequence[Any]:
    """The list under *key*, an empty one where there is none."""
    value = raw.get(key)
    if value is None:
        return ()
    if type(value) is not list and not isinstance(value, tuple):
        raise InvalidSpec(at(path, key), f"must be a list, is {shown(value)}")
    return value


def sections(raw: Raw, key: str, path: str) -> Sequence[Raw]:
    """The list of mappings under *key*."""
    values = listed(raw, key, path)
    for index, value in enumerate(values):
        if type(value) is not dict and not isinstance(value, Mapping):
            raise InvalidSpec(at(at(path, key), index), f"must be a mapping, is {shown(value)}")
    return values


def texts(raw: Raw, key: str, path: str, *, may_be_empty: bool = False) -> tuple[str, ...]:
    """The list of strings under *key*, none of them empty unless they may be."""
    values = listed(raw, key, path)
    for index, value in enumerate(values):
        if not isinstance(value, str) or not (value or may_be_empty):
            raise InvalidSpec(at(at(path, key), index), f"must be a string, is {shown(value)}")
    return tuple(values)


def text(raw: Raw, key: str, path: str) -> str | None:
    """The string under *key*; an empty one counts as none."""
    value = _typed(raw, key, path, str)
    return str(value) if value else None


def required_text(raw: Raw, key: str, path: str) -> str:
    """The string under *key*, which must be there."""
    value = text(raw, key, path)
    if value is None:
        raise InvalidSpec(at(path, key), "is missing")
    return value


def flag(raw: Raw, key: str, path: str, *, default: bool = False) -> bool:
    """The truth value under *key*, *default* where there is none."""
    value = _typed(raw, key, path, bool)
    return default if value is None else bool(value)


def number(
    raw: Raw, key: str, path: str, *, least: int, most: int = 2**31 - 1, default: int | None = None
) -> int | None:
    """The whole number under *key*, within its bounds; *default* where there is none."""
    value = _typed(raw, key, path, int)
    if value is None:
        return default
    if value < least:
        raise InvalidSpec(at(path, key), f"must be at least {least}, is {value}")
    if value > most:
        raise InvalidSpec(at(path, key), f"must be at most {most}, is {value}")
    return int(value)


def fraction(raw: Raw, key: str, path: str, *, least: float, default: float) -> float:
    """The number under *key*, with or without a fraction; *default* where there is none."""
    value = raw.get(key)
    if value is None:
        return default
    if not isinstance(value, int | float) or isinstance(value, bool) or not isfinite(value):
        raise InvalidSpec(at(path, key), f"must be a number, is {shown(value)}")
    if value < least:
        raise InvalidSpec(at(path, key), f"must be at least {least:g}, is {value:g}")
    return float(value)


def seconds_at(raw: Raw, key: str, path: str) -> float | None:
    """The RFC 3339 time under *key* in seconds since the epoch."""
    value = text(raw, key, path)
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise InvalidSpec(
            at(path, key), f"{value!r} is no time; write it as 2026-01-31T08:00:00Z"
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _typed(raw: Raw, key: str, path: str, kind: type) -> Any:
    value = raw.get(key)
    if value is None:
        return None
    # True is an int in Python, and no number of replicas.
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise InvalidSpec(at(path, key), f"must be {_WORDS[kind]}, is {shown(value)}")
    return value


def shown(value: object) -> str:
    """*value* as it may stand in a message: short, and by its kind where it is a structure."""
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."
