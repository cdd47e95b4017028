"""The log of one run on disk, in the format of the container runtimes, bounded.

    2026-12-01T09:26:00.123456789Z stdout F a whole line
    2026-12-01T09:26:01.123456789Z stderr P the beginning of a very long one

Half of what may be kept is in the file, the older half in a second one, which is dropped when the
first is full.
"""

import os
import time
from pathlib import Path
from typing import Final

from muster_local.nodes.launcher.launch import LOG, OLDER_LOG

_MAX_LINE: Final = 16 * 1024
"""Longer lines are written in parts, as container runtimes do."""


class LogWriter:
    """Takes output as it comes and writes it line by line.

    A full disk loses output, but never stops the container: that is for the container's own
    writes to do.
    """

    def __init__(self, directory: Path, limit_bytes: int) -> None:
        self._file = directory / LOG
        self._older = directory / OLDER_LOG
        self._half = limit_bytes // 2
        self._rests: dict[str, bytes] = {}
        self._fd = self._open()
        self._size = os.fstat(self._fd).st_size

    def write(self, stream: str, output: bytes) -> None:
        """Take the next *output* of *stream* (`stdout` or `stderr`)."""
        *lines, rest = (self._rests.get(stream, b"") + output).split(b"\n")
        head = f"{timestamp(time.time_ns())} {stream} ".encode()
        whole = len(rest) - len(rest) % _MAX_LINE
        self._rests[stream] = rest[whole:]
        self._append(
            b"".join(_record(head, line) for line in lines)
            + b"".join(head + b"P " + part + b"\n" for part in _slices(rest[:whole]))
        )

    def close(self) -> None:
        """Write what has no line end yet."""
        for stream, rest in self._rests.items():
            if rest:
                self._append(f"{timestamp(time.time_ns())} {stream} F ".encode() + rest + b"\n")
        self._rests.clear()
        os.close(self._fd)

    def _append(self, records: bytes) -> None:
        if self._size and self._size + len(records) > self._half:
            os.close(self._fd)
            self._file.replace(self._older)
            self._fd, self._size = self._open(), 0
        try:
            while records:
                written = os.write(self._fd, records)
                self._size += written
                records = records[written:]
        except OSError:
            return  # a full disk: this output is lost, the next may fit

    def _open(self) -> int:
        return os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def timestamp(nanoseconds: int) -> str:
    """RFC 3339 with nine digits, in UTC."""
    seconds, rest = divmod(nanoseconds, 10**9)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest:09d}Z"


def _record(head: bytes, line: bytes) -> bytes:
    """One line as it is kept: in parts where it is too long."""
    *parts, last = _slices(line) or [b""]
    return b"".join(head + b"P " + part + b"\n" for part in parts) + head + b"F " + last + b"\n"


def _slices(line: bytes) -> list[bytes]:
    return [line[start : start + _MAX_LINE] for start in range(0, len(line), _MAX_LINE)]
