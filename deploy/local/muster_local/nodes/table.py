"""The table of process nodes, `nodes.json`: how `muster local` says which nodes there should be.

The one interface between the commands that change a local cluster and the process that carries it
out. The file is replaced as a whole, so that a reader never sees half of it.
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

from muster.errors import InvalidSpec, NotFound

FILE_NAME: Final = "nodes.json"


@dataclass(frozen=True, slots=True)
class NodeEntry:
    """One process node as it should be. All amounts are what the node claims to have: none of them
    is checked against the machine, since its GPUs are simulated anyway.
    """

    name: str
    gpus: int = 8
    """Simulated devices (`nvidia.com/gpu`)."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of the Node object, on top of host name, architecture and operating system."""
    cpus: int = 64
    memory_bytes: int = 256 * 2**30
    storage_bytes: int = 1024 * 2**30
    """What it offers as `ephemeral-storage`."""
    pods: int = 110
    down: bool = False
    """The node died: its processes are killed at once, it reports nothing any more."""


def read_nodes(directory: Path) -> tuple[NodeEntry, ...]:
    """The nodes of the table in *directory*, in its order; none where there is no table.

    Raises `InvalidSpec` with the place of what is wrong.
    """
    file = directory / FILE_NAME
    try:
        rows = json.loads(file.read_bytes())
    except FileNotFoundError:
        return ()
    except ValueError as error:
        raise InvalidSpec(str(file), f"is not JSON: {error}") from error
    if not isinstance(rows, list):
        raise InvalidSpec(str(file), "must be a list of nodes")
    entries = tuple(_entry(f"{file}[{index}]", row) for index, row in enumerate(rows))
    names = [entry.name for entry in entries]
    for name in names:
        if names.count(name) > 1:
            raise InvalidSpec(str(file), f"names {name} twice")
    return entries


def write_nodes(directory: Path, entries: Iterable[NodeEntry]) -> None:
    """Replace the table in *directory* by *entries*; the process follows within a second."""
    directory.mkdir(parents=True, exist_ok=True)
    rows = [{**asdict(entry), "labels": dict(entry.labels)} for entry in entries]
    draft = directory / f".{FILE_NAME}.{os.getpid()}"
    draft.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    draft.replace(directory / FILE_NAME)


def set_down(directory: Path, name: str, *, down: bool = True) -> None:
    """Let the node *name* die, or come back. Raises `NotFound`."""
    entries = read_nodes(directory)
    if all(entry.name != name for entry in entries):
        raise NotFound(f"no process node {name}; there are {', '.join(e.name for e in entries)}")
    write_nodes(
        directory,
        (replace(entry, down=down) if entry.name == name else entry for entry in entries),
    )


_TYPES: Final[Mapping[str, type]] = {
    "name": str,
    "gpus": int,
    "labels": dict,
    "cpus": int,
    "memory_bytes": int,
    "storage_bytes": int,
    "pods": int,
    "down": bool,
}
assert set(_TYPES) == {f.name for f in fields(NodeEntry)}


def _entry(where: str, row: Any) -> NodeEntry:
    if not isinstance(row, dict) or not row.get("name"):
        raise InvalidSpec(where, "must be an object with a name")
    for key, value in row.items():
        if key not in _TYPES:
            raise InvalidSpec(f"{where}.{key}", f"is not known; known are {', '.join(_TYPES)}")
        if type(value) is not _TYPES[key]:
            raise InvalidSpec(f"{where}.{key}", f"must be of type {_TYPES[key].__name__}")
        if isinstance(value, int) and value < 0:
            raise InvalidSpec(f"{where}.{key}", f"must not be negative, is {value}")
    return NodeEntry(**row)
