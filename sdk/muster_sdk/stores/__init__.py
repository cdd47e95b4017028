"""Where checkpoints lie: a directory, or any URI that fsspec knows.

A store keeps bytes under relative names and knows nothing of checkpoints. What the commit protocol
asks of it is one thing: `create` makes a whole object, or none where one is already there.
"""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO, Protocol
from urllib.parse import urlsplit

from muster_sdk.errors import StoreRefused
from muster_sdk.stores.local import LocalStore


class Store(Protocol):
    """A prefix in a file system or an object store."""

    @property
    def uri(self) -> str:
        """The prefix itself, as a person would write it."""

    def create(self, name: str, body: bytes) -> None:
        """Make the object *name* with *body*; `FileExistsError` where it is already there."""

    def writing(self, name: str) -> AbstractContextManager[BinaryIO]:
        """The object *name*, to be written from the start; durable once the context has ended."""

    def reading(self, name: str) -> AbstractContextManager[BinaryIO]:
        """The object *name*, to be read; `FileNotFoundError` where it isn't there."""

    def sizes(self) -> dict[str, int]:
        """Every object below the prefix, with its size in bytes."""

    def remove(self, names: Iterable[str]) -> None:
        """Remove these objects, as far as they are there."""


def open_store(uri: str) -> Store:
    """The store at *uri*: a path, `file:///…`, or what fsspec can open. Nothing is written yet."""
    scheme, netloc, path, *_ = urlsplit(uri)
    if scheme == "file" and netloc:
        raise StoreRefused(f"{uri} names a host, {netloc!r}; a path has three slashes: file:///…")
    if scheme in {"", "file"}:
        directory = Path(path if scheme else uri).expanduser().absolute()
        return LocalStore(directory, uri if scheme else directory.as_uri())
    # fsspec only where it is needed: a directory is the common case, and start-up is paid by
    # every process of every attempt.
    from muster_sdk.stores.remote import open_remote  # noqa: PLC0415

    return open_remote(uri)
