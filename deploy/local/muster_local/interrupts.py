"""Ctrl-C at the right moment."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Put Ctrl-C and SIGTERM off until the end of the context.

    Between the start of a process and the note of it, and in the middle of cleaning up, they would
    leave something behind.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pending: list[int] = []

    def remember(number: int, _: FrameType | None) -> None:
        pending.append(number)

    handlers = {
        number: signal.signal(number, remember) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in handlers.items():
            # None: whoever set it is not Python, and only C could set it again.
            signal.signal(number, handler or signal.SIG_DFL)
        for missed in pending:
            signal.raise_signal(missed)
