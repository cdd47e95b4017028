"""What a launcher is told, and what it leaves behind: the files of one run of a container."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Self

LAUNCH: Final = "launch.json"
"""The order. It holds environment values, so the launcher deletes it once it is read."""
CLAIM: Final = "claim.json"
"""Who runs this: made by the launcher, or by a node process that gives the run up for lost."""
STARTED: Final = "started.json"
EXIT: Final = "exit.json"
LOG: Final = "log"
OLDER_LOG: Final = "log.1"
MESSAGE: Final = "message"
"""What the command wrote to its termination message path."""
LAUNCHER_LOG: Final = "launcher.log"
"""Only written when the launcher itself fails."""
SHADOWS: Final = "shadows"


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or directory that the container sees at *target*."""

    source: str
    target: str
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Launch:
    """One run of a container."""

    command: tuple[str, ...]
    environment: dict[str, str]
    working_directory: str
    mounts: tuple[Mount, ...] = ()
    """Empty where mount namespaces are refused."""
    hostname: str = ""
    """Empty keeps the machine's."""
    nice: int = 5
    """Below the control plane, which shares the processors."""
    log_bytes: int = 64 * 2**20
    """The newest output that is kept."""

    def write(self, directory: Path) -> None:
        """Leave the order in *directory*, for its owner only."""
        write_json(directory / LAUNCH, asdict(self))

    @classmethod
    def read(cls, directory: Path) -> Self:
        """The order in *directory*."""
        raw = json.loads((directory / LAUNCH).read_bytes())
        return cls(
            **{
                **raw,
                "command": tuple(raw["command"]),
                "mounts": tuple(Mount(**mount) for mount in raw["mounts"]),
            }
        )


@dataclass(frozen=True, slots=True)
class Exit:
    """How a run ended."""

    code: int
    """128 + n after signal n, as a shell says it."""
    signal: int = 0
    started_at: float = 0.0
    """Seconds since the epoch; 0 when the command never ran."""
    finished_at: float = 0.0
    error: str = ""
    """Why the command could not be started, or that nobody knows how it ended."""


def write_json(file: Path, value: Any) -> None:
    """Write *file* so that nobody sees half of it, readable for its owner only."""
    draft = _draft(file, value)
    draft.replace(file)


def claim(file: Path, value: Any) -> bool:
    """Write *file* unless it exists; whether we were the first."""
    draft = _draft(file, value)
    try:
        os.link(draft, file)
    except FileExistsError:
        return False
    finally:
        draft.unlink()
    return True


def _draft(file: Path, value: Any) -> Path:
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        json.dump(value, out)
    return draft
