"""Polling, in place of sleeping."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def eventually(
    probe: Callable[[], T | Awaitable[T]], *, within: float = 30.0, every: float = 0.05
) -> T:
    """Call *probe* until it returns something true and raises no `AssertionError`; give that back.

    Fails with the last assertion, or the last value, once *within* seconds are over.
    """
    deadline = time.monotonic() + within
    while True:
        failure: AssertionError | None = None
        value: object = None
        try:
            value = probe()
            if inspect.isawaitable(value):
                value = await value
            if value:
                return value  # type: ignore[return-value]
        except AssertionError as error:
            failure = error
        if time.monotonic() > deadline:
            raise failure or AssertionError(f"not within {within} s; last seen: {value!r}")
        await asyncio.sleep(every)


async def stays(probe: Callable[[], object | Awaitable[object]], *, during: float = 1.0) -> None:
    """Assert that *probe* is true now and remains so for *during* seconds."""
    deadline = time.monotonic() + during
    while time.monotonic() < deadline:
        value = probe()
        if inspect.isawaitable(value):
            value = await value
        assert value, f"no longer holds: {value!r}"
        await asyncio.sleep(0.05)
