"""Who asks, and whether they may: bearer tokens, judged by Kubernetes and by nobody else.

A token is checked by TokenReview, each request by SubjectAccessReview on the object that it
touches. Both answers are kept for a few seconds: a right that is taken away is gone that much
later. Tokens are kept as hashes only.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, Generic, Protocol, TypeVar

from fastapi import Depends, Request

from muster import wire
from muster.errors import Forbidden, Unauthorized

K = TypeVar("K")
V = TypeVar("V")

TOKEN_SECONDS: Final = 5
ACCESS_SECONDS: Final = 5
_MOST_KEPT: Final = 10_000
_MOST_TOKEN: Final = 32_768
_POD_NAME: Final = "authentication.kubernetes.io/pod-name"
_POD_UID: Final = "authentication.kubernetes.io/pod-uid"
_SERVICE_ACCOUNT: Final = "system:serviceaccount:"


@dataclass(frozen=True, slots=True)
class Identity:
    """Somebody whom the API server knows."""

    username: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Access:
    """A deed, in the words of SubjectAccessReview."""

    verb: str
    resource: str
    namespace: str = ""
    """Empty means all namespaces, or a resource that has none."""
    name: str = ""
    group: str = wire.GROUP

    def __str__(self) -> str:
        where = f" in namespace {self.namespace}" if self.namespace else ""
        what = f"{self.resource} {self.name}" if self.name else self.resource
        return f"{self.verb} {what}{where}"


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod that speaks for itself, by its projected token."""

    namespace: str
    name: str
    uid: str


class Reviewer(Protocol):
    """Judges tokens and accesses: the API server."""

    async def review(self, token: str, audience: str | None) -> Identity | None:
        """Whose token it is, for *audience* or else the API server's own; None if not valid."""

    async def allows(self, identity: Identity, access: Access) -> bool:
        """Whether *identity* may do it."""


class Recent(Generic[K, V]):
    """Answers of the last few seconds, bounded in number."""

    def __init__(self, seconds: float, clock: Callable[[], int]) -> None:
        self._ms = int(seconds * 1000)
        self._clock = clock
        self._answers: dict[K, tuple[int, V]] = {}

    def get(self, key: K) -> tuple[V] | None:
        """The answer, in a tuple since it may be None itself; None where there is none."""
        kept = self._answers.get(key)
        if kept is None or kept[0] < self._clock():
            return None
        return (kept[1],)

    def put(self, key: K, answer: V) -> V:
        """Keep *answer*, and give it back."""
        self._answers.pop(key, None)
        # All are kept equally long, so that the first one is the oldest.
        while len(self._answers) >= _MOST_KEPT:
            del self._answers[next(iter(self._answers))]
        self._answers[key] = (self._clock() + self._ms, answer)
        return answer


class Gate:
    """Lets requests through, or raises `Unauthorized` or `Forbidden`."""

    def __init__(self, reviewer: Reviewer, clock: Callable[[], int]) -> None:
        self._reviewer = reviewer
        self._identities: Recent[tuple[bytes, str | None], Identity | None] = Recent(
            TOKEN_SECONDS, clock
        )
        self._accesses: Recent[tuple[Identity, Access], bool] = Recent(ACCESS_SECONDS, clock)

    async def identify(self, header: str | None, audience: str | None = None) -> Identity:
        """Who sent this Authorization header. Raises `Unauthorized`."""
        token = _token_in(header)
        key = (hashlib.sha256(token.encode()).digest(), audience)
        kept = self._identities.get(key)
        found = (
            kept[0]
            if kept is not None
            else self._identities.put(key, await self._reviewer.review(token, audience))
        )
        if found is None:
            raise Unauthorized("the token is not valid here; get a new one")
        return found

    async def pod(self, header: str | None) -> Pod:
        """The pod that sent this header, by the token that is made for reports."""
        identity = await self.identify(header, wire.AUDIENCE)
        account = identity.username.removeprefix(_SERVICE_ACCOUNT)
        name, uid = (identity.extra.get(key, ()) for key in (_POD_NAME, _POD_UID))
        if account == identity.username or len(name) != 1 or len(uid) != 1:
            raise Forbidden("only a pod may report, with the token that is mounted into it")
        return Pod(namespace=account.split(":")[0], name=name[0], uid=uid[0])

    async def may(self, identity: Identity, access: Access) -> bool:
        """Whether *identity* may do it."""
        kept = self._accesses.get((identity, access))
        if kept is not None:
            return kept[0]
        allowed = await self._reviewer.allows(identity, access)
        return self._accesses.put((identity, access), allowed)

    async def require(self, identity: Identity, access: Access) -> None:
        """Raise `Forbidden` unless *identity* may do it."""
        if not await self.may(identity, access):
            raise Forbidden(f"{identity.username} may not {access}")


def _token_in(header: str | None) -> str:
    scheme, _, token = (header or "").partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token:
        raise Unauthorized("a bearer token is needed: Authorization: Bearer TOKEN")
    if len(token) > _MOST_TOKEN or not token.isascii():
        raise Unauthorized("the token is not valid here; get a new one")
    return token


def gate_of(request: Request) -> Gate:
    """The gate of this API."""
    gate: Gate = request.app.state.gate
    return gate


async def caller(request: Request, gate: Annotated[Gate, Depends(gate_of)]) -> Identity:
    """Who asks."""
    return await gate.identify(request.headers.get("Authorization"))


Caller = Annotated[Identity, Depends(caller)]
GateOf = Annotated[Gate, Depends(gate_of)]
