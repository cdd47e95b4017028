"""Checkpoints in whatever fsspec opens: the only module that imports it.

Exclusive creation is fsspec's mode `xb`: s3fs (If-None-Match, whole for small objects since
2025.7), gcsfs (ifGenerationMatch=0), adlfs (overwrite=False) and memory:// have it. Others take
the mode and overwrite; `prove_exclusive` finds them out.
"""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from muster_sdk.errors import StoreRefused


def open_remote(uri: str) -> "RemoteStore":
    """The store at *uri*, or `StoreRefused` with what is missing."""
    try:
        import fsspec  # noqa: PLC0415 - slow to import, and not everybody has it
    except ImportError as error:
        raise StoreRefused(f"{uri} needs fsspec: pip install 'muster-train[sdk]'") from error
    try:
        files, root = fsspec.core.url_to_fs(uri)
    except (ImportError, ValueError) as error:
        raise StoreRefused(f"{uri} cannot be opened: {error}") from error
    return RemoteStore(files, root, uri)


class RemoteStore:
    """A prefix in an fsspec file system."""

    def __init__(self, files: Any, root: str, uri: str) -> None:
        self._files = files
        self._root = root.rstrip("/")
        self.uri = uri.rstrip("/")

    def create(self, name: str, body: bytes) -> None:
        """Make the object in one conditional write, as far as the implementation has one."""
        self._prepare(name)
        with self._files.open(self._path(name), "xb") as file:
            file.write(body)

    @contextlib.contextmanager
    def writing(self, name: str) -> Iterator[BinaryIO]:
        """The object *name*; object stores show it only once it is whole."""
        self._prepare(name)
        with self._files.open(self._path(name), "wb") as file:
            yield file

    @contextlib.contextmanager
    def reading(self, name: str) -> Iterator[BinaryIO]:
        """The object *name*."""
        with self._files.open(self._path(name), "rb") as file:
            yield file

    def sizes(self) -> dict[str, int]:
        """Every object below the prefix, listed anew: a cached listing hides what others wrote."""
        self._files.invalidate_cache()
        found = self._files.find(self._root, detail=True)
        return {
            path.removeprefix(self._root).lstrip("/"): int(entry["size"] or 0)
            for path, entry in found.items()
            if entry["type"] == "file"
        }

    def remove(self, names: Iterable[str]) -> None:
        """Remove objects one by one, since not every store removes many at once."""
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                self._files.rm_file(self._path(name))

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    def _prepare(self, name: str) -> None:
        """File systems want the folder first; object stores have none and take it as done."""
        self._files.makedirs(self._path(name).rpartition("/")[0], exist_ok=True)
