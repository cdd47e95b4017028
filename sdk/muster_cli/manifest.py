"""YAML files with Kubernetes objects, and what is wrong with them, by line and column."""

import sys
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from muster import wire
from muster.errors import InvalidSpec, NotFound

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Document:
    """One object of a file."""

    where: str
    """The file and the line at which it starts."""
    object: Json

    @property
    def is_job(self) -> bool:
        """Whether this is a TrainingJob."""
        return bool(self.object["kind"] == "TrainingJob")

    @property
    def name(self) -> str:
        """Its name, empty where the server is to make one."""
        return str(self.object["metadata"].get("name") or "")

    @property
    def namespace(self) -> str | None:
        """The namespace that it names itself."""
        named = self.object["metadata"].get("namespace")
        return str(named) if named else None


class _Loader(yaml.SafeLoader):
    """Refuses a key that appears twice: the first one would be dropped without a word."""

    def construct_mapping(
        self,
        node: yaml.MappingNode,
        deep: bool = False,  # noqa: FBT001, FBT002 -- the library's signature
    ) -> dict[Hashable, Any]:
        """The mapping of *node*, whose keys must all differ."""
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable) and key in seen and key != "<<":
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} appears twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


def read(file: str) -> tuple[Document, ...]:
    """The objects in *file*, or in standard input for `-`.

    Raises `NotFound` for a file that is not there and `InvalidSpec` for one that is no manifest.
    """
    if file == "-":
        return parse(sys.stdin.read(), "standard input")
    try:
        return parse(Path(file).read_text(encoding="utf-8"), file)
    except UnicodeDecodeError as error:
        raise InvalidSpec(file, f"is not text in UTF-8: {error}") from error
    except OSError as error:
        raise NotFound(f"{file}: {error.strerror or error}") from error


def parse(text: str, source: str) -> tuple[Document, ...]:
    """The objects in *text*; *source* names it in messages."""
    documents: list[Document] = []
    try:
        loader = _Loader(text)
        try:
            while loader.check_node():
                node = loader.get_node()
                if node is None:
                    break
                where = f"{source}:{node.start_mark.line + 1}"
                value = loader.construct_document(node)
                if value is not None:
                    documents.append(Document(where, _object(value, where)))
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{source}:{mark.line + 1}:{mark.column + 1}" if mark else source
        raise InvalidSpec(place, f"this is not YAML: {error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise InvalidSpec(source, f"this is not YAML: {error}") from error
    if not documents:
        raise InvalidSpec(source, "there is no object in it")
    return tuple(documents)


def _object(value: object, where: str) -> Json:
    """*value* if it has what every Kubernetes object has."""
    if not isinstance(value, dict):
        raise InvalidSpec(
            where, f"must be an object with apiVersion and kind, is a {type(value).__name__}"
        )
    for field in ("apiVersion", "kind"):
        if not isinstance(value.get(field), str) or not value[field]:
            hint = f" (a TrainingJob has apiVersion: {wire.API_VERSION})"
            raise InvalidSpec(f"{where}: {field}", "must be set" + hint)
    if value["kind"] == "TrainingJob" and value["apiVersion"] != wire.API_VERSION:
        raise InvalidSpec(
            f"{where}: apiVersion",
            f"must be {wire.API_VERSION} for a TrainingJob, is {value['apiVersion']}",
        )
    metadata = value.get("metadata")
    if not isinstance(metadata, dict) or not (
        metadata.get("name") or metadata.get("generateName")
    ):
        raise InvalidSpec(f"{where}: metadata.name", "must be set")
    return value
