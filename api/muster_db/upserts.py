"""Insert, or update what is there: spelled alike on SQLite and PostgreSQL."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from muster_db.database import Transaction


def insert_into(transaction: Transaction, table: sa.Table) -> Any:
    """An INSERT of this database, which has `on_conflict_do_…`."""
    dialect = sqlite if transaction.dialect.name == "sqlite" else postgresql
    return dialect.insert(table)


async def upsert(
    transaction: Transaction,
    table: sa.Table,
    rows: Sequence[Mapping[str, Any]],
    *,
    only: Collection[str] | None = None,
) -> None:
    """Put *rows* in; where the primary key exists, their columns (or *only* those) replace it."""
    if not rows:
        return
    statement = insert_into(transaction, table)
    keys = [column.name for column in table.primary_key]
    changed = {
        name: statement.excluded[name]
        for name in (rows[0] if only is None else only)
        if name not in keys
    }
    await transaction.execute(
        statement.on_conflict_do_update(index_elements=keys, set_=changed), list(rows)
    )
