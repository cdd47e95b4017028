"""Writes the status of one pod: the newest one, in order, until it is written."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from muster_kube import PODS, ApiError, ApiNotFound, Invalid, Kube, StaleVersion

_log = logging.getLogger(__name__)

Raw = Mapping[str, Any]

_BACKOFF_SECONDS: Final = (0.1, 0.5, 1.0, 2.0, 5.0)


class Reporter:
    """Takes note that something changed, and writes what is true by then.

    A write that has been sent is never abandoned for a newer one, so that an old status cannot
    overtake a new one.
    """

    def __init__(self, kube: Kube, pod: Raw, render: Callable[[], Raw]) -> None:
        metadata = pod["metadata"]
        self._kube = kube
        self._path = PODS.path(metadata["namespace"], metadata["name"], "status")
        self._uid = metadata["uid"]
        self._render = render
        self._dirty = asyncio.Event()
        self._is_last = False

    def changed(self) -> None:
        """Have the status written soon."""
        self._dirty.set()

    def finish(self) -> None:
        """Write once more, and let `run` return."""
        self._is_last = True
        self._dirty.set()

    async def run(self) -> None:
        """Write until `finish`, or until the pod is gone."""
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            is_last = self._is_last
            if not await self._write() or is_last:
                return

    async def _write(self) -> bool:
        """Whether the pod still exists, and its status was written."""
        failures = 0
        while True:
            body = {"metadata": {"uid": self._uid}, "status": self._render()}
            try:
                await self._kube.patch(self._path, body)
                return True
            except (ApiNotFound, StaleVersion):
                return False  # gone, or another pod of that name
            except Invalid as error:
                _log.error("the status of %s was refused: %s", self._path, error)
                return True
            except ApiError as error:
                delay = _BACKOFF_SECONDS[min(failures, len(_BACKOFF_SECONDS) - 1)]
                failures += 1
                _log.warning("writing %s failed, again in %.1f s: %s", self._path, delay, error)
                await asyncio.sleep(delay)
