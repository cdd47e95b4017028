"""Reporting in the background: a thread sends what the training says and never holds it up."""

import logging
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol

from muster.reports import Heartbeat, Item
from muster_sdk.channel import Channel, Refused, Undelivered
from muster_sdk.outbox import Outbox

log = logging.getLogger(__name__)

# Generators that the training draws from are never touched.
_jitter: Final = random.Random()  # noqa: S311 - spreads retries, guards nothing


class Reports(Protocol):
    """Where a run's reports go."""

    @property
    def directive(self) -> Mapping[str, Any] | None:
        """What the platform last asked for."""

    def say(self, item: Item) -> None:
        """Take *item*; returns at once."""

    def close(self) -> None:
        """Send what is left, for a bounded time."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How often, and how patiently."""

    interval_seconds: float = 1.0
    """Between two reports: what is said meanwhile goes together."""
    heartbeat_seconds: float = 10.0
    """After so long a silence a heartbeat is sent; its answer carries the directive."""
    first_retry_seconds: float = 0.5
    """Doubled with each failure, and spread, since all jobs lose the API at once."""
    last_retry_seconds: float = 30.0
    """No wait is longer."""
    flush_seconds: float = 3.0
    """At the end of the process: longer than a healthy API needs, shorter than anyone waits."""


class Reporter:
    """Sends from a thread of its own, retries, and gives up nothing but what finds no room."""

    def __init__(
        self, channel: Channel, outbox: Outbox, now: Callable[[], datetime], pace: Pace
    ) -> None:
        self.directive: Mapping[str, Any] | None = None
        self._channel = channel
        self._outbox = outbox
        self._now = now
        self._pace = pace
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._deadline = float("inf")
        self._failures = 0
        self._refused = 0
        self._last_refusal = ""
        self._thread = threading.Thread(target=self._run, name="muster-reports", daemon=True)

    def start(self) -> "Reporter":
        """Begin to send."""
        self._thread.start()
        return self

    def say(self, item: Item) -> None:
        """Queue *item*."""
        with self._lock:
            self._outbox.put(item)

    def close(self) -> None:
        """Send what is left, as long as the pace allows; afterwards the thread is left alone."""
        if self._closing.is_set():
            return
        self._deadline = time.monotonic() + self._pace.flush_seconds
        self._closing.set()
        self._thread.join(self._pace.flush_seconds + 0.5)
        with self._lock:
            left, dropped = len(self._outbox), self._outbox.dropped
        if left or dropped:
            log.warning("reports lost: unsent=%d dropped=%d", left, dropped)

    def _run(self) -> None:
        try:
            self._work()
        except Exception:  # Whatever it is, it must not reach the training.
            log.exception("reporting has stopped, training goes on")

    def _work(self) -> None:
        last_sent = time.monotonic()
        wait = self._pace.interval_seconds
        while not self._closing.wait(wait):
            if time.monotonic() - last_sent > self._pace.heartbeat_seconds:
                self.say(Heartbeat(self._now()))
            if self._send_all():
                last_sent = time.monotonic()
            wait = self._wait_seconds()
        while time.monotonic() < self._deadline:
            self._send_all()
            if not self._failures:
                break
            time.sleep(self._pace.first_retry_seconds / 4)
        self._channel.close()

    def _send_all(self) -> bool:
        """Send until nothing is left or something fails; whether anything was taken."""
        is_any = False
        while time.monotonic() < self._deadline:
            with self._lock:
                report = self._outbox.report()
            if report is None:
                return is_any
            try:
                self.directive = self._channel.deliver(report)
            except Refused as error:
                self._count_refusal(error, len(report.items))
            except Undelivered as error:
                self._count_failure(error)
                return is_any
            self._count_success()
            is_any = True
            with self._lock:
                self._outbox.settle()
        return is_any

    def _count_failure(self, error: Undelivered) -> None:
        self._failures += 1
        if self._failures == 1:
            log.warning("reports wait, training goes on: reason=%s", error)

    def _count_refusal(self, error: Refused, items: int) -> None:
        self._refused += items
        if str(error) != self._last_refusal:  # Each reason once: it may come every second.
            log.warning("report refused: items=%d reason=%s", self._refused, error)
        self._last_refusal = str(error)

    def _count_success(self) -> None:
        if self._failures:
            log.warning("reports arrive again: failures=%d", self._failures)
        self._failures = 0

    def _wait_seconds(self) -> float:
        if not self._failures:
            return self._pace.interval_seconds
        longest = self._pace.first_retry_seconds * 2.0 ** min(self._failures - 1, 10)
        return min(longest, self._pace.last_retry_seconds) * _jitter.uniform(0.5, 1.0)
