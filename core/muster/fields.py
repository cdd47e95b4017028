"""Reading one JSON object field by field, so that what is wrong is named by its path.

What a training process or a store hands us was written by somebody else: a wrong type, a missing
field or a value without bound ends here, as `InvalidSpec`. Nothing is read from disk or network.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from muster.errors import InvalidSpec

NAMES_MAX: Final = 64
"""Names in one mapping of numbers."""
NAME_MAX: Final = 128
"""Characters of a metric's name or a checkpoint's id."""
TEXT_MAX: Final = 1_024
"""Characters of a URI or a message."""
WHOLE_MAX: Final = 2**53 - 1
"""The largest whole number that every JSON reader keeps exactly."""

_NOT_FINITE: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class Fields:
    """Reads the fields of one JSON object and names the one that is wrong."""

    def __init__(self, raw: object, path: str) -> None:
        if not isinstance(raw, Mapping):
            raise InvalidSpec(path, f"must be an object, is {shown(raw)}")
        self._raw: Mapping[Any, Any] = raw
        self._path = path

    def path(self, name: str) -> str:
        """Where the field *name* lies in the whole report."""
        return f"{self._path}.{name}" if self._path else name

    def get(self, name: str) -> object:
        """The field as it was given, None where it is missing."""
        return self._raw.get(name)

    def only(self, names: Collection[str]) -> None:
        """Refuse all other fields, where an unknown one may change what the rest means."""
        for name in self._raw:
            if name not in names:
                raise InvalidSpec(self.path(str(name)), "is not a field of this object")

    def whole(self, name: str, least: int = 0) -> int:
        """A whole number of at least *least*."""
        value = self._raw.get(name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidSpec(self.path(name), f"must be a whole number, is {shown(value)}")
        if not least <= value <= WHOLE_MAX:
            raise InvalidSpec(
                self.path(name), f"must be between {least} and {WHOLE_MAX}, is {value}"
            )
        return value

    def text(self, name: str, *, longest: int = TEXT_MAX, default: str | None = None) -> str:
        """A string of at most *longest* characters."""
        value = self._raw.get(name, default)
        if not isinstance(value, str) or (not value and default is None):
            raise InvalidSpec(self.path(name), f"must be a text, is {shown(value)}")
        if len(value) > longest:
            raise InvalidSpec(
                self.path(name), f"must have at most {longest} characters, has {len(value)}"
            )
        if not _is_storable(value):
            raise InvalidSpec(
                self.path(name), f"holds a character no text may have: {shown(value)}"
            )
        return value

    def moment(self, name: str) -> datetime:
        """A time in RFC 3339, as UTC."""
        value = self._raw.get(name)
        try:
            at = datetime.fromisoformat(value) if isinstance(value, str) else None
            if at is not None and at.tzinfo is not None:
                return at.astimezone(UTC)
        except (ValueError, OverflowError):
            pass  # The one message below says all there is to say.
        problem = f"must be a time with its zone, as 2026-12-01T09:30:00Z, is {shown(value)}"
        raise InvalidSpec(self.path(name), problem)

    def word(self, name: str, words: Sequence[str]) -> str:
        """One of *words*."""
        value = self._raw.get(name)
        if isinstance(value, str) and value in words:
            return value
        raise InvalidSpec(self.path(name), f"must be {' or '.join(words)}, is {shown(value)}")

    def listed(self, name: str, *, most: int) -> Sequence[object]:
        """A list of at most *most* values."""
        value = self._raw.get(name)
        if not isinstance(value, Sequence) or isinstance(value, str | bytes):
            raise InvalidSpec(self.path(name), f"must be a list, is {shown(value)}")
        if len(value) > most:
            raise InvalidSpec(
                self.path(name), f"must hold at most {most} items, holds {len(value)}"
            )
        return value

    def numbers(
        self, name: str, default: Mapping[str, float] | None = None
    ) -> Mapping[str, float]:
        """Numbers by name; NaN and the infinities are the strings that JSON lacks a word for."""
        value = self._raw.get(name, default)
        if not isinstance(value, Mapping):
            raise InvalidSpec(self.path(name), f"must be an object, is {shown(value)}")
        if len(value) > NAMES_MAX:
            raise InvalidSpec(
                self.path(name), f"must hold at most {NAMES_MAX} names, holds {len(value)}"
            )
        return {self._name(name, key): self._number(name, key, value[key]) for key in value}

    def _name(self, name: str, key: object) -> str:
        if not isinstance(key, str) or not (0 < len(key) <= NAME_MAX and _is_storable(key)):
            problem = f"names must be texts of 1 to {NAME_MAX} characters, one is {shown(key)}"
            raise InvalidSpec(self.path(name), problem)
        return key

    def _number(self, name: str, key: str, value: object) -> float:
        if isinstance(value, str) and value in _NOT_FINITE:
            return _NOT_FINITE[value]
        if isinstance(value, bool) or not isinstance(value, int | float):
            path = self.path(f"{name}.{key}")
            raise InvalidSpec(path, f"must be a number, is {shown(value)}")
        try:
            return float(value)
        except OverflowError:
            raise InvalidSpec(self.path(f"{name}.{key}"), "is too large for a number") from None


def _is_storable(text: str) -> bool:
    """Whether a database takes it: JSON may carry NUL and halves of surrogate pairs, UTF-8 not."""
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def shown(value: object) -> str:
    """The value as a message may show it: what others wrote is not echoed without bound."""
    if value is None:
        return "missing"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
