"""What the operator sees and decided, read over HTTP; answers are worked out here from that.

The operator plans, and only that: whoever wants an explanation or a what-if runs the same core on
a copy of the snapshot, in this process and in a thread, so that neither the operator nor other
requests wait for it.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Any, Final, Protocol, Self, TypeVar
from urllib.parse import quote

import aiohttp

from muster import wire
from muster.errors import MusterError, NotFound, Unavailable
from muster.scheduling.archive import Inputs, loads
from muster_kube import Kube

T = TypeVar("T")
Json = dict[str, Any]

ACCOUNT: Final = "muster-api"
"""The service account of this API; it may have tokens made for itself."""
_SECONDS: Final = 30.0
_TRYING_SECONDS: Final = 20.0
"""For how long changes are tried that would start a job; what was found by then is told."""
_TOKEN_SECONDS: Final = 600
_RENEW_SECONDS: Final = 120


class Scheduler(Protocol):
    """What is known of the scheduler. Raises `Unavailable` while it cannot be reached."""

    async def inputs(self) -> Inputs:
        """What its next cycle would see."""

    async def snapshot(self) -> bytes:
        """The same as it is written to files."""

    async def decisions(self) -> Json:
        """The decisions that are kept, newest first."""

    async def decision(self, id_: str) -> bytes:
        """A decision with its inputs. Raises `NotFound`."""


class NoScheduler:
    """Stands in where this API was not told of an operator."""

    async def inputs(self) -> Inputs:
        """There is none."""
        raise self._away()

    async def snapshot(self) -> bytes:
        """There is none."""
        raise self._away()

    async def decisions(self) -> Json:
        """There are none."""
        raise self._away()

    async def decision(self, id_: str) -> bytes:
        """There is none."""
        raise self._away()

    def _away(self) -> MusterError:
        return Unavailable("this API does not know where the operator is; set MUSTER_OPERATOR_URL")


class OperatorScheduler:
    """The operator at *url*. Use it as an async context manager."""

    def __init__(self, url: str, kube: Kube) -> None:
        self._url = url.rstrip("/")
        self._kube = kube
        self._client: aiohttp.ClientSession | None = None
        self._token = ""
        self._renew_at = 0.0
        self._tag = ""
        self._text = b""
        self._inputs: Inputs | None = None

    async def __aenter__(self) -> Self:
        self._client = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(_SECONDS))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._client is not None:
            await self._client.close()

    async def inputs(self) -> Inputs:
        """What its next cycle would see; read again only when something has changed."""
        text, tag = await self._latest()
        if self._inputs is None or tag != self._tag:
            found = await asyncio.to_thread(loads, text)
            self._tag, self._text, self._inputs = tag, text, found
        return self._inputs

    async def snapshot(self) -> bytes:
        """The same as it is written to files."""
        text, _ = await self._latest()
        return text

    async def decisions(self) -> Json:
        """The decisions that are kept, newest first."""
        async with self._get("/decisions") as answer:
            found: Json = await answer.json()
            return found

    async def decision(self, id_: str) -> bytes:
        """A decision with its inputs. Raises `NotFound`."""
        async with self._get(f"/decisions/{quote(id_, safe='')}") as answer:
            return await answer.read()

    async def _latest(self) -> tuple[bytes, str]:
        tag = self._tag
        async with self._get("/snapshot", tag) as answer:
            if answer.status == 304:
                return self._text, tag
            return await answer.read(), answer.headers.get("ETag", "")

    def _get(self, path: str, tag: str = "") -> "_Answer":
        return _Answer(self, path, tag)

    async def ask(self, path: str, tag: str) -> aiohttp.ClientResponse:
        """The answer to a request with our token; whoever gets it closes it."""
        assert self._client is not None, "it was not entered"
        headers = {"Authorization": f"Bearer {await self._token_now()}"}
        if tag:
            headers["If-None-Match"] = tag
        try:
            answer = await self._client.get(self._url + path, headers=headers)
            if answer.status < 400:
                return answer
            async with answer:
                said = (await answer.text()).strip() or answer.reason or ""
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unavailable(
                f"the operator at {self._url} does not answer: "
                f"{str(error) or type(error).__name__}; is it up, and MUSTER_OPERATOR_URL right?"
            ) from error
        if answer.status == 404:
            raise NotFound(said)
        if answer.status == 401:
            self._renew_at = 0.0
        raise Unavailable(f"the operator at {self._url} answered {answer.status}: {said}")

    async def _token_now(self) -> str:
        """A token that is for the operator only: it is of no use to who overhears it."""
        if time.monotonic() >= self._renew_at:
            spec = {
                "audiences": [wire.OPERATOR_AUDIENCE],
                "expirationSeconds": _TOKEN_SECONDS,
            }
            body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
            namespace = f"/api/v1/namespaces/{wire.SYSTEM_NAMESPACE}"
            made = await self._kube.create(f"{namespace}/serviceaccounts/{ACCOUNT}/token", body)
            self._token = str(made["status"]["token"])
            self._renew_at = time.monotonic() + _TOKEN_SECONDS - _RENEW_SECONDS
        return self._token


class _Answer:
    """An answer for as long as it is read; what breaks meanwhile is `Unavailable` too."""

    def __init__(self, scheduler: OperatorScheduler, path: str, tag: str) -> None:
        self._scheduler, self._path, self._tag = scheduler, path, tag
        self._answer: aiohttp.ClientResponse | None = None

    async def __aenter__(self) -> aiohttp.ClientResponse:
        self._answer = await self._scheduler.ask(self._path, self._tag)
        return self._answer

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._answer is not None:
            self._answer.release()
        if isinstance(error, aiohttp.ClientError | TimeoutError):
            raise Unavailable(f"the operator broke off: {error}") from error


class Thinker:
    """Works out answers from the scheduler's inputs, one plan at a time."""

    def __init__(self, scheduler: Scheduler, clock: Callable[[], int]) -> None:
        self.scheduler = scheduler
        self._clock = clock
        self._turn = asyncio.Semaphore(1)
        self._quick_turn = asyncio.Semaphore(1)

    async def inputs(self) -> Inputs:
        """What the scheduler sees, at the time of this API."""
        return replace(await self.scheduler.inputs(), now=self._clock() / 1000)

    async def work(self, think: Callable[[], T], *, is_quick: bool = False) -> T:
        """What *think* gives, from a thread; what is quick does not wait for what is not."""
        async with self._quick_turn if is_quick else self._turn:
            return await asyncio.to_thread(think)

    def allowance(self) -> Callable[[], bool]:
        """Says whether there is time to try one thing more; it counts from its first call."""
        started: list[float] = []

        def goes_on() -> bool:
            started[:] = started or [time.monotonic()]
            return time.monotonic() - started[0] < _TRYING_SECONDS

        return goes_on
