"""Where in its data a training is: what is saved so that resuming goes on at the right place."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from muster_sdk import randomness


@dataclass(slots=True)
class Progress:
    """The one mutable thing that `Run` counts in."""

    epoch: int = 0
    """The epoch under way, or the last one if it is done."""
    step: int = 0
    """Steps done since the job began, over all attempts."""
    batches: int = 0
    """Batches that `run.batches` has handed out in this epoch and that are done."""
    is_epoch_done: bool = False
    """Whether the epoch's data has been gone through; resuming then goes on with the next one."""
    order: dict[str, Any] = field(default_factory=dict)
    """The random generators when this epoch's batches began: they decide the order of the data."""

    @property
    def next_epoch(self) -> int:
        """The epoch with which a resumed run goes on."""
        return self.epoch + 1 if self.is_epoch_done else self.epoch

    def begin_epoch(self, epoch: int) -> None:
        """Count in *epoch* from here; keep the place in it if this is where a save was made."""
        if epoch != self.epoch or self.is_epoch_done:
            self.batches, self.order = 0, {}
        self.epoch, self.is_epoch_done = epoch, False

    def as_state(self) -> dict[str, Any]:
        """What a checkpoint keeps, the generators included."""
        return {**asdict(self), "rng": randomness.captured()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "Progress":
        """The progress that `as_state` gave."""
        return cls(**{name: state[name] for name in cls.__slots__})
