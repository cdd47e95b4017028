"""What is being waited for, told on standard error.

On a terminal one line that changes; elsewhere one line for each step, without the steps within it.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console

Tell = Callable[[str], None]
"""Is told what is being done now. What follows a newline is a detail that changes quickly."""


def quiet(_: str) -> None:
    """Tells nobody."""


@contextmanager
def progress() -> Iterator[Tell]:
    """A `Tell` for as long as the work lasts."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield _lines()
        return
    with console.status("") as status:

        def tell(what: str) -> None:
            status.update(what.replace("\n", " ", 1).replace("[", r"\["))

        yield tell


def _lines() -> Tell:
    last = ""

    def tell(what: str) -> None:
        nonlocal last
        step = what.partition("\n")[0]
        if step != last:
            last = step
            print(step, file=sys.stderr, flush=True)  # noqa: T201 -- meant for people

    return tell
