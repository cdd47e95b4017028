"""Frozen values as JSON and back, exactly: dataclasses, enums, tuples, mappings and numbers.

What a value looks like follows from the annotations of its class alone, so that a new field needs
nothing here. A field that has its default is left out, and the defaults themselves are written
beside the values: a file still means the same after somebody has changed one. Whatever is not such
a value becomes an `InvalidSpec` that carries the path of the field.
"""

import math
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

from muster.errors import InvalidSpec
from muster.fields import shown

Json = Any
Defaults = Mapping[str, Mapping[str, Json]]
"""The defaults of each class, by its name, as JSON."""

KIND: Final = "is"
"""The key that names the class of a value that may be of several."""

_NOT_FINITE: Final = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


@dataclass(frozen=True, slots=True)
class Way:
    """How the values of one type become JSON, and back. Decoding raises `InvalidSpec`."""

    encode: Callable[[Any], Json]
    decode: Callable[[Json], Any]
    is_same: bool = False
    """Whether a value and its JSON are the same, so that nothing needs to be called."""


class Codec:
    """Values to JSON and back; *defaults* are those of the file that is read."""

    def __init__(self, defaults: Defaults | None = None) -> None:
        self._told = defaults or {}
        self._ways: dict[Any, Way] = {}
        self._defaults: dict[str, dict[str, Json]] = {}

    def encode(self, kind: Any, value: Any) -> Json:
        """A value of *kind* as JSON."""
        return self.way_of(kind).encode(value)

    def decode(self, kind: Any, raw: Json) -> Any:
        """The value of *kind* in *raw*. Raises `InvalidSpec` with the path of what is wrong."""
        return self.way_of(kind).decode(raw)

    @property
    def defaults(self) -> Defaults:
        """The defaults of all classes that were met so far."""
        return self._defaults

    def way_of(self, kind: Any) -> Way:
        """How values of *kind* are written, worked out once."""
        found = self._ways.get(kind)
        if found is None:
            found = self._ways[kind] = self._make(kind)
        return found

    def _make(self, kind: Any) -> Way:
        if kind in _PLAIN:
            return _PLAIN[kind]
        origin, arguments = get_origin(kind), get_args(kind)
        if origin in (Union, types.UnionType):
            return self._union(arguments)
        if origin is tuple:
            return self._tuple(arguments)
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return self._mapping(*arguments)
        if isinstance(kind, type) and issubclass(kind, Enum):
            return _enumeration(kind)
        if isinstance(kind, type) and is_dataclass(kind):
            return self._record(kind)
        raise TypeError(f"{kind!r} has no form in JSON")

    def _union(self, members: tuple[Any, ...]) -> Way:
        others = [member for member in members if member is not types.NoneType]
        way = self.way_of(others[0]) if len(others) == 1 else self._any_of(others)
        if len(others) == len(members):
            return way
        return Way(
            lambda value: None if value is None else way.encode(value),
            lambda raw: None if raw is None else way.decode(raw),
            way.is_same,
        )

    def _any_of(self, members: list[Any]) -> Way:
        """One of several classes: its name is written with it."""
        ways = {member.__name__: self.way_of(member) for member in members}

        def encode(value: Any) -> Json:
            name = type(value).__name__
            return {KIND: name} | ways[name].encode(value)

        def decode(raw: Json) -> Any:
            name = _object(raw).get(KIND)
            if name not in ways:
                raise InvalidSpec(KIND, f"must be one of {', '.join(ways)}, is {shown(name)}")
            return ways[name].decode({key: raw[key] for key in raw if key != KIND})

        return Way(encode, decode)

    def _tuple(self, members: tuple[Any, ...]) -> Way:
        if len(members) == 2 and members[1] is Ellipsis:
            return _sequence(self.way_of(members[0]))
        ways = [self.way_of(member) for member in members]

        def encode(value: Any) -> Json:
            return [way.encode(each) for way, each in zip(ways, value, strict=True)]

        def decode(raw: Json) -> Any:
            if len(_list(raw)) != len(ways):
                raise InvalidSpec("", f"must hold {len(ways)} values, holds {len(raw)}")
            return tuple(
                _within(f"[{number}]", way, each)
                for number, (way, each) in enumerate(zip(ways, raw, strict=True))
            )

        return Way(encode, decode)

    def _mapping(self, key: Any, value: Any) -> Way:
        way = self.way_of(value)
        if key is str:
            return Way(
                lambda mapping: {name: way.encode(each) for name, each in mapping.items()},
                lambda raw: {
                    name: _within(f".{name}", way, each) for name, each in _object(raw).items()
                },
            )
        pairs = self._tuple((tuple[key, value], Ellipsis))
        return Way(
            lambda mapping: pairs.encode(tuple(mapping.items())),
            lambda raw: dict(pairs.decode(raw)),
        )

    def _record(self, kind: type) -> Way:
        """A frozen dataclass."""
        hints, name = get_type_hints(kind), kind.__name__
        ways = {field.name: self.way_of(hints[field.name]) for field in fields(kind)}
        own = {field.name: _default(field) for field in fields(kind)}
        self._defaults[name] = {
            field: ways[field].encode(value)
            for field, value in own.items()
            if value is not MISSING
        }
        told = {
            field: _within(f"defaults.{name}.{field}", ways[field], raw)
            for field, raw in self._told.get(name, {}).items()
            if field in ways
        }
        needed = [field for field, value in own.items() if value is MISSING]
        steps = [(field, own[field], way.encode, way.is_same) for field, way in ways.items()]

        def encode(value: Any) -> Json:
            written = {}
            for field, default, encode_field, is_same in steps:
                each = getattr(value, field)
                # 1 and 1.0 and True are equal, and not the same.
                if each != default or type(each) is not type(default):
                    written[field] = each if is_same else encode_field(each)
            return written

        def decode(raw: Json) -> Any:
            values = dict(told)
            for field, each in _object(raw).items():
                way = ways.get(field)
                if way is None:
                    raise InvalidSpec(f".{field}", f"is not a field of a {name}")
                values[field] = _within(f".{field}", way, each)
            for field in needed:
                if field not in values:
                    raise InvalidSpec(f".{field}", "is missing")
            return kind(**values)

        return Way(encode, decode)


def _sequence(way: Way) -> Way:
    def decode(raw: Json) -> Any:
        return tuple(_within(f"[{number}]", way, each) for number, each in enumerate(_list(raw)))

    if way.is_same:
        return Way(list, decode)
    return Way(lambda value: [way.encode(each) for each in value], decode)


def _enumeration(kind: type[Enum]) -> Way:
    members = {member.value: member for member in kind}

    def decode(raw: Json) -> Any:
        if not isinstance(raw, str) or raw not in members:
            words = ", ".join(map(str, members))
            raise InvalidSpec("", f"must be one of {words}, is {shown(raw)}")
        return members[raw]

    return Way(lambda value: value.value, decode)


def _default(field: "Field[Any]") -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _within(step: str, way: Way, raw: Json) -> Any:
    """The value in *raw*, which lies at *step*; paths are only put together where one is told."""
    try:
        return way.decode(raw)
    except InvalidSpec as error:
        joint = "" if not error.path or error.path[0] in ".[" else "."
        raise InvalidSpec(step + joint + error.path, error.problem) from None


def _object(raw: Json) -> Mapping[str, Json]:
    if not isinstance(raw, dict):
        raise InvalidSpec("", f"must be an object, is {shown(raw)}")
    return raw


def _list(raw: Json) -> list[Json]:
    if not isinstance(raw, list):
        raise InvalidSpec("", f"must be a list, is {shown(raw)}")
    return raw


def _text(raw: Json) -> str:
    if not isinstance(raw, str):
        raise InvalidSpec("", f"must be a text, is {shown(raw)}")
    return raw


def _flag(raw: Json) -> bool:
    if not isinstance(raw, bool):
        raise InvalidSpec("", f"must be true or false, is {shown(raw)}")
    return raw


def _whole(raw: Json) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int):
        raise InvalidSpec("", f"must be a whole number, is {shown(raw)}")
    return raw


def _real(raw: Json) -> float:
    if isinstance(raw, str) and raw in _NOT_FINITE:
        return _NOT_FINITE[raw]
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise InvalidSpec("", f"must be a number, is {shown(raw)}")
    return raw  # A whole one stays whole: messages may show it.


def _written_real(value: float) -> Json:
    return value if math.isfinite(value) else str(value)


_PLAIN: Final[Mapping[Any, Way]] = {
    str: Way(lambda value: value, _text, is_same=True),
    bool: Way(lambda value: value, _flag, is_same=True),
    int: Way(lambda value: value, _whole, is_same=True),
    float: Way(_written_real, _real),
}
