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
_THINKING_SECONDS: Final = 300.0
"""For answers that are worked out from the whole cluster."""


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

    def nodes(self) -> Json:
        """The nodes, with who holds what."""
        return self._send("GET", "/nodes")

    def explain(self, namespace: str, name: str) -> Json:
        """Why a job waits, and what would start it now."""
        return self._send("GET", _job(namespace, name) + "/explain", seconds=_THINKING_SECONDS)

    def dry_run(self, job: Mapping[str, Any], *, namespace: str) -> Json:
        """What *job* would do if it were submitted."""
        query = {"namespace": namespace}
        return self._send(
            "POST", "/jobs/dry-run", query=query, body=job, seconds=_THINKING_SECONDS
        )

    def snapshot(self) -> bytes:
        """What the scheduler sees, as a file."""
        return self._answer("GET", "/snapshot", seconds=_THINKING_SECONDS).content

    def decision(self, id_: str) -> bytes:
        """A decision with all that it followed from, as a file."""
        path = f"/decisions/{quote(id_, safe='')}"
        return self._answer("GET", path, seconds=_THINKING_SECONDS).content

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        seconds: float = _SECONDS,
    ) -> Json:
        answer = self._answer(method, path, query=query, body=body, seconds=seconds)
        return _object(answer) if answer.content else {}

    def _answer(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        seconds: float = _SECONDS,
    ) -> httpx2.Response:
        timeout = httpx2.Timeout(seconds, connect=5.0)
        try:
            answer = self._client.request(method, path, params=query, json=body, timeout=timeout)
        except httpx2.InvalidURL as error:
            raise InvalidSpec("MUSTER_API_URL", f"{self.url} is not a URL: {error}") from error
        except httpx2.HTTPError as error:
            raise Unavailable(
                f"the Muster API at {self.url} does not answer: "
                f"{str(error) or type(error).__name__}; is the platform up (muster local status), "
                "or MUSTER_API_URL wrong?"
            ) from error
        if answer.is_success:
            return answer
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
