"""Metrics and health, for Prometheus and the kubelet, and what else is given to be served."""

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

from aiohttp import web

from muster.errors import Unavailable
from muster_operator.metrics import Metrics


@asynccontextmanager
async def served(
    host: str,
    port: int,
    metrics: Metrics,
    is_ready: Callable[[], bool],
    routes: Iterable[web.RouteDef] = (),
) -> AsyncIterator[int]:
    """Serve as long as the context lasts; gives the port. Raises `Unavailable` if it is taken."""

    async def health(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def ready(_: web.Request) -> web.Response:
        if is_ready():
            return web.Response(text="ok\n")
        return web.Response(text="the caches have not synced yet\n", status=503)

    async def exposition(_: web.Request) -> web.Response:
        return web.Response(
            body=metrics.text(), headers={"Content-Type": "text/plain; version=0.0.4"}
        )

    app = web.Application()
    app.add_routes(
        [
            web.get("/healthz", health),
            web.get("/readyz", ready),
            web.get("/metrics", exposition),
            *routes,
        ]
    )
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            raise Unavailable(
                f"MUSTER_HTTP_PORT: {host}:{port} cannot be used: {error.strerror or error}"
            ) from error
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()
