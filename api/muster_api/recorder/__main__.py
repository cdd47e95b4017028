"""`python -m muster_api.recorder`: the recorder, by settings from the environment."""

import logging
import sys
from importlib.metadata import version

from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from muster_api import errors, health
from muster_api.clock import now_ms
from muster_api.recorder.metrics import RecorderMetrics
from muster_api.recorder.run import Recorder
from muster_api.serving import serve
from muster_api.settings import RecorderSettings
from muster_api.starting import start
from muster_db.database import Database
from muster_db.locks import waited_for
from muster_kube import Kube

_log = logging.getLogger("muster_api.recorder")
_STANDBY_SECONDS = 1.0


async def run(settings: RecorderSettings) -> None:
    """Record until a signal says to stop; stand by while another recorder does."""
    registry = CollectorRegistry()
    async with Database.opened(settings.database_url) as database, await Kube.connect() as kube:
        recorder = Recorder(
            database,
            kube,
            now_ms,
            RecorderMetrics(registry),
            tell_every_ms=settings.tell_every_seconds * 1000,
            end_wait_ms=settings.end_wait_seconds * 1000,
        )

        async def record() -> None:
            async with waited_for(
                database.url, "recorder", every_seconds=_STANDBY_SECONDS
            ) as lock:
                _log.info("recording to %s", database.url.render_as_string(hide_password=True))
                await recorder.run(lock)

        app = FastAPI(title="Muster's recorder", version=version("muster-train"))
        errors.install(app)
        health.install(app, [database.ping, recorder.check_synced], registry)
        await serve(app, settings.http_host, settings.http_port, record())


if __name__ == "__main__":
    sys.exit(start(RecorderSettings, run))
