"""A checkpoint that the platform asks for: when each rank saves, and what."""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from muster.checkpoints import Manifest
from muster.reports import CheckpointState
from muster_sdk.checkpoints import Checkpoints
from muster_sdk.ranks import Gang
from muster_sdk.requests import Requests
from muster_sdk.run import Run
from muster_sdk.settings import Settings
from muster_sdk.stores.local import LocalStore
from muster_sdk.telling import Silence


class Platform(Silence):
    """Asks, and hears which checkpoints are verified."""

    def __init__(self) -> None:
        self.directive: dict[str, Any] | None = None
        self.verified: list[str] = []

    def asks(self, name: str, kind: str = "checkpoint") -> None:
        self.directive = {"id": name, "kind": kind, "deadline": "2026-12-01T09:30:00Z"}

    def saved(self, state: CheckpointState, manifest: Manifest, uri: str) -> None:
        if state is CheckpointState.VERIFIED:
            self.verified.append(manifest.id)


class Shared:
    """One rank of several with a common board."""

    def __init__(self, rank: int, words: dict[str, str]) -> None:
        self.rank = rank
        self._words = words

    def board(self) -> "Shared":
        return self

    def post(self, key: str, text: str) -> None:
        self._words[key] = text

    def read(self, key: str) -> str | None:
        return self._words.get(key)


class Ranks:
    """Several ranks in step, and a clock."""

    def __init__(self, size: int, step_seconds: float = 0.1) -> None:
        words: dict[str, str] = {}
        self.platform = Platform()
        self.now = 0.0
        self.step = 0
        self._step_seconds = step_seconds
        self._requests = [
            Requests(Shared(rank, words), self.platform if rank == 0 else Silence(), self._clock)
            for rank in range(size)
        ]

    def _clock(self) -> float:
        return self.now

    def steps(self, count: int) -> list[int]:
        """The steps after which all ranks save."""
        due = []
        for _ in range(count):
            self.step += 1
            self.now += self._step_seconds
            # The last rank first: it may come to a step before rank 0 does.
            answers = [each.is_due(self.step) for each in reversed(self._requests)]
            assert 1 == len(set(answers)), f"the ranks differ at step {self.step}"
            due += [self.step] if answers[0] else []
        return due


def alone() -> tuple[Requests, Platform]:
    platform = Platform()
    return Requests(Gang(Settings()), platform), platform


def test_a_process_that_is_alone_saves_at_once_and_once() -> None:
    requests, platform = alone()
    platform.asks("d1")

    assert [True, False] == [requests.is_due(step) for step in (5, 6)]

    platform.asks("d2")

    assert [True, False] == [requests.is_due(step) for step in (7, 8)]


@pytest.mark.parametrize("kind", ["profile", ""])
def test_nothing_else_makes_it_save(kind: str) -> None:
    requests, platform = alone()

    assert not requests.is_due(1)

    platform.asks("d1", kind)

    assert not requests.is_due(2)

    platform.asks("")

    assert not requests.is_due(3)


def test_all_ranks_save_after_the_same_step() -> None:
    ranks = Ranks(3)

    assert [] == ranks.steps(10)

    ranks.platform.asks("d1")

    assert [13] == ranks.steps(10)

    ranks.platform.asks("d2")

    assert [23] == ranks.steps(10)


def test_with_short_steps_it_is_named_further_ahead() -> None:
    ranks = Ranks(2, step_seconds=0.001)
    ranks.steps(100)
    ranks.platform.asks("d1")
    (at,) = ranks.steps(200)

    assert 30 < at - 100 < 90


class Model:
    def __init__(self, weight: float = 0.0) -> None:
        self.weight = weight

    def state_dict(self) -> dict[str, float]:
        return {"weight": self.weight}

    def load_state_dict(self, state: Mapping[str, float]) -> None:
        self.weight = state["weight"]


def run_in(place: Path | None, platform: Platform, attempt: int = 1) -> Run:
    settings = Settings(job="t", job_uid="u", attempt=attempt)
    gang = Gang(settings)
    if place is None:
        return Run(settings, gang, platform, None)
    store = LocalStore(place, f"file://{place}")
    moment = datetime(2026, 12, 1, tzinfo=UTC)
    checkpoints = Checkpoints(store, settings, gang, now=lambda: moment, telling=platform)
    return Run(settings, gang, platform, checkpoints)


def test_what_was_saved_last_is_saved_as_it_is_now(tmp_path: Path) -> None:
    platform, model = Platform(), Model(1.0)
    run = run_in(tmp_path, platform)
    for epoch in run.epochs(2):
        run.step()
        if epoch == 1:
            model.weight = 2.0
            platform.asks("d1")
            run.step()
            break
        run.save(model=model, best=7, per_rank={"mine": 3})

    assert ["step-1", "step-3"] == platform.verified

    again, restored = run_in(tmp_path, Platform(), attempt=2), Model()
    start = again.restore(model=restored)

    # The place in the epoch is not known without run.batches: it is begun anew.
    assert ("step-3", 3, 1) == (start.id, start.step, start.epoch)
    assert (2.0, 7, 3) == (restored.weight, start["best"], start["mine"])


def test_within_an_epoch_it_goes_on_at_the_next_batch(tmp_path: Path) -> None:
    platform = Platform()
    run = run_in(tmp_path, platform)
    run.register(model=Model(4.0))
    for _ in run.epochs(1):
        for batch in run.batches(range(5)):
            if batch == 2:
                platform.asks("d1")
            run.step()
            if batch == 2:
                break

    again = run_in(tmp_path, Platform(), attempt=2)
    again.restore(model=Model())

    assert [3, 4] == [batch for _ in again.epochs(1) for batch in again.batches(range(5))]


def test_what_was_restored_is_what_is_saved(tmp_path: Path) -> None:
    first = run_in(tmp_path, Platform())
    first.save(step=1, model=Model(1.0), best=7, per_rank={"mine": 3})
    platform, model = Platform(), Model()
    second = run_in(tmp_path, platform, attempt=2)
    second.restore(model=model)
    model.weight = 5.0
    platform.asks("d1")
    second.step()
    third, restored = run_in(tmp_path, Platform(), attempt=3), Model()
    start = third.restore(model=restored)

    assert ["step-2"] == platform.verified
    assert (5.0, 7, 3) == (restored.weight, start["best"], start["mine"])


def test_a_checkpoint_that_is_there_is_told_again(tmp_path: Path) -> None:
    platform = Platform()
    run = run_in(tmp_path, platform)
    run.save(step=3, model=Model())
    run.save(step=3, model=Model())

    assert ["step-3", "step-3"] == platform.verified


def test_a_run_that_has_saved_nothing_says_what_to_do(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    platform = Platform()
    run = run_in(tmp_path, platform)
    platform.asks("d1")
    with caplog.at_level(logging.WARNING):
        run.step()

    assert [] == platform.verified
    assert "call run.register(model=model, …)" in caplog.text


def test_a_job_without_a_place_for_checkpoints_trains_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    platform = Platform()
    run = run_in(None, platform)
    platform.asks("d1")
    with caplog.at_level(logging.WARNING):
        run.step()

    assert 1 == run.steps
    assert "the job has no spec.checkpoint.uri" in caplog.text
