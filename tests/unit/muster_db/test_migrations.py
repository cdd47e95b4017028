"""Tables and migrations say the same on both databases."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext

from muster.errors import Unavailable
from muster_db.migrate import connected, scripts, upgrade
from muster_db.tables import metadata


def test_the_migrations_make_the_tables(empty_url: str) -> None:
    upgrade(empty_url)

    with connected(empty_url) as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})

        assert compare_metadata(context, metadata) == []


def test_migrating_again_changes_nothing(database_url: str) -> None:
    upgrade(database_url)

    with connected(database_url) as connection:
        assert connection.scalar(sa.text("SELECT count(*) FROM alembic_version")) == 1


def test_processes_that_start_at_once_wait_for_each_other(empty_url: str) -> None:
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(upgrade, [empty_url] * 3))

    with connected(empty_url) as connection:
        assert set(metadata.tables) < set(sa.inspect(connection).get_table_names())


def test_a_migration_can_be_undone(empty_url: str) -> None:
    upgrade(empty_url)

    with connected(empty_url) as connection:
        config = Config()
        config.set_main_option("script_location", str(scripts()))
        config.attributes["connection"] = connection
        command.downgrade(config, "base")

        assert sa.inspect(connection).get_table_names() == ["alembic_version"]


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("mysql://localhost/x", "must be sqlite"),
        ("sqlite://", "must be sqlite"),
        ("nonsense", "not the URL"),
        ("sqlite:////nowhere/at/all.db", "can't be written"),
        ("postgresql://nobody@127.0.0.1:9/x", "can't be migrated"),
    ],
)
def test_a_database_that_cannot_be_used_is_said_so(url: str, problem: str) -> None:
    with pytest.raises(Unavailable, match=problem):
        upgrade(url)
