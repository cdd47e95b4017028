"""Bodies that are too large are refused before they are held in memory."""

from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from muster_api.errors import TooLarge, answer

MOST_BYTES: Final = 2 * 2**20
"""More than the API server takes for one object."""


class BodyLimit:
    """Answers 413 to a body of more than `MOST_BYTES`, whether or not it says its length."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, counting its body."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        problem = f"the body is larger than {MOST_BYTES} bytes"
        length = dict(scope["headers"]).get(b"content-length", b"0")
        if length.isdigit() and int(length) > MOST_BYTES:
            await answer(413, problem, scope["path"])(scope, receive, send)
            return
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body") or b"")
            if seen > MOST_BYTES:
                raise TooLarge(problem)
            return message

        await self._app(scope, counted, send)
