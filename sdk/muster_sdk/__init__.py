"""What a training script imports.

    import muster_sdk as muster

    run = muster.init()
    start = run.restore(model=model, optimizer=optimizer)   # nothing happens on a fresh start
    for epoch in run.epochs(10):                            # goes on at the right epoch
        for batch in loader:
            ...
            run.step(loss=loss.item())
        run.log(accuracy=accuracy)
        run.save(model=model, optimizer=optimizer)

Outside a job the same script runs unchanged: nothing is reported, and checkpoints are kept only
where `init(checkpoints="…")` says. Importing this imports neither torch nor an HTTP client nor
fsspec.
"""

import atexit
import logging
import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from muster_sdk.errors import RestoreFailed, SaveFailed, StaleRound, StoreRefused
from muster_sdk.ranks import Gang
from muster_sdk.results import Restored, Saved
from muster_sdk.run import Run
from muster_sdk.settings import Settings, settings_of
from muster_sdk.telling import Silence, Telling
from muster_sdk.termination import leave_last_line

if TYPE_CHECKING:
    from pathlib import Path

    from muster_sdk.checkpoints import Checkpoints

__all__ = [
    "RestoreFailed",
    "Restored",
    "Run",
    "SaveFailed",
    "Saved",
    "StaleRound",
    "StoreRefused",
    "init",
]

log = logging.getLogger(__name__)


def init(
    checkpoints: "str | Path | None" = None, *, environ: Mapping[str, str] | None = None
) -> Run:
    """The run that this process takes part in.

    *checkpoints* is a directory, or a URI that fsspec knows; in a job it is the job's own by
    default, and outside of one nothing is saved without it. *environ* is the environment.
    """
    settings = settings_of(os.environ if environ is None else environ)
    uri = str(checkpoints or settings.checkpoint_uri)
    if settings.is_in_job:
        leave_last_line(settings.termination_log)
    gang = Gang(settings)
    telling = _telling(settings, gang)
    run = Run(settings, gang, telling, _checkpoints(uri, settings, gang, telling) if uri else None)
    atexit.register(run.close)
    return run


# Both import what they need only here: every process of every attempt pays for its start.


def _telling(settings: Settings, gang: Gang) -> Telling:
    if not (settings.is_in_job and settings.api_url and settings.rank == 0):
        return Silence()
    import importlib.util  # noqa: PLC0415

    if importlib.util.find_spec("httpx2") is None:
        log.warning("nothing will be reported: pip install 'muster-train[sdk]'")
        return Silence()
    from muster_sdk.channel import ApiChannel  # noqa: PLC0415
    from muster_sdk.outbox import Outbox  # noqa: PLC0415
    from muster_sdk.reporter import Pace, Reporter  # noqa: PLC0415
    from muster_sdk.teller import Teller  # noqa: PLC0415

    outbox = Outbox(
        attempt=settings.attempt,
        replica=settings.replica,
        # Beyond those of this process's predecessor, if it was restarted within the attempt.
        first_sequence=int(time.time() * 1000),
        minor_limit=5_000,
        limit=10_000,
    )
    reporter = Reporter(ApiChannel(settings), outbox, _utc_now, Pace()).start()
    return Teller(reporter, gang, _utc_now)


def _checkpoints(uri: str, settings: Settings, gang: Gang, telling: Telling) -> "Checkpoints":
    from muster_sdk.checkpoints import Checkpoints  # noqa: PLC0415
    from muster_sdk.stores import open_store  # noqa: PLC0415

    return Checkpoints(open_store(uri), settings, gang, now=_utc_now, telling=telling)


def _utc_now() -> datetime:
    return datetime.now(UTC)
