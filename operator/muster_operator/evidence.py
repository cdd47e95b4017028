"""What the operator sees and what it decided, over HTTP, for those who may read it.

Jobs, users and queues of all namespaces are named here, so each request needs a bearer token: one
that was made for us (audience `muster-operator`, which is of no use at the API server), and whose
owner Kubernetes lets `get snapshots` or `get decisions` of our group. Templates, values of the
environment and secrets are in none of it. Nothing can be changed through here.
"""

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from secrets import token_hex
from typing import Any, Final, Protocol

from aiohttp import web

from muster import wire
from muster.errors import NotFound
from muster.scheduling.archive import Inputs, dumps
from muster.scheduling.cluster import Cluster
from muster.scheduling.policy import Policy
from muster_kube import ApiError
from muster_operator.spool import Spool

Json = dict[str, Any]
_KEPT_SECONDS: Final = 5.0
"""How long an answer about a token counts; a right that is taken away is gone that much later."""
_KEPT_MOST: Final = 1000
_MOST_TOKEN: Final = 32_768
_JSON: Final = "application/json"


class Reviews(Protocol):
    """Where tokens and accesses are judged: the API server."""

    async def create(self, path: str, body: Any) -> Json:
        """Have a review answered."""


class Guard:
    """Lets in who may read."""

    def __init__(self, reviews: Reviews, clock: Callable[[], float]) -> None:
        self._reviews = reviews
        self._clock = clock
        self._answers: dict[tuple[bytes, str], tuple[float, str | None]] = {}

    async def check(self, request: web.Request, resource: str) -> None:
        """Raise what refuses the request, unless its sender may get *resource*."""
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token or len(token) > _MOST_TOKEN:
            raise _unauthorized()
        key = (hashlib.sha256(token.encode()).digest(), resource)
        at, refusal = self._answers.get(key, (0.0, None))
        if at + _KEPT_SECONDS <= self._clock():
            try:
                refusal = await self._refusal(token, resource)
            except ApiError as error:
                raise web.HTTPServiceUnavailable(text=f"{error}\n") from error
            if len(self._answers) >= _KEPT_MOST:
                self._answers.clear()
            self._answers[key] = (self._clock(), refusal)
        if refusal == "":
            raise _unauthorized()
        if refusal is not None:
            raise web.HTTPForbidden(text=refusal)

    async def _refusal(self, token: str, resource: str) -> str | None:
        """Why the owner of *token* may not; empty where nobody owns it, `None` where they may."""
        spec: Json = {"token": token, "audiences": [wire.OPERATOR_AUDIENCE]}
        status = await self._ask("authentication.k8s.io/v1", "TokenReview", spec)
        if not status.get("authenticated") or wire.OPERATOR_AUDIENCE not in (
            status.get("audiences") or ()
        ):
            return ""
        user = status.get("user") or {}
        spec = {
            "user": user.get("username"),
            "uid": user.get("uid"),
            "groups": user.get("groups"),
            "extra": user.get("extra"),
            "resourceAttributes": {"verb": "get", "group": wire.GROUP, "resource": resource},
        }
        status = await self._ask("authorization.k8s.io/v1", "SubjectAccessReview", spec)
        if status.get("allowed"):
            return None
        return f"{user.get('username')} may not get {resource}.{wire.GROUP}\n"

    async def _ask(self, api_version: str, kind: str, spec: Mapping[str, Any]) -> Json:
        body = {"apiVersion": api_version, "kind": kind, "spec": dict(spec)}
        answer = await self._reviews.create(f"/apis/{api_version}/{kind.lower()}s", body)
        return dict(answer.get("status") or {})


class Evidence:
    """The routes; *inputs* is what the next cycle would see."""

    def __init__(
        self,
        guard: Guard,
        cluster: Cluster,
        policy: Callable[[], Policy],
        spool: Spool,
        clock: Callable[[], float],
    ) -> None:
        self._guard = guard
        self._cluster = cluster
        self._policy = policy
        self._spool = spool
        self._clock = clock
        self._start = token_hex(4)

    def routes(self) -> list[web.RouteDef]:
        """What is served."""
        return [
            web.get("/snapshot", self._snapshot),
            web.get("/decisions", self._decisions),
            web.get("/decisions/{id}", self._decision),
        ]

    async def _snapshot(self, request: web.Request) -> web.Response:
        """What the next cycle would see; unchanged it is not sent twice."""
        await self._guard.check(request, wire.SNAPSHOTS)
        tag = f'"{self._start}-{self._cluster.snapshot().version}"'
        if request.headers.get("If-None-Match") == tag:
            return web.Response(status=304, headers={"ETag": tag})
        inputs = Inputs(self._cluster.objects(), self._policy(), self._clock())
        text = await asyncio.to_thread(dumps, inputs)
        return _answer(text, {"ETag": tag})

    async def _decisions(self, request: web.Request) -> web.Response:
        await self._guard.check(request, wire.DECISIONS)
        items = [entry.as_json() for entry in self._spool.entries()]
        return web.json_response({"items": items})

    async def _decision(self, request: web.Request) -> web.Response:
        await self._guard.check(request, wire.DECISIONS)
        try:
            text = await self._spool.text_of(request.match_info["id"])
        except NotFound as error:
            raise web.HTTPNotFound(text=f"{error}\n") from error
        return _answer(text, {})


def _answer(text: str, headers: Mapping[str, str]) -> web.Response:
    response = web.Response(text=text, content_type=_JSON, headers=dict(headers))
    response.enable_compression()
    return response


def _unauthorized() -> web.HTTPUnauthorized:
    return web.HTTPUnauthorized(
        text=f"a token with the audience {wire.OPERATOR_AUDIENCE} is needed\n",
        headers={"WWW-Authenticate": 'Bearer realm="muster-operator"'},
    )
