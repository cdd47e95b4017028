"""One database: its connections, and transactions on them.

SQLite and PostgreSQL differ in how they are opened and in how a write begins; that is settled
here, so that repositories need not know which one they talk to.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, Self

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, OperationalError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from muster.errors import Unavailable

Transaction = AsyncConnection
"""What repositories work in: a transaction that whoever opened it commits."""

_IS_WRITE: Final = "muster_is_write"
_BUSY_MS: Final = 15_000
_POOL: Final = 5


class Database:
    """Opens transactions. Nothing is connected before the first one."""

    def __init__(self, url: str) -> None:
        self.url = url_of(url)
        self._engine = _engine(self.url)

    @classmethod
    @asynccontextmanager
    async def opened(cls, url: str) -> AsyncIterator[Self]:
        """A database that is closed at the end of the block."""
        database = cls(url)
        try:
            yield database
        finally:
            await database.close()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Transaction]:
        """A transaction that writes nothing."""
        async with self._transaction(self._engine) as connection:
            yield connection

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[Transaction]:
        """A transaction that is committed at the end of the block, or undone when it raises.

        Raises `Unavailable` when the database can't be reached.
        """
        engine = self._engine.execution_options(**{_IS_WRITE: True})
        async with self._transaction(engine) as connection:
            yield connection

    @asynccontextmanager
    async def _transaction(self, engine: AsyncEngine) -> AsyncIterator[Transaction]:
        try:
            async with engine.begin() as connection:
                yield connection
        except (OperationalError, InterfaceError) as error:
            raise Unavailable(f"the database does not answer: {error.orig}") from error
        except DBAPIError as error:
            if error.connection_invalidated:
                raise Unavailable(f"the database broke off: {error.orig}") from error
            raise

    async def ping(self) -> None:
        """Raise `Unavailable` unless it answers."""
        async with self.reading() as connection:
            await connection.execute(sa.select(1))

    async def close(self) -> None:
        """Close all connections."""
        await self._engine.dispose()


def url_of(text: str) -> sa.URL:
    """The URL of a database, with the driver that we use. Raises `Unavailable` for others."""
    try:
        url = sa.make_url(text)
    except ArgumentError as error:
        raise Unavailable(f"not the URL of a database: {error}") from error
    match url.get_backend_name():
        case "sqlite" if url.database and url.database != ":memory:":
            return url.set(drivername="sqlite+aiosqlite")
        case "postgresql":
            return url.set(drivername="postgresql+psycopg")
    raise Unavailable("the database must be sqlite:///FILE or postgresql://…")


def is_sqlite(url: sa.URL) -> bool:
    """Whether *url* is that of a SQLite file."""
    return url.get_backend_name() == "sqlite"


def file_of(url: sa.URL) -> Path:
    """The file of a SQLite database."""
    return Path(url.database or "")


def _engine(url: sa.URL) -> AsyncEngine:
    if not is_sqlite(url):
        return create_async_engine(url, pool_size=_POOL, max_overflow=_POOL, pool_pre_ping=True)
    engine = create_async_engine(url, pool_size=_POOL, max_overflow=_POOL)
    sa.event.listen(engine.sync_engine, "connect", configure_sqlite)
    sa.event.listen(engine.sync_engine, "begin", _begin_sqlite)
    return engine


def configure_sqlite(connection: Any, _record: Any = None) -> None:
    """Set a new SQLite connection up: processes share the file, and references must hold."""
    # The driver would begin transactions at its own discretion, and too late to be of use.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in (
        f"busy_timeout = {_BUSY_MS}",
        "journal_mode = WAL",
        "synchronous = NORMAL",
        "foreign_keys = ON",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: sa.Connection) -> None:
    # A transaction that first reads and then writes would fail, rather than wait, when another
    # process wrote in between; one that takes the lock at once waits for its turn.
    is_write = connection.get_execution_options().get(_IS_WRITE)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if is_write else "BEGIN")
