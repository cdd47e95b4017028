"""Settings of the processes, read once at their start from `MUSTER_*` variables."""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Final, TypeVar

from muster import wire
from muster.errors import InvalidSpec

_PREFIX: Final = "MUSTER_"
_OF_ALL: Final = frozenset({"MUSTER_CACHE", "MUSTER_HOME"})
"""Where this machine keeps things; not about any one process."""


@dataclass(frozen=True, slots=True)
class ApiSettings:
    """Settings of `python -m muster_api`."""

    http_host: str = "0.0.0.0"  # noqa: S104 -- a pod is reached at its own address
    """Address that the API listens on."""
    http_port: int = 8080
    """Port that the API listens on."""
    database_url: str = "sqlite:///muster.db"
    """The database: `sqlite:///FILE` or `postgresql://…`."""
    operator_url: str = ""
    """Where the operator serves what it sees and decides, for explanations and dry runs; empty:
    there are none."""


@dataclass(frozen=True, slots=True)
class RecorderSettings:
    """Settings of `python -m muster_api.recorder`."""

    http_host: str = "0.0.0.0"  # noqa: S104 -- a pod is reached at its own address
    """Address that metrics and health are served on."""
    http_port: int = 9403
    """Port that metrics and health are served on."""
    database_url: str = "sqlite:///muster.db"
    """The database: `sqlite:///FILE` or `postgresql://…`."""
    tell_every_seconds: int = 10
    """How often, at most, the recorder writes progress and cost into a job's status."""
    end_wait_seconds: int = 20
    """How long a deleted job waits for the ends of its pods before it is let go without them.
    Less than the operator's wait for the recorder."""


T = TypeVar("T", ApiSettings, RecorderSettings)


def read(kind: type[T], environ: Mapping[str, str]) -> T:
    """The settings in *environ*. Raises `InvalidSpec` for a variable that is unknown or wrong."""
    known = {_PREFIX + field.name.upper(): field for field in fields(kind)}
    values: dict[str, str | int] = {}
    for name, value in environ.items():
        if name in known:
            field = known[name]
            values[field.name] = _whole(name, value) if field.type is int else value
        elif name.startswith(_PREFIX) and not _is_elsewhere(name):
            raise InvalidSpec(name, f"is not a setting of this process; known: {', '.join(known)}")
    return kind(**values)  # type: ignore[arg-type]  # each value was made of its field's type


def variables(kind: type[ApiSettings] | type[RecorderSettings]) -> dict[str, str]:
    """The variables that *kind* reads, with their defaults."""
    return {
        _PREFIX + field.name.upper(): str(field.default)
        for field in fields(kind)
        if field.default is not MISSING
    }


def _is_elsewhere(name: str) -> bool:
    """Whether it is not for us to judge: a replica's, or one of Kubernetes' service links."""
    of_replicas = {value for key, value in vars(wire).items() if key.startswith("ENV_")}
    return name in of_replicas | _OF_ALL or "_SERVICE_" in name or "_PORT" in name


def _whole(name: str, value: str) -> int:
    if not value.isascii() or not value.isdigit():
        raise InvalidSpec(name, f"must be a whole number, is {value!r}")
    return int(value)
