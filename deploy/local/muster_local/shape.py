"""What a local cluster consists of, and what somebody may ask for."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from muster.errors import InvalidSpec

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,28}[a-z0-9])?")
_MODEL: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,40}[A-Za-z0-9])?")
MAX_PROCESS_NODES: Final = 200
MAX_KWOK_NODES: Final = 20_000
_MAX_GPUS: Final = 64


@dataclass(frozen=True, slots=True)
class Shape:
    """A cluster as it should be; kept in its state."""

    nodes: int = 4
    """Process nodes."""
    gpus: int = 8
    """Simulated GPUs of each node."""
    racks: int = 2
    gpu_model: str = "H100"
    kwok_nodes: int = 0
    has_scheduler: bool = False
    has_platform: bool = True

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Shape":
        """The shape that `dataclasses.asdict` wrote."""
        return cls(**value)


@dataclass(frozen=True, slots=True)
class Options:
    """What `up` is asked for. None leaves it as it is, or takes the default of a new cluster."""

    name: str = "default"
    nodes: int | None = None
    gpus: int | None = None
    racks: int | None = None
    gpu_model: str | None = None
    kwok_nodes: int | None = None
    with_scheduler: bool = False
    no_platform: bool = False


def checked_name(name: str) -> str:
    """*name*, if a cluster can have it: it becomes a directory, a context and a label."""
    if not _NAME.fullmatch(name):
        raise InvalidSpec(
            "--name",
            f"{name!r} is not a name; use up to 30 lower-case letters, digits and dashes, with a "
            "letter or digit at both ends",
        )
    return name


def shape_of(options: Options, before: Shape | None = None) -> Shape:
    """The cluster that *options* ask for, on top of what is there *before*.

    A cluster only grows: nodes, KWOK nodes, a scheduler and the platform are added, never taken
    away, and nodes that exist stay as they are. Raises `InvalidSpec` naming the flag.
    """
    if before is None:
        return _new(options)
    for flag, now, asked in (
        ("--gpus", before.gpus, options.gpus),
        ("--racks", before.racks, options.racks),
        ("--gpu-model", before.gpu_model, options.gpu_model),
    ):
        if asked is not None and asked != now:
            raise InvalidSpec(flag, f"{_exists(options)} with {now}; {_down_first(options)}")
    for flag, have, want in (
        ("--nodes", before.nodes, options.nodes),
        ("--kwok-nodes", before.kwok_nodes, options.kwok_nodes),
    ):
        if want is not None and want < have:
            raise InvalidSpec(flag, f"{_exists(options)} with {have}; {_down_first(options)}")
    grown = replace(
        before,
        nodes=before.nodes if options.nodes is None else options.nodes,
        kwok_nodes=before.kwok_nodes if options.kwok_nodes is None else options.kwok_nodes,
        has_scheduler=before.has_scheduler or options.with_scheduler,
        has_platform=before.has_platform or not options.no_platform,
    )
    return _checked(grown)


def _new(options: Options) -> Shape:
    default = Shape()
    nodes = default.nodes if options.nodes is None else options.nodes
    return _checked(
        Shape(
            nodes=nodes,
            gpus=default.gpus if options.gpus is None else options.gpus,
            racks=min(default.racks, max(nodes, 1)) if options.racks is None else options.racks,
            gpu_model=options.gpu_model or default.gpu_model,
            kwok_nodes=options.kwok_nodes or 0,
            has_scheduler=options.with_scheduler,
            has_platform=not options.no_platform,
        )
    )


def _checked(shape: Shape) -> Shape:
    _within("--kwok-nodes", shape.kwok_nodes, 0, MAX_KWOK_NODES)
    # A cluster may have KWOK nodes only, as benchmarks want it.
    _within("--nodes", shape.nodes, 0 if shape.kwok_nodes else 1, MAX_PROCESS_NODES)
    _within("--gpus", shape.gpus, 0, _MAX_GPUS)
    _within("--racks", shape.racks, 1, max(shape.nodes, 1))
    if not _MODEL.fullmatch(shape.gpu_model):
        raise InvalidSpec("--gpu-model", f"{shape.gpu_model!r} cannot be a label; take H100, say")
    return shape


def _within(flag: str, value: int, least: int, most: int) -> None:
    if value < least:
        raise InvalidSpec(flag, f"must be at least {least}, is {value}")
    if value > most:
        raise InvalidSpec(flag, f"must be at most {most}, is {value}")


def _exists(options: Options) -> str:
    return f"the local cluster {options.name} exists"


def _down_first(options: Options) -> str:
    return f"run `muster local down --name {options.name}` first"
