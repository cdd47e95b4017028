"""Reading a container's log back, as `kubectl logs` asks for it.

The files are written by `launcher.log` in the format of container runtimes. What is asked for is
taken from the URL by `LogOptions.of`, with the names that the kubelet knows.
"""

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from muster.errors import InvalidSpec
from muster_local.nodes.launcher.launch import LOG, OLDER_LOG
from muster_local.nodes.launcher.log import timestamp

_POLL_SECONDS: Final = 0.1
_PIECE_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class LogOptions:
    """What somebody wants of a log."""

    follow: bool = False
    previous: bool = False
    """Of the run before the present one."""
    timestamps: bool = False
    tail: int | None = None
    """Only that many of the last lines."""
    since: bytes = b""
    """Only lines from that moment on, written as in the log."""
    limit_bytes: int | None = None

    @classmethod
    def of(cls, query: Mapping[str, str], *, now: float) -> "LogOptions":
        """From the query of a request. Raises `InvalidSpec`."""
        since = b""
        if (seconds := _number(query, "sinceSeconds")) is not None:
            since = timestamp(int((now - seconds) * 10**9)).encode()
        if given := query.get("sinceTime"):
            since = _moment(given)
        return cls(
            follow=query.get("follow") == "true",
            previous=query.get("previous") == "true",
            timestamps=query.get("timestamps") == "true",
            tail=_number(query, "tailLines"),
            since=since,
            limit_bytes=_number(query, "limitBytes"),
        )


async def read_log(
    run: Path, options: LogOptions, *, is_over: Callable[[], bool]
) -> AsyncIterator[bytes]:
    """The log of the run in directory *run*, in pieces; followed until *is_over*."""
    left = options.limit_bytes
    shape = _Shape(timestamps=options.timestamps)
    async for records in _records(run, options, is_over):
        piece = b"".join(shape.text(record) for record in records)
        yield piece if left is None else piece[:left]
        if left is not None:
            left -= len(piece)
            if left <= 0:
                return


class _Shape:
    """Turns records into what is shown: lines that were kept in parts become one again."""

    def __init__(self, *, timestamps: bool) -> None:
        self._timestamps = timestamps
        self._is_within_line = False

    def text(self, record: bytes) -> bytes:
        moment, _, tag, line = record.rstrip(b"\n").split(b" ", 3)
        head = moment + b" " if self._timestamps and not self._is_within_line else b""
        self._is_within_line = tag == b"P"
        return head + line + (b"" if self._is_within_line else b"\n")


async def _records(
    run: Path, options: LogOptions, is_over: Callable[[], bool]
) -> AsyncIterator[list[bytes]]:
    """The records wanted, in lists of bounded size."""
    follower = _Follower(run)
    try:
        for piece in _in_pieces(_backlog(run, follower, options)):
            yield piece
        while options.follow:
            # Asked before reading, so that nothing written in between is missed.
            was_over = is_over()
            if fresh := follower.more():
                yield [record for record in fresh if record >= options.since]
            elif was_over:
                return
            else:
                await asyncio.sleep(_POLL_SECONDS)
    finally:
        follower.close()


class _Follower:
    """Reads the file that is written now, and goes on with the next one when it is turned over."""

    def __init__(self, run: Path) -> None:
        self._path = run / LOG
        self._file = self._path.open("rb")
        self._rest = b""

    def more(self) -> list[bytes]:
        """Whole records that were not given yet; none when there are none at this moment."""
        fresh = self._file.read(_PIECE_BYTES) or (self._turn() and self._file.read(_PIECE_BYTES))
        if not fresh:
            return []
        *whole, self._rest = (self._rest + fresh).split(b"\n")
        return [record + b"\n" for record in whole]

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _turn(self) -> bool:
        """Go on with the file that took the place of ours; whether there is one."""
        try:
            found = self._path.open("rb")
        except FileNotFoundError:
            return False
        if os.fstat(found.fileno()).st_ino == os.fstat(self._file.fileno()).st_ino:
            found.close()
            return False
        self._file.close()
        self._file = found
        return True


def _backlog(run: Path, follower: _Follower, options: LogOptions) -> Iterator[bytes]:
    """The records that are there already."""
    records = (record for record in _both(run, follower) if record >= options.since)
    if options.tail is None:
        return records
    return iter(deque(records, maxlen=options.tail))


def _both(run: Path, follower: _Follower) -> Iterator[bytes]:
    """Records of the older file, then those of the current one."""
    older = run / OLDER_LOG
    if older.exists():
        with older.open("rb") as opened:
            yield from opened
    while records := follower.more():
        yield from records


def _in_pieces(records: Iterator[bytes]) -> Iterator[list[bytes]]:
    piece: list[bytes] = []
    size = 0
    for record in records:
        piece.append(record)
        size += len(record)
        if size >= _PIECE_BYTES:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece


def _number(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name)
    if text is None:
        return None
    if not text.isdecimal():
        raise InvalidSpec(name, f"must be a whole number, is {text!r}")
    return int(text)


def _moment(text: str) -> bytes:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidSpec("sinceTime", f"{text!r} is no RFC 3339 time") from None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return timestamp(int(aware.timestamp() * 10**6) * 1000).encode()
