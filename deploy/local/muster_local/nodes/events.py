"""Events on pods: what people see at the end of `kubectl describe pod`.

Written in the background and in turn. They are for reading only, so one that cannot be written is
logged and dropped, and never holds up a pod.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Any, Final

from muster_kube import EVENTS, ApiError, Kube
from muster_local.nodes.status import time_of

_log = logging.getLogger(__name__)

Raw = Mapping[str, Any]

COMPONENT: Final = "muster-process-nodes"
_MOST_WAITING: Final = 1000


class Events:
    """Takes events and writes them one by one; `run` must be running for that."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._queue: asyncio.Queue[tuple[str, dict[str, Any]]] = asyncio.Queue(_MOST_WAITING)
        self._count = 0

    def tell(self, pod: Raw, reason: str, message: str, *, is_warning: bool = False) -> None:
        """Have an event on *pod* written."""
        metadata = pod["metadata"]
        now = time.time()
        self._count += 1
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                # Unique in time, as client-go makes them.
                "name": f"{metadata['name']}.{time.time_ns():x}{self._count % 4096:03x}",
                "namespace": metadata["namespace"],
            },
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": metadata["name"],
                "namespace": metadata["namespace"],
                "uid": metadata["uid"],
            },
            "reason": reason,
            "message": message,
            "type": "Warning" if is_warning else "Normal",
            "source": {"component": COMPONENT, "host": pod["spec"].get("nodeName") or ""},
            "firstTimestamp": time_of(now),
            "lastTimestamp": time_of(now),
            "count": 1,
        }
        try:
            self._queue.put_nowait((metadata["namespace"], event))
        except asyncio.QueueFull:
            _log.warning("event dropped, too many wait: %s on %s", reason, metadata["name"])

    async def run(self) -> None:
        """Write events for ever."""
        while True:
            namespace, event = await self._queue.get()
            try:
                await self._kube.create(EVENTS.path(namespace), event)
            except ApiError as error:
                _log.info("event %s not written: %s", event["reason"], error)
