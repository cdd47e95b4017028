"""Writing the parts of a checkpoint, and reading them back."""

import errno
import hashlib
from collections.abc import Iterable
from typing import Any, BinaryIO, Final

from muster.checkpoints import Location, Part
from muster_sdk import trees
from muster_sdk.errors import SaveFailed
from muster_sdk.stores import Store

_CHUNK_BYTES: Final = 1 << 20
_FULL: Final = {errno.ENOSPC, errno.EDQUOT}


class Digest:
    """A file to write to that knows how much went through it, and the hash of that."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self.size = 0

    def write(self, block: Any) -> int:
        """Pass *block* on."""
        self._file.write(block)
        self._hash.update(block)
        self.size += len(block)
        return len(block)

    def flush(self) -> None:
        """Pass it on."""
        self._file.flush()

    def part(self, name: str) -> Part:
        """What has been written, as a manifest names it."""
        return Part(name, self.size, self._hash.hexdigest())


def write_part(store: Store, location: Location, name: str, tree: Any) -> Part:
    """Write *tree* as one part, or `SaveFailed` with the place and the bytes it wanted."""
    path = location.part(name)
    part = Part(name, 0, "")
    try:
        with store.writing(path) as file:
            digest = Digest(file)
            try:
                trees.write(tree, digest)
            finally:
                part = digest.part(name)
    except Exception as error:
        full = _full(error)
        if full is None:
            raise
        raise SaveFailed(
            f"no space left at {store.uri}/{path}: it needs about {trees.bytes_of(tree)} bytes, "
            f"{part.size} were written"
        ) from full
    return part


def fault_of(store: Store, location: Location, parts: Iterable[Part]) -> str | None:
    """What is wrong with *parts* as they can be read now; None where they are as named."""
    for part in parts:
        found = hashlib.sha256()
        size = 0
        try:
            with store.reading(location.part(part.name)) as file:
                while block := file.read(_CHUNK_BYTES):
                    found.update(block)
                    size += len(block)
        except FileNotFoundError:
            return f"{part.name} is missing"
        except OSError as error:
            # A bad sector stays bad; a network that doesn't answer says nothing about the part.
            if error.errno != errno.EIO:
                raise
            return f"{part.name} cannot be read: {error}"
        if size != part.size:
            return f"{part.name} has {size} bytes instead of {part.size}"
        if found.hexdigest() != part.sha256:
            return f"{part.name} has another hash than its manifest says"
    return None


def read_part(store: Store, location: Location, name: str) -> Any:
    """The tree in a part that is known to be sound."""
    with store.reading(location.part(name)) as file:
        return trees.read(file, name)


def _full(error: BaseException) -> OSError | None:
    """The full disk behind *error*: torch raises another one while it handles the first."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OSError) and seen.errno in _FULL:
            return seen
        seen = seen.__cause__ or seen.__context__
    return None
