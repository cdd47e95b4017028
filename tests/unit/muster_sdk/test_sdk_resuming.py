"""What a round resumes from, over a real directory (execution-cases.md, part A)."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from gangs import Together, on_every_rank
from muster.checkpoints import Round
from muster_sdk.errors import RestoreFailed, StaleRound
from muster_sdk.stores.local import LocalStore
from saving_rounds import Gang


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path, f"file://{tmp_path}")


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
