"""Errors as problem details (RFC 9457): the one place that maps them to HTTP.

Every answer that is not a success goes through here: our own errors, those of the API server, and
what the framework refuses itself (an unknown route, a wrong method, a query that is not valid).
Anything else is a defect: a 500 without details, and a traceback in the log.
"""

import logging
import re
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from muster.errors import (
    Conflict,
    Forbidden,
    InvalidSpec,
    MusterError,
    NotFound,
    Unauthorized,
    Unavailable,
)
from muster_kube import (
    AlreadyExists,
    ApiError,
    ApiForbidden,
    ApiNotFound,
    Invalid,
    StaleVersion,
    TooManyRequests,
)

_log = logging.getLogger(__name__)
MEDIA_TYPE: Final = "application/problem+json"


class BadBody(MusterError):
    """A body that is neither JSON nor YAML."""


class TooLarge(MusterError):
    """A body that is larger than we read."""


class FieldProblem(BaseModel):
    """A field and what is wrong with it."""

    field: str = Field(examples=["spec.queue"])
    problem: str = Field(examples=["there is no queue red"])


class Problem(BaseModel):
    """Why a request was not carried out (RFC 9457)."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "type": "about:blank",
                "title": "Unprocessable Content",
                "status": 422,
                "detail": "spec.queue: there is no queue red",
                "instance": "/api/v1/jobs",
                "errors": [{"field": "spec.queue", "problem": "there is no queue red"}],
            }
        }
    )

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    instance: str
    errors: list[FieldProblem] = []


_STATUS: Final[tuple[tuple[type[MusterError], int], ...]] = (
    (BadBody, 400),
    (Unauthorized, 401),
    (Forbidden, 403),
    (ApiForbidden, 403),
    (NotFound, 404),
    (ApiNotFound, 404),
    (Conflict, 409),
    (AlreadyExists, 409),
    (StaleVersion, 409),
    (TooLarge, 413),
    (InvalidSpec, 422),
    (Invalid, 422),
    (TooManyRequests, 429),
    (Unavailable, 503),
    # The API server refused us, or did not answer: nothing that the caller could mend.
    (ApiError, 503),
)
_UNKNOWN_FIELD: Final = re.compile(r'unknown field "([^"]+)"')
_PATH: Final = re.compile(r"(metadata|spec|status)(\.\S+)?")
_TITLES: Final = {413: "Content Too Large", 422: "Unprocessable Content"}
"""Titles whose names differ between Python's versions."""


def install(app: FastAPI) -> None:
    """Make *app* answer every error with problem details."""
    app.add_exception_handler(MusterError, _on_muster_error)
    app.add_exception_handler(HTTPException, _on_refused)
    app.add_exception_handler(RequestValidationError, _on_invalid_request)
    app.add_exception_handler(Exception, _on_defect)


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route that may answer with these statuses."""
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        status: {
            "description": title_of(status),
            "content": {MEDIA_TYPE: {"schema": schema, "example": _example(status)}},
        }
        for status in sorted({*statuses, 422, 500, 503})
    }


def title_of(status: int) -> str:
    """The name of an HTTP status."""
    return _TITLES.get(status) or HTTPStatus(status).phrase


def answer(
    status: int,
    detail: str,
    instance: str,
    *,
    errors: list[FieldProblem] | None = None,
    headers: dict[str, str] | None = None,
) -> JSONResponse:
    """A problem as a response."""
    problem = Problem(
        title=title_of(status),
        status=status,
        detail=detail,
        instance=instance,
        errors=errors or [],
    )
    return JSONResponse(
        problem.model_dump(), status_code=status, headers=headers, media_type=MEDIA_TYPE
    )


def _on_muster_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, MusterError)
    status = _status_of(error)
    if status >= 500:
        _log.warning("%s %s: %s", request.method, request.url.path, error)
    fields = _fields_of(error)
    headers = {}
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="muster"'
    if isinstance(error, TooManyRequests):
        headers["Retry-After"] = str(int(error.retry_after_seconds or 1))
    # The API server's own sentence repeats each field and has a `<nil>` for the whole object.
    said = _sentence(fields) if isinstance(error, Invalid) and fields else str(error)
    return answer(status, said, request.url.path, errors=fields, headers=headers)


def _status_of(error: MusterError) -> int:
    if type(error) is ApiError and error.status == 400:
        # What the API server can't even read is the caller's doing: we pass on what they sent.
        return 400
    return next((code for kind, code in _STATUS if isinstance(error, kind)), 500)


def _fields_of(error: MusterError) -> list[FieldProblem]:
    if isinstance(error, InvalidSpec):
        return [FieldProblem(field=error.path, problem=error.problem)] if error.path else []
    if not isinstance(error, ApiError):
        return []
    if error.fields:
        causes = [_field_of(*each) for each in error.fields]
        # One without a path beside those that have one only tells that they stopped other checks.
        return [cause for cause in causes if cause.field] or causes
    unknown = _UNKNOWN_FIELD.findall(str(error))
    return [FieldProblem(field=field, problem="is not a field of this kind") for field in unknown]


def _field_of(field: str, problem: str) -> FieldProblem:
    """A cause in a Status. A rule about the whole object has no path there; ours begin with it."""
    problem = problem.removeprefix("Invalid value: ")
    if field in ("", "<nil>"):
        path, _, rest = problem.partition(": ")
        field, problem = (path, rest) if _PATH.fullmatch(path) and rest else ("", problem)
    return FieldProblem(field=field, problem=problem.replace(f"{field} in body ", "", 1))


def _sentence(fields: list[FieldProblem]) -> str:
    return "; ".join(f"{each.field}: {each.problem}".removeprefix(": ") for each in fields)


def _on_refused(request: Request, error: Exception) -> JSONResponse:
    """What the framework refuses itself: an unknown route, a method that it does not have."""
    assert isinstance(error, HTTPException)
    path = request.url.path
    detail = {
        404: f"there is no {path} here; /docs lists the routes",
        405: f"{path} does not take {request.method}",
    }.get(error.status_code, str(error.detail))
    return answer(error.status_code, detail, path, headers=dict(error.headers or {}))


def _on_invalid_request(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    wrong = [
        # The first part says where (query, path); the name is what a user knows.
        FieldProblem(field=".".join(map(str, each["loc"][1:])), problem=str(each["msg"]))
        for each in error.errors()
    ]
    return answer(422, _sentence(wrong), request.url.path, errors=wrong)


def _on_defect(request: Request, error: Exception) -> JSONResponse:
    """The framework logs the traceback after this."""
    del error
    return answer(500, "a defect in Muster; the log of the API tells more", request.url.path)


def _example(status: int) -> dict[str, Any]:
    return Problem(
        title=title_of(status),
        status=status,
        detail="what is wrong, where, and how to mend it",
        instance="/api/v1/jobs",
    ).model_dump()
