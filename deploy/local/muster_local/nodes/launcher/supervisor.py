"""The life of one run: start the command, keep its output, hand signals on, leave nothing behind.

A request to stop goes to the first process alone, and when that one ends the rest is killed at
once, both as in a container: helpers of a training script, such as those that load its data, must
not end before it has saved. The one exception is a first process that dies of the request itself,
as a shell in front of a script does, which as a container's process 1 would have lived: then the
request goes on to those that it left in its process group, and they get the rest of the grace.
"""

import os
import selectors
import signal
import time
from dataclasses import asdict
from pathlib import Path
from typing import Final

from muster_local.nodes.launcher import child, descent, system
from muster_local.nodes.launcher.identity import Identity
from muster_local.nodes.launcher.launch import (
    CLAIM,
    EXIT,
    LAUNCH,
    STARTED,
    Exit,
    Launch,
    claim,
    write_json,
)
from muster_local.nodes.launcher.log import LogWriter

_CHUNK: Final = 1 << 18
_KILL_AGAIN_SECONDS: Final = 0.02
_HANDLED: Final = (signal.SIGTERM, signal.SIGUSR2, signal.SIGCHLD)


class Supervisor:
    """Runs one command to its end."""

    def __init__(self, directory: Path, launch: Launch) -> None:
        self._directory = directory
        self._launch = launch
        self._log = LogWriter(directory, launch.log_bytes)
        self._selector = selectors.DefaultSelector()
        self._main = 0
        self._status: int | None = None
        self._has_children = True
        self._is_stopping = False
        self._is_killing = False

    def run(self) -> None:
        """Run it, and write how it ended; nothing where somebody else claimed the run."""
        system.become_subreaper()
        wake, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        for number in _HANDLED:
            # The handler does nothing: the number arrives through the pipe.
            signal.signal(number, lambda *_: None)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        self._selector.register(wake, selectors.EVENT_READ, self._on_signals)
        if not claim(self._directory / CLAIM, asdict(Identity.own())):
            return
        started_at = time.time()
        if error := self._start():
            self._log.close()
            _finish(self._directory, Exit(128, finished_at=time.time(), error=error))
            return
        write_json(self._directory / STARTED, {"pid": self._main, "at": started_at})
        os.close(1)  # tells the node process, if it still listens
        while self._status is None or self._has_children:
            self._turn()
        self._drain()
        self._log.close()
        _finish(self._directory, _exit_of(self._status, started_at))

    def _start(self) -> str:
        """Start the command; why that failed, or nothing."""
        pipes = {}
        for stream in ("stdout", "stderr"):
            reading, pipes[stream] = os.pipe2(os.O_CLOEXEC)
            os.set_blocking(reading, False)
            self._selector.register(reading, selectors.EVENT_READ, stream)
        report, reporter = os.pipe2(os.O_CLOEXEC)
        parent = os.getpid()
        self._main = os.fork()
        if self._main == 0:
            child.become(
                self._launch,
                self._directory,
                parent=parent,
                output=pipes["stdout"],
                errors=pipes["stderr"],
                report=reporter,
            )
        for descriptor in (reporter, *pipes.values()):
            os.close(descriptor)
        with os.fdopen(report, "rb") as reports:
            error = reports.read().decode(errors="replace")
        if error:
            os.waitpid(self._main, 0)
        return error

    def _turn(self) -> None:
        """Wait for output or a signal, and act on it."""
        for key, _ in self._selector.select(_KILL_AGAIN_SECONDS if self._is_killing else None):
            if isinstance(key.data, str):
                self._take_output(key.fd, key.data)
            else:
                key.data(key.fd)
        if self._is_killing:
            descent.kill_descendants(os.getpid())

    def _take_output(self, descriptor: int, stream: str) -> bool:
        """Move what there is to the log; whether there may be more."""
        try:
            output = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return False
        if output:
            self._log.write(stream, output)
        else:
            self._selector.unregister(descriptor)
            os.close(descriptor)
        return bool(output)

    def _on_signals(self, wake: int) -> None:
        numbers = os.read(wake, _CHUNK)
        if signal.SIGTERM in numbers and self._status is None:
            self._is_stopping = True
            os.kill(self._main, signal.SIGTERM)
        if signal.SIGUSR2 in numbers:
            self._is_killing = True
        ended, self._has_children = descent.reap()
        if self._main in ended:
            self._status = ended[self._main]
            if self._is_stopping and self._status == signal.SIGTERM:
                _signal_group(self._main, signal.SIGTERM)
            else:
                self._is_killing = True
        if self._status is not None and not _has_group(self._main):
            self._is_killing = True

    def _drain(self) -> None:
        """Take the output that the ended processes left in the pipes."""
        for key in list(self._selector.get_map().values()):
            if isinstance(key.data, str):
                while self._take_output(key.fd, key.data):
                    pass


def _finish(directory: Path, how: Exit) -> None:
    write_json(directory / EXIT, asdict(how))


def _exit_of(status: int | None, started_at: float) -> Exit:
    assert status is not None, "only asked when the command has ended"
    code = os.waitstatus_to_exitcode(status)
    number = -code if code < 0 else 0
    return Exit(128 + number if number else code, number, started_at, time.time())


def _signal_group(leader: int, number: signal.Signals) -> None:
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):
        return


def _has_group(leader: int) -> bool:
    """Whether a process is left in the group that *leader* founded."""
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def supervise(directory: Path) -> None:
    """Carry out the order in *directory*."""
    launch = Launch.read(directory)
    (directory / LAUNCH).unlink()
    Supervisor(directory, launch).run()
