"""What the operator counts, for Prometheus. No label whose values grow with the jobs."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """The metrics of one operator, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()

        def counter(name: str, words: str, labels: tuple[str, ...] = ()) -> Counter:
            return Counter(name, words, labels, registry=self.registry)

        def seconds(name: str, words: str) -> Histogram:
            return Histogram(name, words, registry=self.registry, buckets=_SECONDS)

        self.jobs = Gauge(
            "muster_jobs", "Training jobs, by phase.", ("phase",), registry=self.registry
        )
        self.synced = Gauge(
            "muster_synced", "Whether every cache has synced.", registry=self.registry
        )
        self.cycle_seconds = seconds("muster_cycle_seconds", "Time of one scheduling cycle.")
        self.decisions = counter(
            "muster_decisions_total", "What cycles decided.", ("decision", "reason")
        )
        self.whole_seconds = seconds(
            "muster_gang_whole_seconds", "From the commit of a gang to its last pod created."
        )
        self.pods_created = counter("muster_pods_created_total", "Pods created.")
        self.attempts_ended = counter(
            "muster_attempts_ended_total", "Attempts that ended, by outcome.", ("outcome",)
        )
        self.refused = counter(
            "muster_admission_refused_total", "Gangs refused by quota, admission or kubelet."
        )
        self.events_dropped = counter(
            "muster_events_dropped_total", "Events that were not posted.", ("reason",)
        )
        self.decisions_dropped = counter(
            "muster_decision_records_dropped_total", "Decisions that were not kept on disk."
        )
        self.errors = counter(
            "muster_errors_total", "Requests and steps that failed and are retried.", ("where",)
        )

    def text(self) -> bytes:
        """All of them in the text format of Prometheus."""
        return generate_latest(self.registry)
