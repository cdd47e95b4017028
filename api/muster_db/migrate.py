"""Bringing a database to the newest schema, by the Alembic migrations of this release.

Run at the start of the API and of the recorder; two that start at once wait for each other. The
scripts lie in `migrations/` of a checkout and beside this module in an installed package.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Final

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.pool import NullPool

from muster.errors import Unavailable
from muster_db.database import configure_sqlite, is_sqlite, url_of
from muster_db.locks import file_held, key_of

_LOCK: Final = "migrate"
_WAIT_SECONDS: Final = 60
_LOCK_TIMEOUT: Final = "4s"
_STATEMENT_TIMEOUT: Final = "60s"


def scripts() -> Path:
    """The folder of the migrations."""
    here = Path(__file__).resolve()
    for folder in (here.parent / "migrations", here.parents[2] / "migrations"):
        if (folder / "env.py").is_file():
            return folder
    raise Unavailable("the database migrations are not installed; install muster-train again")


def upgrade(url: str, revision: str = "head") -> None:
    """Bring the database at *url* to *revision*; harmless where it is there already.

    Blocks. Raises `Unavailable` when the database can't be reached.
    """
    try:
        with connected(url) as connection:
            config = Config()
            config.set_main_option("script_location", str(scripts()).replace("%", "%%"))
            config.attributes["connection"] = connection
            command.upgrade(config, revision)
    except OperationalError as error:
        raise Unavailable(f"the database can't be migrated: {error.orig}") from error


@contextmanager
def connected(url: str) -> Iterator[sa.Connection]:
    """A connection that alone may change the schema, with limits on how long it stops others."""
    target = url_of(url)
    engine = _engine(target)
    try:
        with _alone(target), engine.connect() as connection:
            if not is_sqlite(target):
                _lock(connection)
            yield connection
    finally:
        engine.dispose()


def _engine(url: sa.URL) -> sa.Engine:
    if not is_sqlite(url):
        return sa.create_engine(url, poolclass=NullPool)
    engine = sa.create_engine(url.set(drivername="sqlite"), poolclass=NullPool)
    sa.event.listen(engine, "connect", configure_sqlite)
    sa.event.listen(engine, "begin", lambda c: c.exec_driver_sql("BEGIN IMMEDIATE"))
    return engine


def _alone(url: sa.URL) -> AbstractContextManager[None]:
    return file_held(url, _LOCK) if is_sqlite(url) else nullcontext()


def _lock(connection: sa.Connection) -> None:
    """Take the advisory lock, which goes with the connection, and set the limits."""
    connection.exec_driver_sql(f"SET lock_timeout = '{_WAIT_SECONDS}s'")
    try:
        connection.execute(sa.select(sa.func.pg_advisory_lock(key_of(_LOCK))))
    except DBAPIError as error:
        problem = f"another migration of this database has not ended within {_WAIT_SECONDS} s"
        raise Unavailable(problem) from error
    # What a running release uses must not stand still for a migration.
    connection.exec_driver_sql(f"SET lock_timeout = '{_LOCK_TIMEOUT}'")
    connection.exec_driver_sql(f"SET statement_timeout = '{_STATEMENT_TIMEOUT}'")
    connection.commit()
