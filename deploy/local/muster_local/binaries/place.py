"""A place in the cache, filled by one process at a time."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from muster_local.progress import Tell


@contextmanager
def placing(path: Path, tell: Tell) -> Iterator[Path | None]:
    """A draft beside *path*, to be renamed to it when whole; None if another process made it.

    Who comes second waits for the first. What a killed one left is thrown away.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.draft")
    with path.with_name(f".{path.name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell(f"waiting for another process that gets {path.name}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        if path.is_file():
            yield None
            return
        draft.unlink(missing_ok=True)
        try:
            yield draft
        finally:
            draft.unlink(missing_ok=True)
