"""How Alembic runs our migrations: each in a transaction of its own.

`muster_db.migrate.upgrade` hands its connection in, locked and with its limits. Started by the
`alembic` command instead, we make the same one from MUSTER_DATABASE_URL.
"""

import os

import sqlalchemy as sa
from alembic import context

from muster_db.migrate import connected
from muster_db.tables import metadata


def run(connection: sa.Connection) -> None:
    """Run what is missing on *connection*."""
    context.configure(
        connection=connection,
        target_metadata=metadata,
        transaction_per_migration=True,
        compare_type=True,
        # SQLite can do it too, once the driver leaves transactions to us.
        transactional_ddl=True,
        # SQLite can't change a column in place.
        render_as_batch=True,
    )
    with context.begin_transaction():
        context.run_migrations()


given = context.config.attributes.get("connection")
if given is not None:
    run(given)
else:
    with connected(os.environ["MUSTER_DATABASE_URL"]) as own:
        run(own)
