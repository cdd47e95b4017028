"""From the fork to the command: what the container's first process does to itself."""

import os
import signal
from pathlib import Path
from typing import Final, NoReturn

from muster_local.nodes.launcher import system
from muster_local.nodes.launcher.launch import SHADOWS, Launch
from muster_local.nodes.launcher.mounts import View, enter_namespaces

_OOM_SCORE: Final = "500"
"""The kernel ends training before the control plane beside it."""


def become(
    launch: Launch, directory: Path, *, parent: int, output: int, errors: int, report: int
) -> NoReturn:
    """Turn this process into the container's command. Never returns.

    What goes wrong before the command runs is written to *report*, which the exec closes.
    """
    try:
        _prepare(launch, directory, parent)
        _restore_signals()
        for number, descriptor in (
            (0, os.open(os.devnull, os.O_RDONLY)),
            (1, output),
            (2, errors),
        ):
            os.dup2(descriptor, number)
        _execute(launch)
    except BaseException as error:  # nothing may unwind into the parent's code
        os.write(report, str(error).encode() or type(error).__name__.encode())
    os._exit(127)


def _execute(launch: Launch) -> NoReturn:
    command = launch.command
    try:
        os.execvpe(command[0], command, launch.environment)  # noqa: S606 -- that is what it is for
    except OSError as error:
        path = launch.environment.get("PATH", "")
        searched = "" if "/" in command[0] else f", looked for in {path}"
        raise RuntimeError(f"cannot run {command[0]}: {error.strerror}{searched}") from error


def _prepare(launch: Launch, directory: Path, parent: int) -> None:
    os.setsid()
    os.umask(0o022)
    if launch.mounts:
        enter_namespaces(launch.hostname)
        view = View(directory / SHADOWS)
        view.mount_all(launch.mounts)
        # Container runtimes make a working directory that the image lacks.
        view.make_directory(launch.working_directory)
    system.die_with_parent(signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(127)  # it ended before that took effect
    os.chdir(launch.working_directory)
    os.setpriority(os.PRIO_PROCESS, 0, launch.nice)
    try:
        Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE, encoding="ascii")
    except OSError:
        # Only a preference, and some sandboxes keep the file read-only.
        return


def _restore_signals() -> None:
    """Python ignores some signals, and an ignored signal stays so in the command."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
