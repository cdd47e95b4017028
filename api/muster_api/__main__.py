"""`python -m muster_api`: the API, by settings from the environment."""

import asyncio
import logging
import os
import sys
import time

import uvicorn

from muster.errors import MusterError
from muster_api.app import create_app
from muster_api.cluster import KubeCluster, KubeReviewer
from muster_api.parts import Parts
from muster_api.settings import ApiSettings, read
from muster_db.database import Database
from muster_db.migrate import upgrade
from muster_kube import Kube

_log = logging.getLogger("muster_api")


def now_ms() -> int:
    """The time, in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


async def serve(settings: ApiSettings) -> None:
    """Serve until a signal says to stop."""
    database = Database(settings.database_url)
    try:
        async with await Kube.connect() as kube:
            app = create_app(Parts(database, KubeCluster(kube), KubeReviewer(kube), now_ms))
            config = uvicorn.Config(
                app,
                host=settings.http_host,
                port=settings.http_port,
                log_config=None,
                access_log=False,
            )
            await uvicorn.Server(config).serve()
    finally:
        await database.close()


def main() -> int:
    """Start; gives the exit code."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    try:
        settings = read(ApiSettings, os.environ)
        upgrade(settings.database_url)
        asyncio.run(serve(settings))
    except MusterError as error:
        _log.error("%s", error)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
