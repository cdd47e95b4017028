"""Every decision with its inputs, on disk, for `muster replay` and for the recorder.

One file a decision, written by a thread behind the cycle that made it: a cycle only hands over
frozen values. The first file of a group has all inputs, those after it what changed since the
one before, so that a decision costs what it changes. Bounded by number and by bytes; the oldest go
first, whole groups at a time. What cannot be written is counted and told, and scheduling goes on.
"""

import asyncio
import gzip
import json
import logging
import os
import tempfile
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

from muster.errors import InvalidSpec, NotFound
from muster.scheduling.archive import (
    Inputs,
    Record,
    dumps_record,
    dumps_step,
    loads_record,
    loads_step,
)
from muster.scheduling.plan import Plan
from muster_operator.metrics import Metrics
from muster_operator.settings import Settings
from muster_operator.telling import line

_log = logging.getLogger(__name__)

GROUP: Final = 50
"""Decisions of one group: to read one, those before it in its group are read too."""
_BEHIND: Final = 200
"""Decisions that wait to be written at most; more than that are dropped."""
_DEEDS_TOLD: Final = 50
"""Deeds that a list names one by one."""
_SUFFIX: Final = ".json.gz"
_LEVEL: Final = 1
"""Of compression: the fastest one takes away nine tenths."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is kept."""

    decisions: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Entry:
    """What a list of decisions says of one."""

    id: str
    at: float
    """When it was made, in seconds since the epoch."""
    after: str | None
    """The decision that its file builds on; `None` where it stands alone."""
    deeds: tuple[str, ...]
    """`Admit vision/digits`, in their order."""
    bytes: int = 0
    """Size of its file."""

    def as_json(self) -> dict[str, Any]:
        """The entry as it is listed."""
        at = datetime.fromtimestamp(self.at, UTC).isoformat().replace("+00:00", "Z")
        return {"id": self.id, "at": at, "deeds": list(self.deeds), "bytes": self.bytes}


class Spool:
    """Decisions in *folder*, oldest first; without one, in a temporary folder of this process."""

    def __init__(self, folder: Path | None, limits: Limits, metrics: Metrics) -> None:
        self._given = folder
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._folder = Path()
        self._limits = limits
        self._metrics = metrics
        self._waiting: deque[Record] = deque()
        self._has_news = asyncio.Event()
        self._entries: dict[str, Entry] = {}
        self._newest: Record | None = None
        """The last one that was written, which the next one may build on."""
        self._latest_micros = 0

    def put(self, inputs: Inputs, plan: Plan) -> str:
        """Have a decision written soon; its id."""
        record = Record(self._next_id(inputs.now), inputs, plan)
        if len(self._waiting) >= _BEHIND:
            self._waiting.popleft()
            self._metrics.decisions_dropped.inc()
        self._waiting.append(record)
        self._has_news.set()
        return record.id

    async def run(self) -> None:
        """Write until cancelled; what was handed over by then is still written."""
        self._folder = await asyncio.to_thread(self._opened)
        self._keep(*await asyncio.to_thread(_entries_in, self._folder))
        try:
            await self._drop()
            while True:
                await self._has_news.wait()
                self._has_news.clear()
                while self._waiting:
                    record, base = self._waiting.popleft(), self._base()
                    self._keep(*await asyncio.to_thread(self._write, record, base))
                    await self._drop()
        finally:
            while self._waiting:
                record, base = self._waiting.popleft(), self._base()
                self._keep(*self._write(record, base))
            if self._temporary is not None:
                self._temporary.cleanup()

    def entries(self) -> tuple[Entry, ...]:
        """All that is on disk, newest first."""
        return tuple(reversed(self._entries.values()))

    async def text_of(self, id_: str) -> str:
        """The decision with its inputs, as `archive.dumps_record` writes it. Raises `NotFound`."""
        chain: list[Path] = []
        name: str | None = id_
        while name is not None:
            entry = self._entries.get(name)
            if entry is None:
                raise NotFound(f"there is no decision {id_}; only the newest ones are kept")
            chain.append(self._file(name))
            name = entry.after
        try:
            return await asyncio.to_thread(_text_in, chain)
        except (OSError, EOFError, InvalidSpec) as error:
            raise NotFound(f"decision {id_} cannot be read: {error}") from error

    def _next_id(self, now: float) -> str:
        """By time, so that they sort, also where the clock stands or is set back."""
        self._latest_micros = max(int(now * 1e6), self._latest_micros + 1)
        seconds, micros = divmod(self._latest_micros, 1_000_000)
        stamp = datetime.fromtimestamp(seconds, UTC).strftime("%Y%m%dT%H%M%S")
        # Two operators may write to one folder for a moment, when one takes over from the other.
        return f"{stamp}.{micros:06d}-{token_hex(2)}"

    def _opened(self) -> Path:
        if self._given is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="muster-decisions-")
            return Path(self._temporary.name)
        try:
            self._given.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            _log.warning(line("decisions-not-kept", folder=self._given, problem=error))
        return self._given

    def _base(self) -> Record | None:
        """The decision that the next one builds on, while its group is small enough."""
        if self._newest is None or self._newest.id not in self._entries:
            return None
        group = _groups(self.entries()[::-1])[-1]
        # Several groups must fit, since the oldest is dropped whole.
        is_full = (
            len(group) >= min(GROUP, self._limits.decisions // 4)
            or sum(entry.bytes for entry in group) > self._limits.bytes // 4
        )
        return None if is_full else self._newest

    def _keep(self, *entries: Entry) -> None:
        for entry in entries:
            self._entries[entry.id] = entry
            self._latest_micros = max(self._latest_micros, int(entry.at * 1e6))

    async def _drop(self) -> None:
        """Drop the oldest groups until what is left is within the limits."""
        left = self.entries()[::-1]
        gone: list[Entry] = []
        for group in _groups(left):
            total = sum(entry.bytes for entry in left)
            if len(left) <= self._limits.decisions and total <= self._limits.bytes:
                break
            gone += group
            left = left[len(group) :]
        for entry in gone:
            del self._entries[entry.id]
        if gone:
            await asyncio.to_thread(_delete, [self._file(entry.id) for entry in gone])

    def _write(self, record: Record, base: Record | None) -> tuple[Entry, ...]:
        """Write a decision; its entry, or nothing where that failed."""
        after = base.id if base else None
        entry = Entry(record.id, record.inputs.now, after, _told(record.plan))
        try:
            text = dumps_step(record, base) if base else dumps_record(record)
            size = _store(self._file(record.id), entry, text)
        except (OSError, ValueError) as error:
            self._newest = None
            self._metrics.decisions_dropped.inc()
            _log.warning(line("decision-not-written", id=record.id, problem=error))
            return ()
        self._newest = record
        return (replace(entry, bytes=size),)

    def _file(self, id_: str) -> Path:
        return self._folder / f"{id_}{_SUFFIX}"


def spool_of(settings: Settings, metrics: Metrics) -> Spool:
    """The spool that *settings* ask for."""
    folder = Path(settings.decisions_folder) if settings.decisions_folder else None
    return Spool(folder, Limits(settings.decisions_kept, settings.decisions_bytes), metrics)


def _groups(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Each entry that stands alone, with those that build on it; *entries* oldest first."""
    groups: list[list[Entry]] = []
    for entry in entries:
        if entry.after is None or not groups:
            groups.append([])
        groups[-1].append(entry)
    return groups


def _told(plan: Plan) -> tuple[str, ...]:
    """Its deeds in words; of very many their numbers."""
    if len(plan.deeds) <= _DEEDS_TOLD:
        return tuple(f"{type(deed).__name__} {deed.gang}" for deed in plan.deeds)
    kinds = Counter(type(deed).__name__ for deed in plan.deeds)
    return tuple(f"{number} times {kind}" for kind, number in sorted(kinds.items()))


def _store(file: Path, entry: Entry, text: str) -> int:
    """Write a decision whole or not at all; its bytes."""
    head = {"id": entry.id, "at": entry.at, "after": entry.after, "deeds": entry.deeds}
    packed = gzip.compress(f"{json.dumps(head)}\n{text}\n".encode(), _LEVEL)
    draft = file.with_name(f".{file.name}.draft")
    try:
        # Jobs of all namespaces are named in it: for our own account only.
        with open(draft, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as opened:
            opened.write(packed)
        draft.replace(file)
    except OSError:
        _delete([draft])
        raise
    return len(packed)


def _entries_in(folder: Path) -> list[Entry]:
    """What earlier processes left in *folder*, oldest first; what cannot be read is left out."""
    entries = []
    for file in sorted(folder.glob(f"*{_SUFFIX}")):
        with suppress(OSError, EOFError, ValueError, KeyError, TypeError):
            with gzip.open(file, "rb") as opened:
                head = json.loads(opened.readline())
            size = file.stat().st_size
            entries.append(
                Entry(head["id"], head["at"], head["after"], tuple(head["deeds"]), size)
            )
    return entries


def _text_in(chain: list[Path]) -> str:
    """The decision that a chain of files tells, the one that stands alone last."""
    record = loads_record(_body_in(chain.pop()))
    while chain:
        record = loads_step(_body_in(chain.pop()), record)
    return dumps_record(record)


def _body_in(file: Path) -> bytes:
    with gzip.open(file, "rb") as opened:
        opened.readline()
        return opened.read()


def _delete(files: Iterable[Path]) -> None:
    for file in files:
        with suppress(OSError):
            file.unlink()
