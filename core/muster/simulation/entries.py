"""Reading one mapping of a scenario field by field; what is wrong is named by its path.

Stricter than what the API server accepts: a file written by hand is read as a whole, so that a
field that is misspelt is an error and not a default.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final

from muster.errors import InvalidSpec
from muster.parse import raw
from muster.parse.quantity import millis
from muster.parse.raw import shown
from muster.scheduling.snapshot import Node

_DURATION: Final = re.compile(r"(?:\d{1,12}(?:\.\d{1,6})?(?:d|h|ms|m|s))+", re.ASCII)
_PART: Final = re.compile(r"([\d.]+)(d|h|ms|m|s)", re.ASCII)
_UNIT_SECONDS: Final = {
    "d": Decimal(86_400),
    "h": Decimal(3_600),
    "m": Decimal(60),
    "s": Decimal(1),
    "ms": Decimal("0.001"),
}
_NAMES_SHOWN: Final = 12


def seconds_of(value: object, path: str) -> float:
    """A duration such as `90s`, `5m`, `2h` or `1h30m`, in seconds."""
    if value == 0 and not isinstance(value, bool):
        return 0.0
    if not isinstance(value, str) or not _DURATION.fullmatch(value):
        problem = f"must be a duration such as 90s, 5m or 1h30m, is {shown(value)}"
        raise InvalidSpec(path, problem)
    parts = _PART.findall(value)
    return float(sum(Decimal(number) * _UNIT_SECONDS[unit] for number, unit in parts))


def duration_of(seconds: float) -> str:
    """The same the other way round: `1h30m`."""
    if seconds == 0:
        return "0s"
    left = round(Decimal(repr(float(seconds))), 6)
    sign, left = ("-" if left < 0 else ""), abs(left)
    parts = []
    for unit in ("h", "m"):
        count, left = divmod(left, _UNIT_SECONDS[unit])
        if count:
            parts.append(f"{count:f}{unit}")
    if left:
        # Trailing zeros of whole seconds count.
        parts.append(f"{left.normalize():f}s")
    return sign + "".join(parts)


def known(value: str, names: Collection[str], path: str, what: str) -> str:
    """*value*, which must be one of *names*."""
    if value not in names:
        raise InvalidSpec(path, f"there is no {what} {value!r}; {_choice(names, what)}")
    return value


def _choice(names: Collection[str], what: str) -> str:
    if not names:
        return f"no {what} is defined"
    some = list(names)[:_NAMES_SHOWN]
    more = f" and {len(names) - len(some)} more" if len(names) > len(some) else ""
    return f"known: {', '.join(some)}{more}"


@dataclass(frozen=True, slots=True)
class Names:
    """What a scenario may refer to."""

    levels: tuple[str, ...]
    """With the node as the last one."""
    nodes: Mapping[str, Node]
    queues: tuple[str, ...]
    jobs: tuple[str, ...] = ()

    def with_jobs(self, jobs: Iterable[str]) -> "Names":
        """The same, with these jobs."""
        return replace(self, jobs=tuple(jobs))


class Entry:
    """The fields of one mapping."""

    def __init__(self, value: object, path: str, allowed: Iterable[str]) -> None:
        if not isinstance(value, Mapping):
            raise InvalidSpec(path, f"must be a mapping, is {shown(value)}")
        self._raw: Mapping[str, Any] = value
        self.path = path
        allowed = tuple(allowed)
        for name in value:
            if name not in allowed:
                raise InvalidSpec(
                    raw.at(path, str(name)), f"is not a field here; known: {', '.join(allowed)}"
                )

    def at(self, name: str) -> str:
        """The path of a field."""
        return raw.at(self.path, name)

    def has(self, name: str) -> bool:
        """Whether the field is given; an empty one counts as left out."""
        return self._raw.get(name) is not None

    def names_field(self, name: str) -> bool:
        """Whether the field is there, be it empty."""
        return name in self._raw

    def get(self, name: str) -> object:
        """The field as it was given."""
        return self._raw.get(name)

    @property
    def given(self) -> tuple[str, ...]:
        """The fields that are given, in their own order."""
        return tuple(name for name in self._raw if self.has(name))

    def wrong(self, name: str, problem: str) -> InvalidSpec:
        """The error that says what is wrong with a field."""
        return InvalidSpec(self.at(name), problem)

    def text(self, name: str, default: str = "") -> str:
        """A string, *default* where it is left out."""
        value = self._raw.get(name)
        if value is None:
            return default
        return self._text(value, self.at(name))

    def name(self, name: str) -> str:
        """A string that must be given."""
        if not self.has(name):
            raise self.wrong(name, "is missing")
        return self.text(name)

    def word(self, name: str, words: Iterable[str], default: str | None = None) -> str | None:
        """One of *words*."""
        if not self.has(name):
            return default
        value, words = self.get(name), tuple(words)
        if value not in words:
            raise self.wrong(name, f"must be one of {', '.join(words)}, is {shown(value)}")
        return str(value)

    def whole(self, name: str, *, least: int = 0, default: int = 0) -> int:
        """A whole number of at least *least*."""
        value = raw.number(self._raw, name, self.path, least=least)
        return default if value is None else value

    def number(self, name: str, *, least: float, default: float) -> float:
        """A number of at least *least*."""
        value = self._raw.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(name, f"must be a number, is {shown(value)}")
        if not least <= value < float("inf"):
            raise self.wrong(name, f"must be a number of at least {least:g}, is {value}")
        return float(value)

    def millis(self, name: str) -> int | None:
        """A number of cores, in thousandths."""
        return millis(self.get(name), self.at(name)) if self.has(name) else None

    def flag(self, name: str, *, default: bool = False) -> bool:
        """True or false."""
        return raw.flag(self._raw, name, self.path) if self.has(name) else default

    def seconds(self, name: str, default: float | None = None) -> float | None:
        """A duration in seconds."""
        return seconds_of(self.get(name), self.at(name)) if self.has(name) else default

    def items(self, name: str) -> Sequence[Any]:
        """A list, empty where it is left out."""
        return raw.listed(self._raw, name, self.path)

    def names(self, name: str) -> tuple[str, ...]:
        """A list of strings."""
        path = self.at(name)
        return tuple(
            self._text(item, raw.at(path, number)) for number, item in enumerate(self.items(name))
        )

    def labels(self, name: str) -> dict[str, str]:
        """A mapping to strings; whole numbers count as what they look like."""
        found = raw.section(self._raw, name, self.path)
        path = self.at(name)
        return {
            str(key): str(value)
            if isinstance(value, int) and not isinstance(value, bool)
            else self._text(value, raw.at(path, str(key)))
            for key, value in found.items()
        }

    def counts(self, name: str) -> dict[str, int]:
        """A mapping to whole numbers."""
        found = raw.section(self._raw, name, self.path)
        return {str(key): raw.number(found, key, self.at(name), least=0) or 0 for key in found}

    def _text(self, value: object, path: str) -> str:
        if not isinstance(value, str) or not value:
            hint = "; put it in quotes" if isinstance(value, int | float) else ""
            raise InvalidSpec(path, f"must be a string, is {shown(value)}{hint}")
        return value
