"""Serving HTTP beside other work, until a signal says to stop."""

import asyncio
import signal
import socket
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from muster.errors import Unavailable


class _Server(uvicorn.Server):
    """A server that leaves signals to us: uvicorn would end the process before we have closed."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


async def serve(app: Any, host: str, port: int, *beside: Coroutine[Any, Any, None]) -> None:
    """Serve *app*, and run *beside*, until SIGTERM or SIGINT, or until one of them ends.

    Raises what ended it. A port that is taken is `Unavailable`, said before anything starts.
    """
    server = _Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off"))
    try:
        listening = _listen(host, port)
    except Unavailable:
        for work in beside:
            work.close()
        raise
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    stopping = asyncio.create_task(stopped.wait())
    tasks = [serving, *(asyncio.create_task(work) for work in beside)]
    try:
        await asyncio.wait({stopping, *tasks}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        server.should_exit = True
        stopping.cancel()
        for task in tasks[1:]:
            if not task.done():
                task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        listening.close()
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port))
    except OSError as error:
        raise Unavailable(
            f"MUSTER_HTTP_PORT: {host}:{port} can't be listened on: {error.strerror}"
        ) from error
