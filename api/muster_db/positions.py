"""How far the recorder came, written in the same transaction as the rows that it came from."""

import sqlalchemy as sa

from muster.errors import Conflict
from muster_db.database import Transaction
from muster_db.records import Position
from muster_db.tables import positions
from muster_db.upserts import insert_into


class PositionRepository:
    """Queries on positions, in one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    async def get(self, collection: str) -> Position | None:
        """The position in a collection."""
        row = (
            await self._transaction.execute(
                sa.select(positions).where(positions.c.collection == collection)
            )
        ).one_or_none()
        return None if row is None else Position(row.cluster, row.resource_version, row.seen_ms)

    async def move(self, collection: str, *, old: Position | None, new: Position) -> None:
        """Go from *old* to *new*.

        Raises `Conflict` where another recorder moved it meanwhile: what it wrote and what we are
        about to write would not fit together.
        """
        values = {
            "cluster": new.cluster,
            "resource_version": new.resource_version,
            "seen_ms": new.seen_ms,
        }
        if old is None:
            insert = insert_into(self._transaction, positions).on_conflict_do_nothing()
            statement = insert.values(collection=collection, **values)
        else:
            statement = (
                sa.update(positions)
                .where(
                    positions.c.collection == collection,
                    positions.c.cluster == old.cluster,
                    positions.c.resource_version == old.resource_version,
                    positions.c.seen_ms == old.seen_ms,
                )
                .values(values)
            )
        moved = await self._transaction.execute(statement.returning(positions.c.collection))
        if moved.first() is None:
            raise Conflict(f"another recorder wrote {collection} to this database")
