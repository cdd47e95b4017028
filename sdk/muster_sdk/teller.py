"""Tells the API what happens in a run, as the items of reports. Only rank 0 speaks."""

import logging
import math
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, SupportsFloat

from muster.checkpoints import Manifest
from muster.fields import NAME_MAX, NAMES_MAX, TEXT_MAX
from muster.reports import (
    Checkpoint,
    CheckpointState,
    Epoch,
    EpochEvent,
    Item,
    Metrics,
    Step,
)
from muster_sdk.ranks import Gang
from muster_sdk.reporter import Reports

log = logging.getLogger(__name__)

_STEP_SECONDS: Final = 1.0
"""Steps closer together than this are not reported one by one."""


class Teller:
    """Makes items of what it hears, and queues them."""

    def __init__(
        self,
        reports: Reports,
        gang: Gang,
        now: Callable[[], datetime],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._reports = reports
        self._gang = gang
        self._now = now
        self._clock = clock
        self._stepped = -math.inf

    @property
    def directive(self) -> Mapping[str, Any] | None:
        """What the platform last asked for."""
        return self._reports.directive

    def epoch_began(self, epoch: int, step: int) -> None:
        """Report the start."""
        self._say(Epoch(self._now(), epoch, EpochEvent.START, step))

    def epoch_ended(self, epoch: int, step: int, metrics: Mapping[str, SupportsFloat]) -> None:
        """Report the end, with the last values that were measured in it."""
        self._say(Epoch(self._now(), epoch, EpochEvent.END, step, numbers_of(metrics)))

    def stepped(self, epoch: int, step: int, metrics: Mapping[str, SupportsFloat]) -> None:
        """Report the step, unless one has been reported just now."""
        if self._clock() - self._stepped < _STEP_SECONDS:
            return
        self._stepped = self._clock()
        self._say(Step(self._now(), epoch, step))
        if metrics:
            self.measured(epoch, step, metrics)

    def measured(self, epoch: int, step: int, metrics: Mapping[str, SupportsFloat]) -> None:
        """Report the values."""
        if self._gang.rank == 0:  # Elsewhere, reading a tensor would wait for its device.
            self._say(Metrics(self._now(), epoch, step, numbers_of(metrics)))

    def saved(self, state: CheckpointState, manifest: Manifest, uri: str) -> None:
        """Report what became of a checkpoint."""
        self._say(
            Checkpoint(
                at=self._now(),
                id=manifest.id,
                step=manifest.step,
                state=state,
                bytes=manifest.bytes,
                world_size=manifest.world_size,
                uri=uri,
            )
        )

    def save_failed(self, step: int, world_size: int, uri: str, reason: str) -> None:
        """Report why there is no checkpoint."""
        self._say(
            Checkpoint(
                at=self._now(),
                id=f"step-{step}",
                step=step,
                state=CheckpointState.FAILED,
                bytes=0,
                world_size=world_size,
                uri=uri,
                message=reason[:TEXT_MAX],
            )
        )

    def close(self) -> None:
        """Send what is left."""
        self._reports.close()

    def _say(self, item: Item) -> None:
        if self._gang.rank == 0:
            self._reports.say(item)


def numbers_of(metrics: Mapping[str, SupportsFloat]) -> dict[str, float]:
    """The metrics within what one report may hold; what is no number is left out, with a word."""
    numbers: dict[str, float] = {}
    for name in list(metrics)[:NAMES_MAX]:
        try:
            numbers[name[:NAME_MAX]] = float(metrics[name])
        except (TypeError, ValueError, RuntimeError) as error:
            log.warning("metric is no number and not reported: name=%s reason=%s", name, error)
    return numbers
