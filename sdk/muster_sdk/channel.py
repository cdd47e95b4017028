"""Sending one report to the API over HTTP: the only module of the SDK that knows HTTP."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from muster.reports import Report, raw_of_report
from muster_sdk.settings import Settings

if TYPE_CHECKING:
    import httpx2

_TIMEOUT_SECONDS: Final = 5.0
_REFUSED: Final = {400, 409, 413, 422}
"""The report is wrong, or its attempt is over: sending it again would be answered the same."""


class Undelivered(Exception):
    """The report didn't arrive, or the API couldn't take it now."""


class Refused(Exception):
    """The API will never take this report."""


class Channel(Protocol):
    """Carries reports."""

    def deliver(self, report: Report) -> Mapping[str, Any] | None:
        """Send *report*; the directive in the answer, None if there is none.

        `Undelivered` and `Refused` say that it did not work.
        """

    def close(self) -> None:
        """Let go of connections."""


class ApiChannel:
    """The API's route for this job's reports."""

    def __init__(self, settings: Settings) -> None:
        self._url = (
            f"{settings.api_url}/api/v1/namespaces/{settings.namespace}"
            f"/jobs/{settings.job}/reports"
        )
        self._token_file = Path(settings.token_file)
        self._client: httpx2.Client | None = None

    def deliver(self, report: Report) -> Mapping[str, Any] | None:
        """Send *report* with the token as it is now: the kubelet replaces it before it expires."""
        import httpx2  # noqa: PLC0415 - in the reporting thread, out of the way of the start

        if self._client is None:
            # The API is inside the cluster; proxies in the environment lead out of it.
            self._client = httpx2.Client(timeout=_TIMEOUT_SECONDS, trust_env=False)
        try:
            token = self._token_file.read_text(encoding="ascii").strip()
            answer = self._client.post(
                self._url,
                content=json.dumps(raw_of_report(report), allow_nan=False),
                headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
            )
        except (OSError, ValueError, httpx2.HTTPError) as error:
            raise Undelivered(f"{type(error).__name__}: {error}") from error
        return _directive(answer.status_code, answer.content)

    def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            self._client.close()


def _directive(status: int, body: bytes) -> Mapping[str, Any] | None:
    """The directive in an answer, or what the answer means instead."""
    if status in _REFUSED:
        raise Refused(f"HTTP {status}: {body[:200].decode(errors='replace')}")
    if not 200 <= status < 300:
        raise Undelivered(f"HTTP {status}")
    try:
        answer = json.loads(body)
        directive = (answer.get("status") or {}).get("directive")
    except (ValueError, AttributeError) as error:
        raise Undelivered("the answer is no JSON object; is that the API?") from error
    return directive if isinstance(directive, dict) else None
