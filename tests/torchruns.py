"""Processes that train with torch, as replicas would, each ended with all that it started."""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import psutil

BIN: Final = Path(sys.executable).parent


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def torch_environment(**more: str) -> dict[str, str]:
    return {
        **{name: os.environ[name] for name in ("HOME", "TMPDIR") if name in os.environ},
        "PATH": f"{BIN}:/usr/bin:/bin",
        "OMP_NUM_THREADS": "1",
        "GLOO_SOCKET_IFNAME": "lo",
        "PYTHONUNBUFFERED": "1",
        "MASTER_ADDR": "127.0.0.1",
        **more,
    }


@contextlib.contextmanager
def started(
    command: Sequence[str | Path], *, log: Path | None = None, **environ: str
) -> Iterator["subprocess.Popen[str]"]:
    """A process that is ended at the end, with all that it started; writes to *log*."""
    # torchrun leaves what it writes there when it is killed.
    with tempfile.TemporaryDirectory() as scratch:
        with (log or Path(os.devnull)).open("w") as file:
            process = subprocess.Popen(
                command,
                env=torch_environment(TMPDIR=scratch, **environ),
                stdout=file if log else subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        try:
            yield process
        finally:
            end(process)
            if process.stdout is not None:
                process.stdout.close()


def end(process: "subprocess.Popen[str]") -> None:
    """Kill it and all that it started, as a node that dies does.

    torchrun gives each rank a session of its own, so its process group is not enough.
    """
    with contextlib.suppress(psutil.NoSuchProcess):
        family = [process, *psutil.Process(process.pid).children(recursive=True)]
        for member in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                member.kill()
    process.wait()
