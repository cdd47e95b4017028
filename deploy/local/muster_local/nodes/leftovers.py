"""Ending what a killed node process left behind.

For `muster local down`, and for `up` after the machine went down hard: pods outlive their node
process on purpose.
"""

import asyncio
import time
from pathlib import Path
from typing import Final

from muster_local.nodes.instance import end_strays, kill_run
from muster_local.nodes.launcher.launch import EXIT
from muster_local.nodes.storage import PodFiles, Storage

_POLL_SECONDS: Final = 0.02
_END_SECONDS: Final = 10.0


def end_all(directory: Path, *, within_seconds: float = _END_SECONDS) -> int:
    """Kill every process of every pod below the node process's *directory*, and wait for it.

    Gives how many containers were still running. Only for when no node process runs there.
    """
    return sum(_end(files, within_seconds) for _, files in Storage(directory).pods())


async def end(files: PodFiles) -> None:
    """End the processes of a pod of which no worker knows."""
    await asyncio.to_thread(_end, files, _END_SECONDS)


async def discard(files: PodFiles) -> None:
    """End the processes of a pod that does not exist any more, and remove its files."""
    await end(files)
    files.remove()


def _end(files: PodFiles, within_seconds: float) -> int:
    """Kill what runs of one pod; how many containers that were."""
    runs = sorted((files.directory / "containers").glob("*/*"))
    alive = [run for run in runs if kill_run(run)]
    deadline = time.monotonic() + within_seconds
    while any(kill_run(run) for run in alive) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    # A walk over all processes, only where a run has neither a launcher nor an end.
    for run in runs:
        if not (run / EXIT).exists():
            end_strays(run)
    return len(alive)
