"""The part of the kubelet's HTTPS API that the API server asks for: container logs.

It listens on loopback and answers only whoever has the API server's own client certificate, since
logs of all namespaces are behind it: who may read which is the API server's decision.
"""

import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from muster.errors import InvalidSpec, NotFound, Unavailable
from muster_local.nodes.fields import LOOPBACK
from muster_local.nodes.instance import is_over
from muster_local.nodes.launcher.launch import LOG
from muster_local.nodes.logs import LogOptions, read_log
from muster_local.nodes.settings import Tls

Find = Callable[[str, str, str], list[Path]]
"""The runs of a container, oldest first, by namespace, pod and container. Raises `NotFound`."""

_CLOSE_SECONDS: Final = 0.5


class Endpoint:
    """Serves logs from `start` to `close`."""

    def __init__(self, find: Find, tls: Tls) -> None:
        self._find = find
        self._tls = tls
        application = web.Application(middlewares=[self._authenticate])
        application.router.add_get("/healthz", self._health)
        application.router.add_get(
            "/containerLogs/{namespace}/{pod}/{container}", self._container_log
        )
        application.router.add_route("*", "/{rest:.*}", self._unknown)
        # Ends the answer when its reader goes away, even while there is nothing to write.
        self._runner = web.AppRunner(
            application,
            handler_cancellation=True,
            access_log=None,
            shutdown_timeout=_CLOSE_SECONDS,
        )

    async def start(self, port: int) -> int:
        """Listen on *port*, or on a free one for 0, and give it. Raises `Unavailable`."""
        context = ssl.create_default_context(
            ssl.Purpose.CLIENT_AUTH, cafile=str(self._tls.client_authority)
        )
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(self._tls.certificate, self._tls.key)
        await self._runner.setup()
        site = web.TCPSite(self._runner, LOOPBACK, port, ssl_context=context)
        try:
            await site.start()
        except OSError as error:
            raise Unavailable(f"--port {port}: {error}; take another, or 0") from error
        return int(self._runner.addresses[0][1])

    async def close(self) -> None:
        """Stop listening, and end the answers that are under way."""
        await self._runner.cleanup()

    @web.middleware
    async def _authenticate(self, request: web.Request, handler: Any) -> web.StreamResponse:
        """TLS has checked who signed the certificate; here it is whose it is."""
        certificate = request.get_extra_info("peercert") or {}
        names = {value for part in certificate.get("subject", ()) for _, value in part}
        if self._tls.client_name not in names:
            return web.Response(status=403, text="only the API server may ask here\n")
        answer: web.StreamResponse = await handler(request)
        return answer

    async def _health(self, _: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _unknown(self, _: web.Request) -> web.Response:
        return web.Response(
            status=501, text="process nodes serve logs; exec, attach and ports not"
        )

    async def _container_log(self, request: web.Request) -> web.StreamResponse:
        where = request.match_info
        try:
            options = LogOptions.of(request.query, now=time.time())
            runs = self._find(where["namespace"], where["pod"], where["container"])
        except InvalidSpec as error:
            return web.Response(status=400, text=str(error))
        except NotFound as error:
            return web.Response(status=404, text=str(error))
        position = 2 if options.previous else 1
        if len(runs) < position or not (runs[-position] / LOG).exists():
            what = "previous terminated container" if options.previous else "container"
            problem = "not found" if options.previous else "is waiting to start: ContainerCreating"
            text = f'{what} "{where["container"]}" in pod "{where["pod"]}" {problem}'
            return web.Response(status=400, text=text)
        return await _stream(request, runs[-position], options)


async def _stream(request: web.Request, run: Path, options: LogOptions) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/plain"})
    response.enable_chunked_encoding()
    await response.prepare(request)
    async for piece in read_log(run, options, is_over=lambda: is_over(run)):
        await response.write(piece)
    await response.write_eof()
    return response
