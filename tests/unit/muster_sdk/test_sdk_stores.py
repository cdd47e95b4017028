"""What a store must do, and how one that can't is refused."""

import errno
import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from muster_sdk.errors import StoreRefused
from muster_sdk.stores import Store, open_store
from muster_sdk.stores.local import LocalStore
from muster_sdk.stores.probe import prove_exclusive


class Careless(MemoryFileSystem):
    """Takes the exclusive mode and overwrites, as many implementations do."""

    protocol = "careless"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        return super()._open(path, mode.replace("x", "w"), **options)


@pytest.fixture(params=["directory", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "directory":
        yield open_store(str(tmp_path / "checkpoints"))
        return
    uri = f"memory://{uuid.uuid4().hex}"
    yield open_store(uri)
    fsspec.filesystem("memory").rm(uri.removeprefix("memory:/"), recursive=True)


def test_an_object_is_created_once(store: Store) -> None:
    store.create("a/b.json", b"first")

    with pytest.raises(FileExistsError):
        store.create("a/b.json", b"second")

    with store.reading("a/b.json") as file:
        assert b"first" == file.read()
    assert {"a/b.json": 5} == store.sizes()


def test_what_is_written_is_listed_read_and_removed(store: Store) -> None:
    with store.writing("a/part") as file:
        file.write(b"12")
        file.write(b"345")
    store.create("b", b"")

    assert {"a/part": 5, "b": 0} == store.sizes()

    store.remove(["a/part", "never/there"])

    assert {"b": 0} == store.sizes()
    with pytest.raises(FileNotFoundError), store.reading("a/part"):
        pass


def test_an_empty_store_lists_nothing(store: Store) -> None:
    assert {} == store.sizes()
    store.create("clean-up needs something to remove", b"")


def test_a_sound_store_passes_the_probe_and_keeps_no_trace_of_it(store: Store) -> None:
    prove_exclusive(store)

    assert {} == store.sizes()
    store.create("clean-up needs something to remove", b"")


def test_removing_takes_empty_directories_along_and_no_others(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    store.create("step-1/a/part", b"")
    store.create("step-1/b/part", b"")

    store.remove(["step-1/a/part"])

    assert ["b"] == [path.name for path in (tmp_path / "step-1").iterdir()]

    store.remove(["step-1/b/part"])

    assert tmp_path.exists()
    assert [] == list(tmp_path.iterdir())


def test_without_hard_links_a_file_is_still_created_exclusively(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The system call is the foreign thing here; no file system of the test machine lacks it.
    def link(*_: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    store = open_store(str(tmp_path))

    store.create("a", b"first")

    with pytest.raises(FileExistsError):
        store.create("a", b"second")
    assert {"a": 5} == store.sizes()


def test_a_store_that_overwrites_is_refused() -> None:
    fsspec.register_implementation("careless", Careless, clobber=True)

    with pytest.raises(StoreRefused) as refused:
        prove_exclusive(open_store("careless://bucket"))

    assert (
        "careless://bucket cannot hold checkpoints: it replaces an object that should only be "
        "created, so two attempts could overwrite each other's; use a store with conditional "
        "writes (S3, GCS, Azure, a file system with hard links)"
    ) == str(refused.value)
    assert {} == open_store("careless://bucket").sizes()


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(StoreRefused) as refused:
        prove_exclusive(open_store(f"file://{tmp_path}/file"))

    assert str(refused.value).startswith(
        f"file://{tmp_path}/file cannot hold checkpoints: FileExistsError: "
    )


URIS: dict[str, str] = {
    "file://checkpoints/x": "file://checkpoints/x names a host, 'checkpoints'; "
    "a path has three slashes: file:///…",
    "nosuch://bucket": "nosuch://bucket cannot be opened: Protocol not known: nosuch",
}


@pytest.mark.parametrize("uri", URIS)
def test_a_uri_that_is_none_is_refused(uri: str) -> None:
    with pytest.raises(StoreRefused) as refused:
        open_store(uri)

    assert str(refused.value).startswith(URIS[uri])


DIRECTORIES: dict[str, Callable[[Path], str]] = {
    "a path": str,
    "a URI": lambda path: f"file://{path}",
    "a URI with a slash at its end": lambda path: f"file://{path}/",
}


@pytest.mark.parametrize("claim", DIRECTORIES)
def test_a_directory_may_be_named_by(claim: str, tmp_path: Path) -> None:
    store = open_store(DIRECTORIES[claim](tmp_path))

    assert isinstance(store, LocalStore)
    assert (tmp_path, f"file://{tmp_path}") == (store.directory, store.uri)
