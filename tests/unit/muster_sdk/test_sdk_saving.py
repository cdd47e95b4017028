"""The commit protocol over a real directory (execution-cases.md, part A)."""

import contextlib
import errno
import json
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest

from gangs import on_every_rank
from muster.checkpoints import Manifest, Round
from muster_sdk.errors import SaveFailed
from muster_sdk.stores.local import LocalStore
from saving_rounds import Gang


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path, f"file://{tmp_path}")


class Full(LocalStore):
    """A directory on a disk with little room left."""

    room = 0

    @contextlib.contextmanager
    def writing(self, name: str) -> Iterator[BinaryIO]:
        with super().writing(name) as file:
            yield _Bounded(file, self.room)  # type: ignore[misc]


class _Bounded:
    def __init__(self, file: BinaryIO, room: int) -> None:
        self._file = file
        self._room = room

    def write(self, block: bytes) -> int:
        self._room -= len(block)
        if self._room < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return self._file.write(block)

    def flush(self) -> None:
        self._file.flush()


def test_a_save_is_committed_then_verified_and_told_in_that_order(store: LocalStore) -> None:
    gang = Gang(store)

    saved = gang.save(100)

    assert "step-100" == saved.id
    assert [("step-100", "durable"), ("step-100", "verified")] == gang.told
    assert {
        "rounds/attempt-1-round-0.json",
        "step-100/attempt-1-round-0/manifest.json",
        "step-100/attempt-1-round-0/part-0.npz",
    } == set(store.sizes())


def test_the_manifest_names_every_rank_s_part_with_size_and_hash(store: LocalStore) -> None:
    gang = Gang(store)

    on_every_rank(3, lambda ranks: gang.save(7, "x" * ranks.rank, ranks))

    manifest = json.loads(
        (store.directory / "step-7/attempt-1-round-0/manifest.json").read_bytes()
    )
    named = {part["name"]: part["size"] for part in manifest["parts"]}
    assert 3 == manifest["world_size"]
    assert ["part-0.npz", "part-1.npz", "part-2.npz"] == list(named)
    assert named == {
        name.rpartition("/")[2]: size for name, size in store.sizes().items() if "part" in name
    }


def test_the_manifest_is_the_last_write_though_a_rank_is_slow(tmp_path: Path) -> None:
    # Case T2: rank 1's part comes late; nothing may point at the set before.
    written: list[str] = []
    late = threading.Event()

    class Recording(LocalStore):
        @contextlib.contextmanager
        def writing(self, name: str) -> Iterator[BinaryIO]:
            if name.endswith("part-1.npz"):
                assert late.wait(20)
            with super().writing(name) as file:
                yield file
            written.append(name.rpartition("/")[2])
            late.set()

        def create(self, name: str, body: bytes) -> None:
            super().create(name, body)
            written.append(name.rpartition("/")[2])

    gang = Gang(Recording(tmp_path, f"file://{tmp_path}"))

    on_every_rank(2, lambda ranks: gang.save(5, "x", ranks))

    assert ["part-0.npz", "part-1.npz", "manifest.json"] == written[-3:]


def test_ranks_at_different_steps_save_nothing_and_resume_at_the_common_one(
    store: LocalStore,
) -> None:
    # Case T5.
    gang = Gang(store)
    on_every_rank(2, lambda ranks: gang.save(90, "x", ranks))
    before = store.sizes()

    outcomes = on_every_rank(2, lambda ranks: gang.save((100, 98)[ranks.rank], "x", ranks))

    assert ["the ranks save different steps: rank 0 100, rank 1 98"] * 2 == list(
        map(str, outcomes)
    )
    assert before == store.sizes()
    again = Gang(store, Round(2, 0))
    chosen = on_every_rank(2, lambda ranks: again.restorer(ranks).choose())
    assert [90, 90] == [manifest.step for manifest in chosen if isinstance(manifest, Manifest)]


def test_a_failure_of_one_rank_is_everybody_s_and_leaves_nothing(tmp_path: Path) -> None:
    store = LocalStore(tmp_path, f"file://{tmp_path}")
    full = Full(tmp_path, f"file://{tmp_path}")
    gang, starved = Gang(store), Gang(full)
    on_every_rank(2, lambda ranks: gang.save(1, "x", ranks))
    before = store.sizes()

    outcomes = on_every_rank(
        2, lambda ranks: (starved if ranks.rank == 1 else gang).save(2, "x", ranks)
    )

    assert [SaveFailed, SaveFailed] == list(map(type, outcomes))
    assert str(outcomes[0]).startswith(
        f"rank 1: no space left at file://{tmp_path}/step-2/attempt-1-round-0/part-1.npz: "
        "it needs about "
    )
    assert before == store.sizes()
    assert [("step-1", "durable"), ("step-1", "verified")] == gang.told


def test_a_full_disk_is_told_with_its_place_and_the_bytes(tmp_path: Path) -> None:
    gang = Gang(Full(tmp_path, f"file://{tmp_path}"))

    with pytest.raises(SaveFailed) as failed:
        gang.save(3, np.zeros(1_000_000))

    assert (
        f"no space left at file://{tmp_path}/step-3/attempt-1-round-0/part-0.npz: "
        "it needs about 8000000 bytes, 0 were written"
    ) == str(failed.value)
    assert {"rounds/attempt-1-round-0.json"} == set(gang.store.sizes())


def test_parts_that_do_not_read_back_are_never_verified(tmp_path: Path) -> None:
    class Rotting(LocalStore):
        @contextlib.contextmanager
        def writing(self, name: str) -> Iterator[BinaryIO]:
            with super().writing(name) as file:
                yield file
            path = self.directory / name
            body = bytearray(path.read_bytes())
            body[10] ^= 1
            path.write_bytes(body)

    gang = Gang(Rotting(tmp_path, f"file://{tmp_path}"))

    with pytest.raises(SaveFailed) as failed:
        gang.save(3)

    assert (
        f"file://{tmp_path}/step-3/attempt-1-round-0 does not read back: "
        "part-0.npz has another hash than its manifest says"
    ) == str(failed.value)
    assert [("step-3", "durable")] == gang.told
    assert {"rounds/attempt-1-round-0.json"} == set(gang.store.sizes())


def test_ranks_that_do_not_share_a_store_are_told_so(tmp_path: Path) -> None:
    stores = [LocalStore(tmp_path / name, f"file:///{name}") for name in "ab"]
    gangs = [Gang(store) for store in stores]

    outcomes = on_every_rank(2, lambda ranks: gangs[ranks.rank].save(1, "x", ranks))

    assert [
        "rank 0 cannot see part-1.npz in file:///a/step-1/attempt-1-round-0: "
        "do all nodes share this store?"
    ] * 2 == list(map(str, outcomes))


def test_saving_a_step_twice_keeps_the_first(store: LocalStore) -> None:
    gang = Gang(store)
    first = gang.save(5, "first")

    assert first == gang.save(5, "second")


def test_a_broken_checkpoint_of_this_round_is_saved_anew(store: LocalStore) -> None:
    gang = Gang(store)
    first = gang.save(5, "first")
    store.remove([first.location.part("part-0.npz")])

    second = gang.save(5, "second")

    assert "step-5/attempt-1-round-0" == Gang(store, Round(2, 0)).resumes_from()
    assert first.parts != second.parts


def test_a_rank_that_fails_unexpectedly_does_not_leave_the_others_waiting(
    tmp_path: Path,
) -> None:
    class Broken(LocalStore):
        def remove(self, names: Iterable[str]) -> None:
            raise RuntimeError("no")

        @contextlib.contextmanager
        def writing(self, name: str) -> Iterator[BinaryIO]:
            raise RuntimeError("the client library has a bug")
            yield

    sound = Gang(LocalStore(tmp_path, "file:///x"))
    broken = Gang(Broken(tmp_path, "file:///x"))

    outcomes = on_every_rank(
        2, lambda ranks: (broken if ranks.rank == 1 else sound).save(2, "x", ranks)
    )

    assert ["rank 1: RuntimeError: the client library has a bug"] * 2 == list(map(str, outcomes))
