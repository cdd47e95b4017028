"""What an answer of the API server means: no, not now, or gone.

An API server that has just started says "not found" of kinds that it does not serve yet, and
"forbidden" while it has not read the roles. Neither is about the object that was asked for.
"""

from muster_kube import (
    AlreadyExists,
    ApiError,
    ApiForbidden,
    ApiNotFound,
    ApiUnauthorized,
    ApiUnreachable,
    StaleVersion,
    TooManyRequests,
)

_NOT_NOW = (ApiUnauthorized, ApiUnreachable, StaleVersion, TooManyRequests)


def is_refusal(error: ApiError) -> bool:
    """Whether the API server will not have what was sent, now or later, as it is."""
    if isinstance(error, AlreadyExists):
        return True
    if isinstance(error, _NOT_NOW) or (isinstance(error, ApiForbidden) and _is_about_us(error)):
        return False
    return 400 <= error.status < 500


def is_gone(error: ApiError, name: str) -> bool:
    """Whether there is no object of this *name* any more."""
    return isinstance(error, ApiNotFound) and f'"{name}" not found' in str(error)


def _is_about_us(error: ApiForbidden) -> bool:
    """Whether our own rights are missing, rather than the object unwanted."""
    words = str(error)
    return 'User "' in words and " cannot " in words
