"""Being the only one: an advisory lock on PostgreSQL, a locked file beside a SQLite database.

Both end with the process that holds them, however it ends. They keep two processes from doing the
same work; what keeps rows right is their transactions.
"""

import asyncio
import fcntl
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TextIO

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlalchemy.pool import NullPool

from muster.errors import Conflict, Unavailable
from muster_db.database import file_of, is_sqlite


def key_of(name: str) -> int:
    """The number of an advisory lock; PostgreSQL knows them by number only."""
    return zlib.crc32(f"muster/{name}".encode())


class Lock:
    """A lock that is held."""

    def __init__(self, connection: AsyncConnection | None) -> None:
        self._connection = connection

    async def check(self) -> None:
        """Raise `Conflict` if it was lost: an advisory lock goes with its connection."""
        if self._connection is None:
            return
        try:
            await self._connection.execute(sa.select(1))
        except DBAPIError as error:
            raise Conflict("the connection that held the lock broke") from error


@asynccontextmanager
async def held(url: sa.URL, name: str) -> AsyncIterator[Lock]:
    """Hold the lock *name*. Raises `Conflict` at once where another process holds it."""
    if is_sqlite(url):
        with _file(_lock_file(url, name)) as file:
            if not _try(file):
                raise _taken(url, name)
            yield Lock(None)
        return
    async with AsyncExitStack() as stack:
        yield Lock(await _advisory(url, name, stack))


@asynccontextmanager
async def waited_for(url: sa.URL, name: str, *, every_seconds: float) -> AsyncIterator[Lock]:
    """Hold the lock *name*, waiting for it as long as another process has it."""
    async with AsyncExitStack() as stack:
        while True:
            try:
                lock = await stack.enter_async_context(held(url, name))
                break
            except Conflict:
                await asyncio.sleep(every_seconds)
        yield lock


@contextmanager
def file_held(url: sa.URL, name: str) -> Iterator[None]:
    """Hold the lock *name* of a SQLite database, waiting for it."""
    with _file(_lock_file(url, name)) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


async def _advisory(url: sa.URL, name: str, stack: AsyncExitStack) -> AsyncConnection:
    """A connection that holds the advisory lock *name* until *stack* closes it."""
    engine = create_async_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    stack.push_async_callback(engine.dispose)
    try:
        connection = await stack.enter_async_context(engine.connect())
        got = await connection.scalar(sa.select(sa.func.pg_try_advisory_lock(key_of(name))))
    except DBAPIError as error:
        raise Unavailable(f"the database does not answer: {error.orig}") from error
    if not got:
        raise _taken(url, name)
    return connection


def _taken(url: sa.URL, name: str) -> Conflict:
    return Conflict(f"another process holds the lock {name} of the database {url.database}")


def _lock_file(url: sa.URL, name: str) -> Path:
    file = file_of(url)
    return file.with_name(f"{file.name}.{name}.lock")


@contextmanager
def _file(path: Path) -> Iterator[TextIO]:
    try:
        file = path.open("a")
    except OSError as error:
        raise Unavailable(f"the database's folder can't be written: {error}") from error
    with file:
        yield file


def _try(file: TextIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
