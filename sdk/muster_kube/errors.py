"""What the API server may answer, as exceptions.

ApiError                 (a MusterError: its message is the server's own, made for people)
├── ApiUnauthorized 401
├── ApiForbidden    403
├── ApiNotFound     404
├── AlreadyExists   409, on a create
├── StaleVersion    409, on a guarded write: somebody wrote in between
├── Expired         410, a watch or a list must start afresh
├── Invalid         422, with the fields that are wrong
├── TooManyRequests 429, `retry_after_seconds` says when
└── ApiUnreachable  no answer at all
"""

from typing import Any

from muster.errors import MusterError


class ApiError(MusterError):
    """An answer of the API server that is no success; `status` is 0 where none came."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        reason: str = "",
        fields: tuple[tuple[str, str], ...] = (),
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.fields = fields
        """The wrong fields of a 422, as (path, problem)."""
        self.retry_after_seconds = retry_after_seconds


class ApiUnauthorized(ApiError):
    """The credentials are not valid."""


class ApiForbidden(ApiError):
    """The credentials are valid and do not allow this; quota and admission refuse with it too."""


class ApiNotFound(ApiError):
    """No such object, or no such kind."""


class AlreadyExists(ApiError):
    """An object of this name exists. Who made it must still be checked."""


class StaleVersion(ApiError):
    """The object changed since it was read."""


class Expired(ApiError):
    """The resourceVersion is too old to go on from."""


class Invalid(ApiError):
    """The object is not valid; `fields` names what is wrong."""


class TooManyRequests(ApiError):
    """The server asks us to wait."""


class ApiUnreachable(ApiError):
    """The server did not answer."""


_BY_STATUS: dict[int, type[ApiError]] = {
    401: ApiUnauthorized,
    403: ApiForbidden,
    404: ApiNotFound,
    409: StaleVersion,
    410: Expired,
    422: Invalid,
    429: TooManyRequests,
}


def error_of(status: int, body: dict[str, Any], retry_after: str | None = None) -> ApiError:
    """The exception for an answer. A body that is no `Status` is dropped: it may hold secrets."""
    is_status = body.get("kind") == "Status"
    reason = str(body.get("reason") or "") if is_status else ""
    message = str(body.get("message") or "") if is_status else ""
    causes = (body.get("details") or {}).get("causes") or () if is_status else ()
    kind = _BY_STATUS.get(status, ApiError)
    if reason == "AlreadyExists":
        kind = AlreadyExists
    return kind(
        message or f"the API server answered {status}",
        status=status,
        reason=reason,
        fields=tuple((str(c.get("field") or ""), str(c.get("message") or "")) for c in causes),
        retry_after_seconds=float(retry_after) if retry_after and retry_after.isdigit() else None,
    )
