"""What a container says about its own end: its termination message, or the last of its log.

A kubelet shows the log's end only where the pod asks for it (`FallbackToLogsOnError`). A process
node always does when a container fails without a message, so that the last line of a training
script that raised is in the pod's status.
"""

from pathlib import Path
from typing import Final

from muster_local.nodes.launcher.launch import LOG, MESSAGE

_MESSAGE_BYTES: Final = 4096
"""As much of a termination message as the kubelet takes."""
_TAIL_BYTES: Final = 2048
"""As much of the log: the kubelet's own bound."""
_TAIL_LINES: Final = 80
_READ_BYTES: Final = 16384


def message_of(run: Path, *, has_failed: bool) -> str:
    """The message of the run in directory *run*; empty where there is none."""
    written = _end_of(run / MESSAGE, _MESSAGE_BYTES).decode(errors="replace")
    if written.strip() or not has_failed:
        return written.rstrip()
    return last_lines(run)


def last_lines(run: Path) -> str:
    """The last lines of the log that say anything, whole ones as far as possible."""
    records = _end_of(run / LOG, _READ_BYTES).split(b"\n")
    lines = [record.split(b" ", 3)[-1] for record in records if record.count(b" ") >= 3]
    kept: list[bytes] = []
    size = 0
    for line in reversed(lines):
        size += len(line) + 1
        if kept and (size > _TAIL_BYTES or len(kept) == _TAIL_LINES):
            break
        if line.strip() or kept:
            kept.append(line[-_TAIL_BYTES:])
    return b"\n".join(reversed(kept)).decode(errors="replace").strip("\n")


def _end_of(file: Path, limit: int) -> bytes:
    try:
        with file.open("rb") as opened:
            opened.seek(max(0, file.stat().st_size - limit))
            return opened.read(limit)
    except FileNotFoundError:
        return b""
