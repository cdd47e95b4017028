"""`python -m muster_api`: the API, by settings from the environment."""

import sys
from contextlib import AsyncExitStack
from dataclasses import replace

from muster_api.app import create_app
from muster_api.clock import now_ms
from muster_api.cluster import KubeCluster, KubeReviewer
from muster_api.parts import Parts
from muster_api.scheduler import OperatorScheduler
from muster_api.serving import serve
from muster_api.settings import ApiSettings
from muster_api.starting import start
from muster_db.database import Database
from muster_kube import Kube


async def run(settings: ApiSettings) -> None:
    """Serve until a signal says to stop."""
    async with (
        Database.opened(settings.database_url) as database,
        await Kube.connect() as kube,
        AsyncExitStack() as stack,
    ):
        parts = Parts(database, KubeCluster(kube), KubeReviewer(kube), now_ms)
        if settings.operator_url:
            scheduler = OperatorScheduler(settings.operator_url, kube)
            parts = replace(parts, scheduler=await stack.enter_async_context(scheduler))
        await serve(create_app(parts), settings.http_host, settings.http_port)


if __name__ == "__main__":
    sys.exit(start(ApiSettings, run))
