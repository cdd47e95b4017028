"""What a script does with a run, outside a job and in one."""

import logging
import random
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import muster_sdk as muster
from muster.checkpoints import Manifest
from muster.errors import Unavailable
from muster.reports import CheckpointState
from muster_sdk.checkpoints import Checkpoints
from muster_sdk.errors import RestoreFailed, SaveFailed
from muster_sdk.ranks import Gang
from muster_sdk.run import Run
from muster_sdk.settings import Settings
from muster_sdk.stores.local import LocalStore
from muster_sdk.telling import Silence


def now() -> datetime:
    return datetime(2026, 12, 1, 9, 30, tzinfo=UTC)


class Heard(Silence):
    """Keeps what a run tells."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def epoch_began(self, epoch: int, step: int) -> None:
        self.lines.append(f"epoch {epoch} began at {step}")

    def epoch_ended(self, epoch: int, step: int, metrics: Mapping[str, Any]) -> None:
        self.lines.append(f"epoch {epoch} ended at {step} {metrics}")

    def stepped(self, epoch: int, step: int, metrics: Mapping[str, Any]) -> None:
        self.lines.append(f"step {step} {metrics}")

    def measured(self, epoch: int, step: int, metrics: Mapping[str, Any]) -> None:
        self.lines.append(f"measured {metrics}")

    def saved(self, state: CheckpointState, manifest: Manifest, uri: str) -> None:
        self.lines.append(f"{manifest.id} {state}")

    def save_failed(self, step: int, world_size: int, uri: str, reason: str) -> None:
        self.lines.append(f"step-{step} failed: {reason}")


class Model:
    """What a framework's module looks like to us."""

    def __init__(self, weight: float = 0.0) -> None:
        self.weight = weight

    def state_dict(self) -> dict[str, float]:
        return {"weight": self.weight}

    def load_state_dict(self, state: Mapping[str, float]) -> None:
        self.weight = state["weight"]


def run_in(place: Path | None, heard: Silence | None = None, **settings: Any) -> Run:
    told = heard or Silence()
    values = Settings(**settings)
    gang = Gang(values)
    if place is None:
        return Run(values, gang, told, None)
    store = LocalStore(place, f"file://{place}")
    return Run(values, gang, told, Checkpoints(store, values, gang, now=now, telling=told))


def test_outside_a_job_a_script_runs_and_keeps_nothing(tmp_path: Path) -> None:
    run = muster.init(environ={})

    start = run.restore(model=Model())
    seen = []
    for epoch in run.epochs(2):
        run.step(loss=0.5)
        run.log(accuracy=0.9)
        seen.append((epoch, run.save(model=Model())))
    run.close()

    assert not start
    assert [(0, None), (1, None)] == seen
    assert (2, 0, False, None) == (run.steps, run.rank, run.is_in_job, run.directive)


def test_a_run_tells_its_epochs_steps_and_checkpoints_in_order(tmp_path: Path) -> None:
    heard = Heard()
    run = run_in(tmp_path, heard)

    for _ in run.epochs(1):
        run.step(loss=0.5)
        run.step(loss=0.25)
        run.log(accuracy=0.9)
        run.save()

    assert [
        "epoch 0 began at 0",
        "step 1 {'loss': 0.5}",
        "step 2 {'loss': 0.25}",
        "measured {'accuracy': 0.9}",
        "step-2 durable",
        "step-2 verified",
        "epoch 0 ended at 2 {'loss': 0.25, 'accuracy': 0.9}",
    ] == heard.lines


def test_an_epoch_that_is_left_has_not_ended() -> None:
    heard = Heard()

    for _ in run_in(None, heard).epochs(3):
        break

    assert ["epoch 0 began at 0"] == heard.lines


def test_a_resumed_run_goes_on_with_the_next_epoch_and_step(tmp_path: Path) -> None:
    first = muster.init(tmp_path, environ={})
    for epoch in first.epochs(5):
        for _ in range(10):
            first.step()
        first.save(model=Model(epoch + 0.5), best=epoch, history=[1.0] * epoch)
        if epoch == 2:
            break

    second = muster.init(f"file://{tmp_path}", environ={})
    model = Model()
    start = second.restore(model=model)

    assert start
    assert ("step-30", 30, 3) == (start.id, start.step, start.epoch)
    assert (2.5, 2, [1.0, 1.0]) == (model.weight, start["best"], start["history"])
    assert {"model", "best", "history"} == set(start)
    assert [3, 4] == list(second.epochs(5))
    assert "Restored(id='step-30', step=30, epoch=3)" == repr(start)


def test_a_run_that_had_ended_has_no_epoch_left(tmp_path: Path) -> None:
    first = run_in(tmp_path)
    for _ in first.epochs(2):
        first.step()
        first.save()
    second = run_in(tmp_path)
    second.restore()

    assert [] == list(second.epochs(2))


def samples(run: Run, *, stop_after: int | None = None) -> Iterator[int]:
    """10 samples, shuffled by Python's and NumPy's generators, in batches of 2, each saved."""
    done = 0
    for _ in run.epochs(3):
        for batch in run.batches(Shuffled()):
            yield from batch
            run.step()
            random.random()  # As dropout would: drawn by the training itself.
            run.save()
            done += 1
            if done == stop_after:
                return


class Shuffled:
    def __iter__(self) -> Iterator[list[int]]:
        order = list(range(10))
        random.shuffle(order)
        np.random.shuffle(order)
        return iter([order[at : at + 2] for at in range(0, 10, 2)])


@pytest.mark.parametrize("stopped_after", [1, 4, 5, 7, 14])
def test_a_run_stopped_within_an_epoch_sees_each_sample_as_if_it_had_not_been(
    tmp_path: Path, stopped_after: int
) -> None:
    # Case T12.
    random.seed(7)
    np.random.seed(7)
    whole = list(samples(run_in(None)))
    random.seed(7)
    np.random.seed(7)
    first = list(samples(run_in(tmp_path), stop_after=stopped_after))

    random.seed(99)
    np.random.seed(99)
    resumed = run_in(tmp_path)
    assert resumed.restore()
    second = list(samples(resumed))

    assert whole == first + second


def test_a_save_within_an_epoch_without_batches_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = run_in(tmp_path)
    for _ in run.epochs(1):
        run.step()
        run.save()
        run.step()
        run.step()

    assert [
        "saved within an epoch, and resuming would leave out the rest of it: iterate over "
        "run.batches(loader), or save with epoch_done=False"
    ] == [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def test_the_script_may_say_itself_that_an_epoch_is_not_done(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = run_in(tmp_path)
    for _ in run.epochs(1):
        run.step()
        run.save(epoch_done=False)
        run.step()
    again = run_in(tmp_path)
    start = again.restore()

    assert [] == [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert (0, [0, 1]) == (start.epoch, list(again.epochs(2)))


def test_a_step_that_the_script_counts_itself_names_the_checkpoint(tmp_path: Path) -> None:
    run = run_in(tmp_path)

    saved = run.save(step=1000)

    assert saved is not None
    assert ("step-1000", 1000, 1000) == (saved.id, saved.step, run.steps)
    assert f"file://{tmp_path}/step-1000/attempt-1-round-0" == saved.uri


def test_what_a_rank_holds_for_itself_is_given_back_to_it(tmp_path: Path) -> None:
    run_in(tmp_path).save(1, per_rank={"cursor": 17}, shared="x")

    start = run_in(tmp_path).restore()

    assert {"cursor": 17, "shared": "x"} == dict(start)


def test_a_save_that_fails_is_told_and_training_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    heard = Heard()
    run = run_in(tmp_path, heard)
    assert run.save(1) is not None

    assert run.save(2, thing=object()) is None

    reason = (
        "state.thing cannot be saved, its type is object: save numbers, text, lists, mappings "
        "or arrays"
    )
    assert [f"checkpoint not saved: id=step-2 reason={reason}"] == caplog.messages
    assert f"step-2 failed: {reason}" == heard.lines[-1]
    assert "step-1" == run_in(tmp_path).restore().id


def test_a_script_may_want_a_failed_save_raised(tmp_path: Path) -> None:
    with pytest.raises(SaveFailed):
        run_in(tmp_path).save(1, on_error="raise", thing=object())


def test_a_wrong_wish_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="on_error must be 'warn' or 'raise', is 'ignore'"):
        run_in(tmp_path).save(1, on_error="ignore")  # type: ignore[arg-type]


TARGETS: dict[str, tuple[dict[str, Any], str]] = {
    "a name that was not saved": (
        {"optimizer": Model()},
        "step-1 holds no 'optimizer'; it holds best, model",
    ),
    "a value that cannot take it": (
        {"best": 1},
        "best has no load_state_dict() to restore it: take its value from what restore() gives "
        "back",
    ),
}


@pytest.mark.parametrize("claim", TARGETS)
def test_a_target_that_cannot_be_restored_is_named(claim: str, tmp_path: Path) -> None:
    targets, want = TARGETS[claim]
    run_in(tmp_path).save(1, model=Model(1.0), best=3)

    with pytest.raises(RestoreFailed) as failed:
        run_in(tmp_path).restore(**targets)

    assert want == str(failed.value)


def test_ranks_that_cannot_speak_to_each_other_do_not_save(tmp_path: Path) -> None:
    run = run_in(tmp_path, rank=1, world_size=4)

    with pytest.raises(Unavailable) as refused:
        run.save(1)

    assert str(refused.value).startswith("this is one of 4 processes, and they agree on a")
    assert [] == list(tmp_path.iterdir())


def test_a_job_without_a_place_for_checkpoints_is_told_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    run = run_in(None, job="digits")
    assert not caplog.messages

    for step in (1, 2):
        assert run.save(step) is None

    assert ["nothing is saved: the job has no spec.checkpoint.uri"] == caplog.messages


def test_in_a_job_the_round_is_the_platform_s(tmp_path: Path) -> None:
    run = run_in(tmp_path, job="digits", job_uid="uid", attempt=3, round=2)

    saved = run.save(1)

    assert saved is not None
    assert saved.uri.endswith("/step-1/attempt-3-round-2")
