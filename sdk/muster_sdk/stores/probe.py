"""Proves that a store creates exclusively, before anything relies on it."""

import uuid

from muster_sdk.errors import StoreRefused
from muster_sdk.stores import Store


def prove_exclusive(store: Store) -> None:
    """Create one object twice; `StoreRefused` unless the second is refused and changes nothing."""
    name = f"probe-{uuid.uuid4().hex}"
    first = b"first"
    try:
        store.create(name, first)
        try:
            is_exclusive = _is_second_refused(store, name)
            with store.reading(name) as file:
                is_exclusive = is_exclusive and file.read() == first
        finally:
            store.remove([name])
    except (OSError, ValueError, NotImplementedError) as error:
        raise StoreRefused(
            f"{store.uri} cannot hold checkpoints: {type(error).__name__}: {error}"
        ) from error
    if not is_exclusive:
        raise StoreRefused(
            f"{store.uri} cannot hold checkpoints: it replaces an object that should only be "
            "created, so two attempts could overwrite each other's; use a store with conditional "
            "writes (S3, GCS, Azure, a file system with hard links)"
        )


def _is_second_refused(store: Store, name: str) -> bool:
    try:
        store.create(name, b"second")
    except FileExistsError:
        return True
    return False
