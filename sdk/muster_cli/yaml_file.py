"""A YAML 1.2 file as plain values, and the line on which each of them stands.

PyYAML reads YAML 1.1, in which `on`, `no` and `1:30` are no strings. Here its parser is used, and
the values are made from its nodes by the core schema of 1.2, so that a name such as `n` or `y` is
a name, and so that whatever reads the values can say where one stands. There are no tags and no
merge keys, and a key that appears twice is an error.
"""

import re
import sys
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from muster.errors import InvalidSpec, NotFound

_NULL: Final = {"", "~", "null", "Null", "NULL"}
_TRUE: Final = {"true", "True", "TRUE"}
_FALSE: Final = {"false", "False", "FALSE"}
_WHOLE: Final = re.compile(r"[-+]?[0-9]{1,40}|0o[0-7]{1,40}|0x[0-9a-fA-F]{1,40}")
_NUMBER: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_MOST_VALUES: Final = 1_000_000
_DEEPEST: Final = 100


@dataclass(frozen=True, slots=True)
class YamlFile:
    """What is in a file."""

    source: str
    """How messages name it."""
    value: Any
    lines: Mapping[str, int]
    """The line of each value by its path, from 1: `jobs[3].replicas`."""

    def located(self, error: InvalidSpec) -> InvalidSpec:
        """*error* about a path in here, with file and line: those of the path, or of the nearest
        one around it that is there."""
        path = error.path
        while path not in self.lines:
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        what = f"{error.path}: {error.problem}" if error.path else error.problem
        return InvalidSpec(f"{self.source}:{self.lines[path]}", what)


def read(file: str) -> YamlFile:
    """The one document in *file*, or in standard input for `-`.

    Raises `NotFound` for a file that is not there and `InvalidSpec` for one that is no YAML.
    """
    if file == "-":
        return parse(sys.stdin.read(), "standard input")
    try:
        return parse(Path(file).read_text(encoding="utf-8"), file)
    except UnicodeDecodeError as error:
        raise InvalidSpec(file, f"is not text in UTF-8: {error}") from error
    except OSError as error:
        raise NotFound(f"{file}: {error.strerror or error}") from error


def parse(text: str, source: str) -> YamlFile:
    """The one document in *text*; *source* names it in messages."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{source}:{mark.line + 1}:{mark.column + 1}" if mark else source
        words = [error.problem or error.context or ""]
        if words[0].startswith("but "):
            words.insert(0, error.context or "")
        raise InvalidSpec(place, f"this is not YAML: {' '.join(words)}") from error
    except yaml.YAMLError as error:
        raise InvalidSpec(source, f"this is not YAML: {error}") from error
    if root is None:
        raise InvalidSpec(source, "there is nothing in it")
    values = _Values(source)
    value = values.of(root, "", 0)
    return YamlFile(source, value, values.lines)


class _Values:
    """Makes values from nodes, and notes their lines."""

    def __init__(self, source: str) -> None:
        self.lines: dict[str, int] = {}
        self._source = source
        self._left = _MOST_VALUES

    def of(self, node: yaml.Node, path: str, depth: int) -> Any:
        """The value of *node*."""
        self.lines.setdefault(path, node.start_mark.line + 1)
        self._left -= 1
        if self._left < 0 or depth > _DEEPEST:
            # An alias may stand for itself, or for many others.
            raise self._wrong(node, "holds too much: more values, or deeper ones, than are read")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, depth)
        if isinstance(node, yaml.SequenceNode):
            return [
                self.of(each, f"{path}[{number}]", depth + 1)
                for number, each in enumerate(node.value)
            ]
        assert isinstance(node, yaml.ScalarNode)
        return self._scalar(node)

    def _mapping(self, node: yaml.MappingNode, path: str, depth: int) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for key_node, value_node in node.value:
            key = self.of(key_node, "", depth + 1)
            if not isinstance(key, Hashable):
                raise self._wrong(key_node, "a key must be a single word")
            if key in found:
                raise self._wrong(key_node, f"the key {key!r} appears twice")
            inner = f"{path}.{key}" if path else str(key)
            self.lines[inner] = key_node.start_mark.line + 1
            found[key] = self.of(value_node, inner, depth + 1)
        return found

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        text = node.value
        if node.style is not None:
            return text
        if node.tag.startswith("!"):
            raise self._wrong(node, f"has the tag {node.tag}, and no tags are read here")
        return _plain(text)

    def _wrong(self, node: yaml.Node, problem: str) -> InvalidSpec:
        mark = node.start_mark
        place = f"{self._source}:{mark.line + 1}:{mark.column + 1}"
        return InvalidSpec(place, f"this is not YAML: {problem}")


def _plain(text: str) -> Any:
    """What a word without quotes is in the core schema of YAML 1.2."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _WHOLE.fullmatch(text):
        # Python takes 0o17 and 0x1f by themselves, but no leading zeros.
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    return float(text) if _NUMBER.fullmatch(text) else text
