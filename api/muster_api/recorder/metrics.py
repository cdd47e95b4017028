"""Metrics of the recorder."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


class RecorderMetrics:
    """What the recorder counts."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.active = Gauge(
            "muster_recorder_active",
            "1 in the one recorder that writes, 0 in those that stand by.",
            registry=registry,
        )
        self.changes = Counter(
            "muster_recorder_changes",
            "Changes that were seen and taken in.",
            ("collection",),
            registry=registry,
        )
        self.commits = Histogram(
            "muster_recorder_commit_duration_seconds",
            "Time of a transaction with a batch of changes.",
            ("collection",),
            registry=registry,
        )
        self.position = Gauge(
            "muster_recorder_position_timestamp_seconds",
            "When the last batch of a collection was committed.",
            ("collection",),
            registry=registry,
        )
        self.errors = Counter(
            "muster_recorder_errors",
            "Errors that were survived, by what was tried; the README lists it.",
            ("what",),
            registry=registry,
        )
        self.told = Counter(
            "muster_recorder_status_writes",
            "Writes of progress, checkpoint and cost into the status of jobs.",
            registry=registry,
        )
        self.released = Counter(
            "muster_recorder_released_jobs",
            "Ended jobs that were let go, by whether all their ends were known.",
            ("complete",),
            registry=registry,
        )

    @contextmanager
    def committing(self, collection: str, changes: int) -> Iterator[None]:
        """Time a transaction; count its changes once it is committed."""
        started = time.perf_counter()
        yield
        self.commits.labels(collection).observe(time.perf_counter() - started)
        self.changes.labels(collection).inc(changes)
        self.position.labels(collection).set_to_current_time()
