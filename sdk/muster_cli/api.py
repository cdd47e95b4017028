"""Muster's REST API, as the command uses it. The one module here that imports an HTTP client.

Problem details (RFC 9457) become the errors of `muster.errors`, with the fields that are wrong in
their message.
"""

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote

import httpx2

from muster.errors import (
    Conflict,
    Forbidden,
    InvalidSpec,
    MusterError,
    NotFound,
    Unauthorized,
    Unavailable,
)

Json = dict[str, Any]

_SECONDS: Final = 30.0


class Api:
    """One Muster API. Use it as a context manager, or call `close`."""

    def __init__(
        self, url: str, token: str | None = None, *, transport: httpx2.BaseTransport | None = None
    ) -> None:
        self.url = url.rstrip("/")
        self._client = httpx2.Client(
            base_url=self.url + "/api/v1",
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=httpx2.Timeout(_SECONDS, connect=5.0),
            transport=transport,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def submit(self, job: Mapping[str, Any], *, namespace: str, dry_run: bool = False) -> Json:
        """Create *job* in *namespace*; with *dry_run* only ask whether it would be accepted."""
        query = {"namespace": namespace} | ({"dryRun": "true"} if dry_run else {})
        return self._send("POST", "/jobs", query=query, body=job)

    def jobs(self, namespace: str | None) -> Json:
        """The jobs of *namespace*, or of all, newest first."""
        query = {"namespace": namespace} if namespace else {}
        answer = self._send("GET", "/jobs", query=query)
        items = list(answer["items"])
        while after := answer.get("next"):
            answer = self._send("GET", "/jobs", query={**query, "after": after})
            items.extend(answer["items"])
        return {"items": items}

    def job(self, namespace: str, name: str) -> Json:
        """One job with its conditions and attempts."""
        return self._send("GET", _job(namespace, name))

    def epochs(self, namespace: str, name: str) -> Json:
        """The epochs of a job, with what each took and cost."""
        return self._send("GET", _job(namespace, name) + "/epochs")

    def cost(self, namespace: str, name: str, by: str) -> Json:
        """What a job cost, in lines by *by*."""
        return self._send("GET", _job(namespace, name) + "/cost", query={"by": by})

    def cancel(self, namespace: str, name: str) -> Json:
        """Cancel a job: delete it. Its history stays."""
        return self._send("DELETE", _job(namespace, name))

    def queues(self) -> Json:
        """The queues, with their limits and usage."""
        return self._send("GET", "/queues")

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Json:
        try:
            answer = self._client.request(method, path, params=query, json=body)
        except httpx2.InvalidURL as error:
            raise InvalidSpec("MUSTER_API_URL", f"{self.url} is not a URL: {error}") from error
        except httpx2.HTTPError as error:
            raise Unavailable(
                f"the Muster API at {self.url} does not answer: "
                f"{str(error) or type(error).__name__}; is the platform up (muster local status), "
                "or MUSTER_API_URL wrong?"
            ) from error
        if answer.is_success:
            return _object(answer) if answer.content else {}
        raise _error(answer, self.url)


def _job(namespace: str, name: str) -> str:
    return f"/namespaces/{quote(namespace, safe='')}/jobs/{quote(name, safe='')}"


def _object(answer: httpx2.Response) -> Json:
    """The JSON object in *answer*; something else in front of the API may send anything."""
    try:
        value = answer.json()
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {}


def _error(answer: httpx2.Response, url: str) -> MusterError:
    """The error that a problem document describes."""
    problem = _object(answer)
    detail = str(problem.get("detail") or problem.get("title") or "").strip()
    said = detail or f"{url} answered {answer.status_code} {answer.reason_phrase}".strip()
    match answer.status_code:
        case 401:
            return Unauthorized(f"{said}; check the user of the current context in the kubeconfig")
        case 403:
            return Forbidden(said)
        case 404:
            return NotFound(said)
        case 409:
            return Conflict(said)
        case status if status >= 500 or status == 429:
            return Unavailable(f"the Muster API at {url} failed ({status}): {said}")
    wrong = [InvalidSpec(e.get("field") or "", e["problem"]) for e in problem.get("errors") or ()]
    return InvalidSpec("", "; ".join(map(str, wrong)) or said)
