"""The commit protocol over a real directory (execution-cases.md, part A)."""

import contextlib
import errno
import json
import threading
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest

from gangs import Together, on_every_rank
from muster.checkpoints import Manifest, Round
from muster.reports import CheckpointState
from muster_sdk.errors import RestoreFailed, SaveFailed, StaleRound
from muster_sdk.membership import Membership
from muster_sdk.ranks import Alone, Ranks
from muster_sdk.restoring import Restorer
from muster_sdk.saving import Saver
from muster_sdk.stores import Store
from muster_sdk.stores.local import LocalStore

NOW = datetime(2026, 12, 1, 9, 30, tzinfo=UTC)
FIRST = Round(1, 0)


def now() -> datetime:
    return NOW


class Gang:
    """One round of a gang over one store; keeps what was told."""

    def __init__(self, store: Store, round_: Round | None = FIRST) -> None:
        self.store = store
        self.told: list[tuple[str, str]] = []
        self.membership = Membership(store, round_, "uid", now)

    def saver(self, ranks: Ranks | None = None) -> Saver:
        def told(state: CheckpointState, manifest: Manifest) -> None:
            self.told.append((manifest.id, state.value))

        return Saver(self.store, ranks or Alone(), self.membership, "uid", now, told)

    def save(self, step: int, value: object = "x", ranks: Ranks | None = None) -> Manifest:
        ranks = ranks or Alone()
        return self.saver(ranks).save(step, {f"part-{ranks.rank}.npz": {"state": value}})

    def restorer(self, ranks: Ranks | None = None) -> Restorer:
        return Restorer(self.store, ranks or Alone(), self.membership, "uid")

    def resumes_from(self) -> str | None:
        chosen = self.restorer().choose()
        return chosen and chosen.location.directory


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


def test_what_a_killed_save_left_behind_is_not_resumed_from(store: LocalStore) -> None:
    # Case T1: 100 is committed; of 200 only one part landed.
    gang = Gang(store)
    gang.save(100)
    with store.writing("step-200/attempt-1-round-0/part-0.npz") as file:
        file.write(b"half")

    assert "step-100/attempt-1-round-0" == Gang(store, Round(2, 0)).resumes_from()
    assert "step-100/attempt-1-round-0/part-0.npz" in store.sizes()


def test_two_attempts_at_one_step_never_mix(store: LocalStore) -> None:
    # Case T3: attempt 1 left a part and a note, attempt 2 saves the same step.
    first = Gang(store)
    first.save(50)
    for name in ("part-0.npz", "note-a"):
        with store.writing(f"step-100/attempt-1-round-0/{name}") as file:
            file.write(b"of attempt 1")
    second = Gang(store, Round(2, 0))
    assert "step-50/attempt-1-round-0" == second.resumes_from()

    saved = second.save(100)

    assert Round(2, 0) == saved.location.round
    assert ["part-0.npz"] == [part.name for part in saved.parts]
    assert "step-100/attempt-2-round-0" == Gang(store, Round(3, 0)).resumes_from()


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


def test_the_processes_of_a_round_may_be_restarted(store: LocalStore) -> None:
    Gang(store, Round(1, 0)).save(50)
    before = Gang(store, Round(2, 0))
    before.resumes_from()
    before.save(100)

    again = Gang(store, Round(2, 0))

    assert "step-100/attempt-2-round-0" == again.resumes_from()
    assert 200 == again.save(200).step


def test_an_old_attempt_can_neither_save_nor_resume(store: LocalStore) -> None:
    old = Gang(store)
    old.save(100)
    Gang(store, Round(2, 0)).resumes_from()

    for deed in (lambda: old.save(200), old.resumes_from):
        with pytest.raises(StaleRound) as stale:
            deed()
        assert (
            f"attempt 2, round 0 has begun at {store.uri}: this process (attempt 1, round 0) "
            "must end and saves nothing more"
        ) == str(stale.value)
    assert not any(name.startswith("step-200") for name in store.sizes())


def test_what_an_old_attempt_slipped_in_is_not_resumed_from(store: LocalStore) -> None:
    # It looked before the new round began, and committed after.
    old = Gang(store)
    old.save(100)
    held = store.sizes()

    class Behind(LocalStore):
        def sizes(self) -> dict[str, int]:
            return {**held, **{n: s for n, s in super().sizes().items() if "step-300" in n}}

    assert "step-100/attempt-1-round-0" == Gang(store, Round(2, 0)).resumes_from()
    zombie = Gang(Behind(store.directory, store.uri))

    assert 300 == zombie.save(300).step
    assert "step-100/attempt-1-round-0" == Gang(store, Round(3, 0)).resumes_from()


def test_broken_checkpoints_are_passed_over_with_a_reason(
    store: LocalStore, caplog: pytest.LogCaptureFixture
) -> None:
    # Case T11 on a disk: hash, size, a missing part, a torn manifest; 10 is sound.
    gang = Gang(store)
    for step in (10, 20, 30, 40, 50):
        gang.save(step, "a value of some length")
    part = store.directory / "step-{}/attempt-1-round-0/part-0.npz"
    flipped = Path(str(part).format(20))
    body = bytearray(flipped.read_bytes())
    body[-1] ^= 1
    flipped.write_bytes(body)
    Path(str(part).format(30)).write_bytes(b"")
    Path(str(part).format(40)).unlink()
    Path(str(part).format(50)).with_name("manifest.json").write_bytes(b'{"format"')

    assert "step-10/attempt-1-round-0" == Gang(store, Round(2, 0)).resumes_from()
    assert [
        "its manifest cannot be read",
        "part-0.npz is missing",
        "part-0.npz has 0 bytes instead of",
        "part-0.npz has another hash than its manifest says",
    ] == [
        next(reason for reason in REASONS if reason in record.getMessage())
        for record in caplog.records
    ]


REASONS = (
    "its manifest cannot be read",
    "part-0.npz is missing",
    "part-0.npz has 0 bytes instead of",
    "part-0.npz has another hash than its manifest says",
)


def test_where_all_are_broken_nobody_starts_from_nothing(store: LocalStore) -> None:
    gang = Gang(store)
    gang.save(10)
    store.remove(["step-10/attempt-1-round-0/part-0.npz"])
    again = Gang(store, Round(2, 0))

    outcomes = on_every_rank(2, lambda ranks: again.restorer(ranks).choose())

    assert [
        f"no checkpoint at {store.uri} can be used, and starting anew would lose what they hold "
        "(step-10/attempt-1-round-0: part-0.npz is missing); mend or remove them"
    ] * 2 == list(map(str, outcomes))
    assert "rounds/attempt-2-round-0.json" not in store.sizes()


def test_a_part_that_cannot_be_reached_is_not_taken_for_broken(tmp_path: Path) -> None:
    class Away(LocalStore):
        @contextlib.contextmanager
        def reading(self, name: str) -> Iterator[BinaryIO]:
            if "part-" in name:
                raise TimeoutError("timed out")
            with super().reading(name) as file:
                yield file

    Gang(LocalStore(tmp_path, "file:///x")).save(10)

    with pytest.raises(RestoreFailed) as failed:
        Gang(Away(tmp_path, "file:///x"), Round(2, 0)).resumes_from()

    assert "TimeoutError: timed out" == str(failed.value)


def test_all_ranks_read_the_same_checkpoint_and_each_its_own_part(store: LocalStore) -> None:
    gang = Gang(store)

    def save(ranks: Together) -> None:
        parts: dict[str, Any] = {f"part-{ranks.rank}.npz": {"mine": ranks.rank}}
        if ranks.rank == 0:
            parts["replicated.npz"] = {"ours": "x"}
        gang.saver(ranks).save(10, parts)

    on_every_rank(2, save)
    again = Gang(store, Round(2, 0))

    def load(ranks: Together) -> object:
        restorer = again.restorer(ranks)
        manifest = restorer.choose()
        assert manifest is not None
        return restorer.load(manifest)

    assert [({"ours": "x"}, {"mine": 0}), ({"ours": "x"}, {"mine": 1})] == on_every_rank(2, load)
    grown = Gang(store, Round(3, 0))
    again = grown
    assert ({"ours": "x"}, {}) == on_every_rank(3, load)[2]


def test_outside_a_job_each_run_is_an_attempt_of_its_own(store: LocalStore) -> None:
    first = Gang(store, None)
    assert first.resumes_from() is None
    first.save(10)

    second = Gang(store, None)
    assert "step-10/attempt-1-round-0" == second.resumes_from()
    assert Round(2, 0) == second.save(20).location.round

    with pytest.raises(StaleRound):
        first.save(30)


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
