"""An API over a real database, with a pretended API server."""

from collections.abc import AsyncIterator

import httpx2
import pytest
import pytest_asyncio

from apis import PretendedPlatform, client_of
from muster_db.database import Database


@pytest.fixture
def platform(database: Database) -> PretendedPlatform:
    """What the API is made of; it has the queue `default`."""
    made = PretendedPlatform(database)
    made.cluster.add_queue("default")
    return made


@pytest_asyncio.fixture
async def client(platform: PretendedPlatform) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of that API."""
    async with client_of(platform.parts) as opened:
        yield opened
