"""What a run has to tell, and the silence outside a job."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, SupportsFloat

if TYPE_CHECKING:
    from muster.checkpoints import Manifest
    from muster.reports import CheckpointState

Metrics = Mapping[str, SupportsFloat]


class Telling(Protocol):
    """Hears what happens in a run. No call waits, and none raises."""

    @property
    def directive(self) -> Mapping[str, Any] | None:
        """What the platform last asked for."""

    def epoch_began(self, epoch: int, step: int) -> None:
        """An epoch began."""

    def epoch_ended(self, epoch: int, step: int, metrics: Metrics) -> None:
        """An epoch's data has been gone through."""

    def stepped(self, epoch: int, step: int, metrics: Metrics) -> None:
        """An optimiser step was made."""

    def measured(self, epoch: int, step: int, metrics: Metrics) -> None:
        """The script measured something."""

    def saved(self, state: "CheckpointState", manifest: "Manifest", uri: str) -> None:
        """A checkpoint reached *state*."""

    def save_failed(self, step: int, world_size: int, uri: str, reason: str) -> None:
        """A save was given up."""

    def close(self) -> None:
        """The run is over."""


class Silence:
    """Tells nobody."""

    directive = None

    def epoch_began(self, epoch: int, step: int) -> None:
        """Nothing."""

    def epoch_ended(self, epoch: int, step: int, metrics: Metrics) -> None:
        """Nothing."""

    def stepped(self, epoch: int, step: int, metrics: Metrics) -> None:
        """Nothing."""

    def measured(self, epoch: int, step: int, metrics: Metrics) -> None:
        """Nothing."""

    def saved(self, state: "CheckpointState", manifest: "Manifest", uri: str) -> None:
        """Nothing."""

    def save_failed(self, step: int, world_size: int, uri: str, reason: str) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""
