"""How the command says that something went wrong: one line on standard error and an exit code.

    0  it worked
    1  what the command checks or follows failed, such as a job
    2  wrong usage, or input that cannot be accepted
    3  something that is needed cannot be reached
    130 interrupted

Nothing else in this package decides on an exit code, and nobody sees a traceback for a failure
that was expected.
"""

import sys
from collections.abc import Callable
from typing import Final

from muster.errors import MusterError, Unavailable

OK: Final = 0
FAILED: Final = 1
BAD_INPUT: Final = 2
UNREACHABLE: Final = 3
INTERRUPTED: Final = 130
_UNAUTHORIZED: Final = 401


class Failed(MusterError):
    """What a command checks or follows did not succeed."""


def exit_code(error: MusterError) -> int:
    """The exit code for *error*.

    Errors of the API server carry its HTTP status (0 for none); what it could not answer by
    itself (5xx, too many requests) counts as not reached.
    """
    if isinstance(error, Failed):
        return FAILED
    if isinstance(error, Unavailable):
        return UNREACHABLE
    status = getattr(error, "status", None)
    if status is not None and (status in {0, 429} or status >= 500):
        return UNREACHABLE
    return BAD_INPUT


def told(run: Callable[[], int]) -> int:
    """The exit code of *run*; an expected failure is told in one line."""
    try:
        return run()
    except MusterError as error:
        return say(_words(error), exit_code(error))
    except KeyboardInterrupt:
        return INTERRUPTED


def _words(error: MusterError) -> str:
    """What is told of *error*; the API server has one word for a token that it does not take."""
    if getattr(error, "status", None) == _UNAUTHORIZED:
        return (
            "the API server does not take the token; "
            "check the user of the current context in the kubeconfig"
        )
    return str(error)


def say(message: str, code: int) -> int:
    """Tell *message* in one line on standard error, and give back *code*."""
    sys.stderr.write(f"muster: {' '.join(message.split())}\n")
    return code
