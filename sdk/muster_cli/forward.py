"""A port-forward to the API inside a cluster, by kubectl, for as long as a command needs it."""

import re
import select
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from muster import wire
from muster.errors import Unavailable

SERVICE: Final = "muster-api"
_LISTENING: Final = re.compile(r"Forwarding from 127\.0\.0\.1:(\d+)")
_SECONDS: Final = 15.0


@contextmanager
def forwarded(options: Sequence[str], *, kubectl: str | None = None) -> Iterator[str]:
    """The URL of a local port that leads to the API; *options* choose the cluster for kubectl."""
    program = kubectl or shutil.which("kubectl")
    if program is None:
        raise Unavailable(
            f"the API of this cluster is only reachable through Service {SERVICE} in "
            f"{wire.SYSTEM_NAMESPACE}, which takes kubectl; install it, or set MUSTER_API_URL"
        )
    command = [
        program,
        *options,
        "port-forward",
        "-n",
        wire.SYSTEM_NAMESPACE,
        f"svc/{SERVICE}",
        ":80",
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield f"http://127.0.0.1:{_port(process)}"
        finally:
            process.terminate()


def _port(process: "subprocess.Popen[str]") -> int:
    """The port that kubectl chose. Raises `Unavailable` with kubectl's own words."""
    if process.stdout is None or process.stderr is None:
        raise AssertionError("both are pipes")
    ready, _, _ = select.select([process.stdout], [], [], _SECONDS)
    line = process.stdout.readline() if ready else ""
    found = _LISTENING.search(line)
    if found:
        return int(found.group(1))
    process.terminate()
    said = " ".join(process.stderr.read().split()) or f"no answer within {_SECONDS:.0f} s"
    raise Unavailable(
        f"Service {SERVICE} in {wire.SYSTEM_NAMESPACE} cannot be reached: {said}; "
        "is Muster installed there? (or set MUSTER_API_URL)"
    )
