"""Dated price rows, as the price list has them."""

from collections.abc import Collection
from dataclasses import asdict

import sqlalchemy as sa

from muster.cost import PriceRow
from muster_db.database import Transaction
from muster_db.tables import prices


class PriceRepository:
    """Queries on prices, in one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    async def replace(self, rows: Collection[PriceRow]) -> None:
        """Make *rows* the price list."""
        await self._transaction.execute(sa.delete(prices))
        if rows:
            await self._transaction.execute(sa.insert(prices), [asdict(row) for row in rows])

    async def all(self) -> list[PriceRow]:
        """The whole price list."""
        rows = await self._transaction.execute(sa.select(prices))
        return sorted(PriceRow(**row) for row in rows.mappings())
