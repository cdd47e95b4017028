"""Events for `kubectl describe`: the story of a job, told after the status says the same.

They never hold anything up: the queue is bounded, the rate is limited, and what cannot be posted
is counted and forgotten.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from muster import wire
from muster.steps import Story
from muster_kube import EVENTS, ApiError, Kube
from muster_operator.metrics import Metrics
from muster_operator.records import JobRecord
from muster_operator.telling import line

_log = logging.getLogger(__name__)
_MAX_WAITING: Final = 10_000
_MAX_MESSAGE: Final = 1000
_BURST: Final = 10.0
_PRESSED: Final = 0.1


class Stories:
    """Posts events in the background, as fast as it may."""

    def __init__(
        self,
        kube: Kube,
        metrics: Metrics,
        per_second: float,
        is_pressed: Callable[[], bool] = lambda: False,
    ) -> None:
        """While *is_pressed*, events take a tenth of their rate: work goes before words."""
        self._kube = kube
        self._metrics = metrics
        self._per_second = per_second
        self._is_pressed = is_pressed
        self._waiting: deque[dict[str, Any]] = deque()
        self._news = asyncio.Event()
        self._count = 0

    def tell(self, record: JobRecord, story: Story) -> None:
        """Queue an event about the job."""
        if len(self._waiting) >= _MAX_WAITING:
            self._metrics.events_dropped.labels("full").inc()
            return
        self._count += 1
        self._waiting.append(_event(record, story, self._count))
        self._news.set()

    async def run(self) -> None:
        """Post what is queued, for ever."""
        allowance, then = _BURST, time.monotonic()
        while True:
            while not self._waiting:
                self._news.clear()
                await self._news.wait()
            now = time.monotonic()
            rate = self._per_second * (_PRESSED if self._is_pressed() else 1.0)
            allowance = min(_BURST, allowance + (now - then) * rate)
            then = now
            if allowance < 1.0:
                await asyncio.sleep((1.0 - allowance) / self._per_second)
                continue
            allowance -= 1.0
            await self._post(self._waiting.popleft())

    async def _post(self, event: dict[str, Any]) -> None:
        try:
            await self._kube.create(EVENTS.path(event["metadata"]["namespace"]), event)
        except ApiError as error:
            # The namespace may be on its way out; nothing depends on an event.
            self._metrics.events_dropped.labels("refused").inc()
            _log.debug(line("event-dropped", reason=event["reason"], problem=error))


def _event(record: JobRecord, story: Story, count: int) -> dict[str, Any]:
    now = datetime.now(UTC)
    stamp = now.strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            # As kubelets and schedulers do it: unique, and sorted by time.
            "name": f"{record.name}.{int(now.timestamp() * 1e6):x}{count % 4096:03x}",
            "namespace": record.namespace,
        },
        "involvedObject": {
            "apiVersion": wire.API_VERSION,
            "kind": "TrainingJob",
            "namespace": record.namespace,
            "name": record.name,
            "uid": record.uid,
        },
        "reason": story.reason,
        "message": story.message[:_MAX_MESSAGE],
        "type": "Warning" if story.is_warning else "Normal",
        "firstTimestamp": stamp,
        "lastTimestamp": stamp,
        "count": 1,
        "source": {"component": wire.OPERATOR_MANAGER},
        "reportingComponent": wire.OPERATOR_MANAGER,
    }
