"""One run of a container, seen from the node process: start it or find it again, signal it, wait.

The launcher does the work and outlives us. Its end is seen through a descriptor of the process, so
that nothing is polled, and the launcher need not be our child.
"""

import asyncio
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final, Self

import psutil

import muster_local
from muster_local.nodes.launcher.identity import Identity
from muster_local.nodes.launcher.launch import (
    CLAIM,
    EXIT,
    LAUNCHER_LOG,
    MESSAGE,
    STARTED,
    Exit,
    Launch,
    claim,
)

_log = logging.getLogger(__name__)

RUN_VARIABLE: Final = "PROCESS_NODE_RUN"
"""In the environment of every process of a run, so that they are found when all else fails."""
_KILLED: Final = 128 + signal.SIGKILL
_ROOT: Final = Path(muster_local.__file__).parent.parent


class Instance:
    """One run, by the directory of its files."""

    def __init__(self, run: Path) -> None:
        self.run = run
        self._ready = asyncio.Event()
        self._ended = asyncio.Event()
        self._process: int | None = None
        """Descriptor of the launcher, while it lives."""
        self._child: subprocess.Popen[bytes] | None = None
        self._exit: Exit | None = None

    @classmethod
    def spawn(cls, run: Path, launch: Launch) -> Self:
        """Start *launch*; its files are in the new directory *run*."""
        launch.write(run)
        instance = cls(run)
        reading, writing = os.pipe2(os.O_CLOEXEC)
        with (run / LAUNCHER_LOG).open("wb") as told:
            child = instance._child = subprocess.Popen(
                (sys.executable, "-S", "-P", "-m", "muster_local.nodes.launcher", str(run)),
                env={**os.environ, "PYTHONPATH": str(_ROOT)},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=writing,
                stderr=told,
                start_new_session=True,
            )
        os.close(writing)
        asyncio.get_running_loop().add_reader(reading, instance._on_ready, reading)
        instance._attach(os.pidfd_open(child.pid))
        return instance

    @classmethod
    def find(cls, run: Path) -> Self | None:
        """The run that an earlier node process started, as it is now; `None` if it never began."""
        if claim(run / CLAIM, {}):
            # Nothing runs, and should the launcher come late, it finds the run taken.
            shutil.rmtree(run)
            return None
        instance = cls(run)
        if (process := _open(_launcher_of(run))) is not None:
            instance._attach(process)
            instance._ready.set()
        else:
            instance._settle(instance._read_exit())
        return instance

    async def ready(self) -> None:
        """Wait until the command runs, or the run has ended."""
        await self._ready.wait()

    async def wait(self) -> Exit:
        """Wait for the end."""
        await self._ended.wait()
        assert self._exit is not None, "set together with the event"
        return self._exit

    @property
    def has_ended(self) -> bool:
        """Whether it is over."""
        return self._ended.is_set()

    @property
    def started_at(self) -> float:
        """When the command started, in seconds since the epoch; 0 when it did not."""
        started = _read(self.run / STARTED)
        return float(started["at"]) if started else 0.0

    def stop(self) -> None:
        """Ask the container to end, by SIGTERM."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End all of its processes."""
        self._signal(signal.SIGUSR2)

    def destroy(self) -> None:
        """End it without the launcher's help."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            try:
                signal.pidfd_send_signal(self._process, number)
            except ProcessLookupError:
                return

    def _attach(self, process: int) -> None:
        self._process = process
        asyncio.get_running_loop().add_reader(process, self._on_end)

    def _on_ready(self, reading: int) -> None:
        asyncio.get_running_loop().remove_reader(reading)
        os.close(reading)
        self._ready.set()

    def _on_end(self) -> None:
        assert self._process is not None, "the reader is removed with the descriptor"
        asyncio.get_running_loop().remove_reader(self._process)
        os.close(self._process)
        self._process = None
        if self._child is not None:
            self._child.wait()
        self._settle(self._read_exit())

    def _settle(self, how: Exit) -> None:
        self._exit = how
        self._ready.set()
        self._ended.set()

    def _read_exit(self) -> Exit:
        """How it ended. A launcher that left no word was killed itself."""
        if (told := _read(self.run / EXIT)) is not None:
            return Exit(**told)
        end_strays(self.run)
        _log.error("the launcher of %s ended without a word; see its %s", self.run, LAUNCHER_LOG)
        return Exit(
            _KILLED,
            int(signal.SIGKILL),
            self.started_at,
            time.time(),
            error="the container's parent process was killed, or the machine restarted",
        )


def end_strays(run: Path) -> int:
    """Kill what is left of a run whose launcher is gone; how many that were."""
    count = 0
    for process in psutil.process_iter():
        try:
            if process.environ().get(RUN_VARIABLE) == str(run):
                process.kill()
                count += 1
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    if count:
        _log.warning("killed %d processes of %s, which had no launcher", count, run)
    return count


def is_over(run: Path) -> bool:
    """Whether nothing more will come from that run; of a deleted pod's nothing will."""
    if (run / EXIT).exists() or not run.exists():
        return True
    launcher = _launcher_of(run)
    return launcher is not None and not launcher.is_alive()


def kill_run(run: Path) -> bool:
    """End a run of a node process that is gone, without waiting; whether there was one."""
    launcher = _launcher_of(run)
    if launcher is not None and launcher.is_alive():
        os.kill(launcher.pid, signal.SIGUSR2)
        return True
    return False


def prepare(run: Path) -> None:
    """Make the files that the launcher expects to be there."""
    (run / MESSAGE).touch(mode=0o666)


def _open(launcher: Identity | None) -> int | None:
    """A descriptor of that process, if it is alive."""
    if launcher is None:
        return None
    try:
        process = os.pidfd_open(launcher.pid)
    except ProcessLookupError:
        return None
    # Looked at after opening, so that the descriptor cannot be that of a later process.
    if launcher.is_alive():
        return process
    os.close(process)
    return None


def _launcher_of(run: Path) -> Identity | None:
    told = _read(run / CLAIM)
    return Identity(**told) if told else None


def _read(file: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(file.read_bytes())
    except FileNotFoundError:
        return None
    return found if isinstance(found, dict) else None
