"""Leaving the exception that ended a script where its pod's status shows it.

Python's own traceback goes to the log as ever. But under torchrun the log's last line is the frame
of a table, and the ranks that merely lost their peers fail after the one that had the fault: so
the first exception of a pod is written, in one line, to the file that becomes its message.
"""

import os
import sys
from types import TracebackType
from typing import Final

_LONGEST_BYTES: Final = 1024
"""Of the 4,096 that Kubernetes keeps of a container's message."""


def leave_last_line(path: str) -> None:
    """From now on, write an exception that nobody catches to *path*, if that can be written to."""
    if not os.access(path, os.W_OK):
        return
    previous = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        previous(kind, error, trace)
        _write(path, kind, error)

    sys.excepthook = hook


def last_line(kind: type[BaseException], error: BaseException) -> str:
    """The exception as the last line of its traceback has it, on one line."""
    import traceback  # noqa: PLC0415 - only a script that fails needs it

    text = " ".join("".join(traceback.format_exception_only(kind, error)).split())
    return text.encode()[:_LONGEST_BYTES].decode(errors="ignore")


def _write(path: str, kind: type[BaseException], error: BaseException) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
        try:
            if (
                os.fstat(descriptor).st_size == 0
            ):  # The first has the fault; others follow from it.
                os.write(descriptor, last_line(kind, error).encode())
        finally:
            os.close(descriptor)
    except OSError:
        pass  # The traceback is in the log, and there is nobody left to tell.
