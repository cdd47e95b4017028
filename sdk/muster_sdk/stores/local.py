"""Checkpoints in a directory, with nothing but the standard library."""

import contextlib
import errno
import os
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

_NO_LINKS: Final = {errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP}
"""How file systems without hard links answer (FAT, some network and FUSE mounts)."""


class LocalStore:
    """A directory of this machine, or a mount that all nodes share."""

    def __init__(self, directory: Path, uri: str) -> None:
        self.directory = directory
        self.uri = uri.rstrip("/")

    def create(self, name: str, body: bytes) -> None:
        """Make a whole file at once: a crash leaves all of it or nothing under its name."""
        path = self._place(name)
        scratch = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        try:
            _write(scratch, body)
            try:
                os.link(scratch, path)
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                _write(path, body)
        finally:
            scratch.unlink(missing_ok=True)
        _sync_directory(path.parent)

    @contextlib.contextmanager
    def writing(self, name: str) -> Iterator[BinaryIO]:
        """A file that is on the disk, and not only in its cache, once the context has ended."""
        path = self._place(name)
        with path.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _sync_directory(path.parent)

    @contextlib.contextmanager
    def reading(self, name: str) -> Iterator[BinaryIO]:
        """The file *name*."""
        with (self.directory / name).open("rb") as file:
            yield file

    def sizes(self) -> dict[str, int]:
        """Every file below the directory; one that vanishes meanwhile is left out."""
        sizes: dict[str, int] = {}
        for folder, _, files in os.walk(self.directory):
            for file in files:
                path = Path(folder, file)
                with contextlib.suppress(FileNotFoundError):
                    sizes[path.relative_to(self.directory).as_posix()] = path.stat().st_size
        return sizes

    def remove(self, names: Iterable[str]) -> None:
        """Remove files, and the directories that are empty after that."""
        for name in names:
            path = self.directory / name
            path.unlink(missing_ok=True)
            for parent in path.relative_to(self.directory).parents[:-1]:
                with contextlib.suppress(OSError):  # Not empty, or another rank was faster.
                    (self.directory / parent).rmdir()

    def _place(self, name: str) -> Path:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


def _write(path: Path, body: bytes) -> None:
    with path.open("xb") as file:
        file.write(body)
        file.flush()
        os.fsync(file.fileno())


def _sync_directory(path: Path) -> None:
    """Without it a new name may be gone after a crash, though the file's contents are not."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
