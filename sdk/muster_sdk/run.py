"""One training run, as its script sees it."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, SupportsFloat, TypeVar

from muster_sdk import randomness
from muster_sdk.errors import SaveFailed
from muster_sdk.progress import Progress
from muster_sdk.ranks import Gang
from muster_sdk.requests import Requests
from muster_sdk.results import Restored, Saved
from muster_sdk.settings import Settings
from muster_sdk.telling import Telling

if TYPE_CHECKING:
    from muster_sdk.checkpoints import Checkpoints

log = logging.getLogger(__name__)

T = TypeVar("T")


class Run:
    """Counts, reports, saves and resumes. Made by `muster_sdk.init()`.

    Every process of a gang makes one and calls the same methods; only rank 0 reports. Outside a
    job everything works and nothing is reported.
    """

    def __init__(
        self,
        settings: Settings,
        gang: Gang,
        telling: Telling,
        checkpoints: "Checkpoints | None",
    ) -> None:
        self._settings = settings
        self._gang = gang
        self._telling = telling
        self._checkpoints = checkpoints
        self._progress = Progress()
        self._metrics: dict[str, SupportsFloat] = {}
        self._has_batches = False
        self._has_warned = False
        self._requests = Requests(gang, telling)
        self._kept: tuple[Mapping[str, Any], Mapping[str, Any]] | None = None
        """What to save when the platform asks: the state of all ranks, and this rank's own."""
        self._closed_epoch: int | None = None
        """The epoch that a checkpoint takes for done; a step in it shows that it wasn't."""

    @property
    def rank(self) -> int:
        """This process among all of the gang, from 0."""
        return self._gang.rank

    @property
    def is_in_job(self) -> bool:
        """Whether Muster started this process."""
        return self._settings.is_in_job

    @property
    def epoch(self) -> int:
        """The epoch under way."""
        return self._progress.epoch

    @property
    def steps(self) -> int:
        """Steps done since the job began, those of earlier attempts included."""
        return self._progress.step

    @property
    def directive(self) -> Mapping[str, Any] | None:
        """What the platform last asked of this run; None if nothing."""
        return self._telling.directive

    def epochs(self, count: int) -> Iterator[int]:
        """The epochs 0 to *count* - 1; after `restore`, those that are still to do.

        Reports each one's start, and its end with the last metrics of it.
        """
        for epoch in range(self._progress.next_epoch, count):
            self._progress.begin_epoch(epoch)
            self._metrics, self._has_batches, self._closed_epoch = {}, False, None
            self._telling.epoch_began(epoch, self.steps)
            yield epoch
            self._progress.is_epoch_done = True
            self._telling.epoch_ended(epoch, self.steps, self._metrics)

    def batches(self, loader: Iterable[T]) -> Iterator[T]:
        """The batches of *loader*; after `restore` in mid-epoch, those that are still to do.

        Those already done are drawn again and left out, in the order that they had, so that no
        sample is seen twice or never. Needed only by scripts that save within an epoch.
        """
        self._has_batches = True
        done = self._progress.batches
        if done:
            now = randomness.captured()
            randomness.reinstate(self._progress.order)
        else:
            self._progress.order = randomness.captured()
        iterator = iter(loader)
        for _ in range(done):
            next(iterator, None)
        if done:
            randomness.reinstate(now)
        for batch in iterator:
            self._progress.batches += 1
            yield batch
        self._progress.is_epoch_done = True

    def step(self, **metrics: SupportsFloat) -> None:
        """Count one optimiser step. *metrics*, such as `loss=loss.item()`, are sampled.

        At most one step a second is reported, so this may be called as often as one likes.
        """
        self._progress.step += 1
        if self._closed_epoch == self.epoch:
            self._closed_epoch = None
            log.warning(
                "saved within an epoch, and resuming would leave out the rest of it: iterate over "
                "run.batches(loader), or save with epoch_done=False"
            )
        self._metrics.update(_detached(metrics))
        self._telling.stepped(self.epoch, self.steps, metrics)
        if self.is_in_job and self._requests.is_due(self.steps):
            self._save_as_asked()

    def register(self, *, per_rank: Mapping[str, Any] | None = None, **state: Any) -> None:
        """Say what to save when the platform asks for a checkpoint, as before an eviction.

        By default that is what `save` was given last, or what `restore` brought back: call this
        once before training where the first `save` comes late. Modules and optimisers are saved
        as they are by then, plain values as they are given here.
        """
        self._kept = (state, per_rank or {})

    def log(self, **metrics: SupportsFloat) -> None:
        """Report *metrics*, each call: for what is measured seldom, such as an accuracy."""
        self._metrics.update(_detached(metrics))
        self._telling.measured(self.epoch, self.steps, metrics)

    def restore(self, **targets: Any) -> Restored:
        """Go on from the newest verified checkpoint, if there is one.

        Each target, such as `model=model`, gets the state that was saved under its name by
        `load_state_dict`. Plain values are in what this returns: `start["best"]`. `epochs` then
        goes on at the right place, and the random generators where they were. Checkpoints that do
        not read back as written are passed over, with a warning; where all are, this raises
        `RestoreFailed` rather than losing their work. All ranks restore the same one.
        """
        loaded = self._checkpoints.load() if self._checkpoints is not None else None
        if loaded is None:
            return Restored()
        for name, target in targets.items():
            loaded.put_back(name, target)
        whole = {**loaded.state, **targets}
        self._kept = (
            {name: value for name, value in whole.items() if name not in loaded.own},
            {name: value for name, value in whole.items() if name in loaded.own},
        )
        self._progress = Progress.from_state(loaded.progress)
        if "rng" in loaded.progress:
            randomness.reinstate(loaded.progress["rng"])
        if self.rank == 0:
            log.info("resumed: id=%s epoch=%d", loaded.id, self._progress.next_epoch)
        return Restored(loaded.id, self.steps, self._progress.next_epoch, loaded.state)

    def save(
        self,
        step: int | None = None,
        *,
        per_rank: Mapping[str, Any] | None = None,
        epoch_done: bool | None = None,
        on_error: Literal["warn", "raise"] = "warn",
        **state: Any,
    ) -> Saved | None:
        """Save a checkpoint, all ranks together, and verify it by reading it back.

        *state* is what all ranks hold alike, written once: modules and optimisers by their
        `state_dict`, plain values as they are. *per_rank* is what each rank holds for itself.
        *step* names the checkpoint, by default the steps counted. *epoch_done* says whether
        resuming goes on with the next epoch; by default it does, unless `run.batches` is still
        under way. A save that fails is reported and warned of, its parts are removed, earlier
        checkpoints stand and training goes on (the answer is None); `on_error="raise"` raises.
        """
        if on_error not in {"warn", "raise"}:
            raise ValueError(f"on_error must be 'warn' or 'raise', is {on_error!r}")
        if step is not None:
            self._progress.step = step
        self._kept = (state, per_rank or {})
        if self._checkpoints is None:
            self._warn_of_no_place()
            return None
        return self._save(
            self._checkpoints,
            self._kept,
            is_epoch_done=self._is_epoch_over() if epoch_done is None else epoch_done,
            on_error=on_error,
        )

    def _save_as_asked(self) -> None:
        """Save what was saved last time, as it is now: the gang is about to leave."""
        if self._checkpoints is None:
            self._warn_of_no_place()
        elif self._kept is None:
            log.warning(
                "a checkpoint was asked for, and nothing is known that could be saved: call "
                "run.register(model=model, …) before the first epoch"
            )
        else:
            # Without run.batches nobody knows the place in the epoch, which is then begun anew.
            is_over = self._has_batches and self._progress.is_epoch_done
            self._save(self._checkpoints, self._kept, is_epoch_done=is_over, on_error="warn")

    def _save(
        self,
        checkpoints: "Checkpoints",
        kept: tuple[Mapping[str, Any], Mapping[str, Any]],
        *,
        is_epoch_done: bool,
        on_error: str,
    ) -> Saved | None:
        state, per_rank = kept
        progress = self._progress.as_state()
        progress["is_epoch_done"] = is_epoch_done
        try:
            return checkpoints.save(self.steps, shared=state, per_rank=per_rank, progress=progress)
        except SaveFailed as error:
            log.warning("checkpoint not saved: id=step-%d reason=%s", self.steps, error)
            size = self._gang.ranks().size
            self._telling.save_failed(self.steps, size, checkpoints.uri, str(error))
            if on_error == "raise":
                raise
            return None

    def close(self) -> None:
        """Send what is left to report, for at most a few seconds. Happens by itself at exit."""
        self._telling.close()

    def _warn_of_no_place(self) -> None:
        if self.is_in_job and self.rank == 0 and not self._has_warned:
            log.warning("nothing is saved: the job has no spec.checkpoint.uri")
        self._has_warned = True

    def _is_epoch_over(self) -> bool:
        if self._has_batches:
            return self._progress.is_epoch_done
        self._closed_epoch = self.epoch
        return True


def _detached(metrics: Mapping[str, Any]) -> dict[str, SupportsFloat]:
    """The same without the graph that a tensor drags along, and without waiting for its device."""
    return {
        name: value.detach() if hasattr(value, "detach") else value
        for name, value in metrics.items()
    }
