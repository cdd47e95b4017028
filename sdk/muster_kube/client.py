"""Requests and watches in raw JSON.

`kubernetes.aio` finds the credentials and makes the TLS connection; its models and its JSON layer
are left out, because a pod costs 40 µs through orjson and over a millisecond through the models.
This is the only module that imports the Kubernetes client or aiohttp for it.
"""

import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import orjson
from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.client.rest import RESTClientObject
from kubernetes.aio.config import ConfigException, load_incluster_config
from kubernetes.aio.config.kube_config import load_kube_config, load_kube_config_from_dict

from muster_kube.errors import ApiError, ApiUnreachable, error_of

_CONTENT_TYPES: Final = {
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
_REQUEST_SECONDS: Final = 60.0
_MAX_WATCH_LINE: Final = 16 * 2**20

Json = dict[str, Any]


class Kube:
    """One API server. Use it as an async context manager, or call `close`."""

    def __init__(self, configuration: Configuration, namespace: str = "default") -> None:
        self._configuration = configuration
        self._rest = RESTClientObject(configuration)
        self._session: aiohttp.ClientSession | None = None
        self.namespace = namespace
        """The namespace of the current context."""
        self.server: str = configuration.host

    @classmethod
    async def connect(
        cls,
        kubeconfig: Path | Mapping[str, Any] | None = None,
        *,
        context: str | None = None,
        connections: int = 64,
    ) -> Self:
        """A client from *kubeconfig* (a file, or its content), else `KUBECONFIG`, else the pod's
        own service account.

        Nothing is sent yet. Raises `ApiUnreachable` when there is no usable configuration.
        """
        configuration = Configuration()
        configuration.connection_pool_maxsize = connections
        # Our own certificates, and those of many real clusters, lack the key identifiers that
        # strict X.509 asks for.
        configuration.disable_strict_ssl_verification = True
        namespace = "default"
        try:
            if isinstance(kubeconfig, Mapping):
                loader = await load_kube_config_from_dict(
                    dict(kubeconfig), context=context, client_configuration=configuration
                )
                namespace = _namespace_of(loader)
            elif (
                kubeconfig is None
                and "KUBERNETES_SERVICE_HOST" in os.environ
                and not has_kubeconfig()
            ):
                load_incluster_config(client_configuration=configuration)
            else:
                file = None if kubeconfig is None else str(kubeconfig)
                if file is not None and not _is_file(file):
                    raise ApiUnreachable(f"no usable kubeconfig: there is no file {file}")
                loader = await load_kube_config(
                    file, context=context, client_configuration=configuration, persist_config=False
                )
                namespace = _namespace_of(loader)
        except (ConfigException, OSError) as error:
            raise ApiUnreachable(f"no usable kubeconfig: {error}") from error
        return cls(configuration, namespace)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._rest.close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
        timeout_seconds: float = _REQUEST_SECONDS,
    ) -> Json:
        """Send one request and return the JSON object that comes back. Raises an `ApiError`."""
        data = body if isinstance(body, bytes) or body is None else orjson.dumps(body)
        try:
            async with self._session_now().request(
                method,
                self.server + path,
                params=query,
                data=data,
                headers=await self._headers(content_type),
                timeout=aiohttp.ClientTimeout(total=timeout_seconds),
            ) as response:
                raw = await response.read()
                if response.status >= 400:
                    raise error_of(
                        response.status, _object(raw), response.headers.get("Retry-After")
                    )
                return _object(raw)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ApiUnreachable(
                f"the API server at {self.server} does not answer: "
                f"{str(error) or type(error).__name__}"
            ) from error

    async def get(self, path: str, **query: str) -> Json:
        """Read one object or collection."""
        return await self.request("GET", path, query=query or None)

    async def list(
        self, path: str, *, query: Mapping[str, str] | None = None, page: int = 500
    ) -> tuple[list[Json], str]:
        """All objects of a collection, read in pages, and the version from which to watch on."""
        items: list[Json] = []
        more: str | None = None
        while True:
            asked = {**(query or {}), "limit": str(page)} | ({"continue": more} if more else {})
            answer = await self.request("GET", path, query=asked)
            items.extend(answer.get("items") or ())
            metadata = answer.get("metadata") or {}
            more = metadata.get("continue")
            if not more:
                return items, str(metadata.get("resourceVersion") or "")

    async def create(self, path: str, body: Any, **query: str) -> Json:
        """Create an object in the collection at *path*; `dryRun="All"` only asks."""
        return await self.request("POST", path, query=query or None, body=body)

    async def replace(self, path: str, body: Any, **query: str) -> Json:
        """Put an object; with its resourceVersion in it the write may raise `StaleVersion`."""
        return await self.request("PUT", path, query=query or None, body=body)

    async def patch(self, path: str, body: Any, *, kind: str = "merge", **query: str) -> Json:
        """Patch an object; *kind* is `merge`, `json` or `apply` (with `fieldManager`)."""
        return await self.request(
            "PATCH", path, query=query or None, body=body, content_type=_CONTENT_TYPES[kind]
        )

    async def delete(
        self,
        path: str,
        *,
        uid: str | None = None,
        grace_seconds: int | None = None,
        propagation: str | None = None,
    ) -> Json:
        """Delete an object, only the one with *uid* where given."""
        body: Json = {}
        if uid is not None:
            body["preconditions"] = {"uid": uid}
        if grace_seconds is not None:
            body["gracePeriodSeconds"] = grace_seconds
        if propagation is not None:
            body["propagationPolicy"] = propagation
        return await self.request("DELETE", path, body=body)

    async def watch(
        self,
        path: str,
        resource_version: str,
        *,
        query: Mapping[str, str] | None = None,
        timeout_seconds: int = 300,
    ) -> AsyncIterator[tuple[str, Json]]:
        """Yield (type, object) from *resource_version* on, until the server ends the watch.

        Bookmarks are passed on. Raises `Expired` when the version is too old, `ApiUnreachable`
        when the connection breaks.
        """
        asked = {
            **(query or {}),
            "watch": "1",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(timeout_seconds),
        }
        if resource_version:
            asked["resourceVersion"] = resource_version
        try:
            async with self._session_now().get(
                self.server + path,
                params=asked,
                headers=await self._headers(None),
                # A server that dies without a word must not leave the watch hanging for ever.
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=10, sock_read=timeout_seconds + 15
                ),
            ) as response:
                if response.status >= 400:
                    raise error_of(response.status, _object(await response.read()))
                async for line in _lines(response.content):
                    if not line:
                        continue
                    event = orjson.loads(line)
                    if event["type"] == "ERROR":
                        raise error_of(int(event["object"].get("code") or 500), event["object"])
                    yield event["type"], event["object"]
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ApiUnreachable(f"{self.server}: the watch of {path} broke: {error}") from error

    async def stream(self, path: str, **query: str) -> AsyncIterator[bytes]:
        """Yield the lines of a text answer as they come, such as the log of a pod."""
        try:
            async with self._session_now().get(
                self.server + path,
                params=query or None,
                headers=await self._headers(None),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
            ) as response:
                if response.status >= 400:
                    raise error_of(response.status, _object(await response.read()))
                async for line in _lines(response.content):
                    yield line
        except (aiohttp.ClientError, OSError) as error:
            raise ApiUnreachable(f"{self.server}: {path} broke off: {error}") from error

    async def token(self) -> str | None:
        """The bearer token of this moment, for a service that asks the API server who we are.

        None with client certificates or a password.
        """
        scheme, _, token = str(await self._bearer() or "").partition(" ")
        return token if scheme == "Bearer" and token else None

    async def session(self) -> aiohttp.ClientSession:
        """A connection pool with our credentials, for a library that makes its own requests.

        It belongs to whoever asked for it. Tokens rotate: ask again after a 401.
        """
        session = self._new_session()
        session.headers.update(await self._headers(None))
        return session

    def _session_now(self) -> aiohttp.ClientSession:
        """The connection pool, made on first use since it belongs to the running loop."""
        if self._session is None:
            self._rest.pool_manager = self._session = self._new_session()
        return self._session

    def _new_session(self) -> aiohttp.ClientSession:
        """A connection pool that looks for a proxy now, and not at each request.

        Left to itself aiohttp reads netrc and the environment in two threads for every request,
        which costs as much as the request, and fails if netrc knows the host and we have a token.
        """
        self._configuration.client_session_kwargs = {
            "trust_env": False,
            "proxy": self._configuration.proxy or _proxy_of(self.server),
            "cookie_jar": aiohttp.DummyCookieJar(),
        }
        session: aiohttp.ClientSession = self._rest._create_pool_manager()
        return session

    async def _headers(self, content_type: str | None) -> dict[str, str]:
        """Credentials of this moment (service account tokens rotate) and the type of the body."""
        headers = {"Accept": "application/json"}
        if content_type:
            headers["Content-Type"] = content_type
        if token := await self._bearer():
            headers["Authorization"] = token
        elif basic := self._configuration.get_basic_auth_token():
            headers["Authorization"] = basic
        return headers

    async def _bearer(self) -> str | None:
        """The Authorization header of a token; plugins and rotated files are asked again."""
        value: str | None = await self._configuration.get_api_key_with_prefix("BearerToken")
        return value


def _is_file(path: str) -> bool:
    """Whether there is such a file, as the loader of it finds out too late for a clear message."""
    return Path(path).is_file()


def has_kubeconfig() -> bool:
    """Whether there is a kubeconfig that kubectl would use."""
    named = os.environ.get("KUBECONFIG")
    files = (
        [Path(p) for p in named.split(os.pathsep) if p]
        if named
        else [Path.home() / ".kube" / "config"]
    )
    return any(file.is_file() for file in files)


def _proxy_of(server: str) -> str | None:
    """The proxy that the environment names for *server*."""
    url = urlsplit(server)
    if url.hostname is None or proxy_bypass(url.hostname):
        return None
    return getproxies().get(url.scheme)


def _namespace_of(loader: Any) -> str:
    context = loader.current_context.get("context") or {}
    return str(context.get("namespace") or "default") if hasattr(context, "get") else "default"


def _object(raw: bytes) -> Json:
    """The JSON object in *raw*; anything else counts as an empty one."""
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Lines of any length: a job with a large placement passes the stream reader's own limit."""
    rest = b""
    while chunk := await content.readany():
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line
        if len(rest) > _MAX_WATCH_LINE:
            raise ApiError(f"a line of more than {_MAX_WATCH_LINE} bytes")
    if rest:
        yield rest
