"""The scheduler's account of the cluster, and the clocks that belong to it.

Usage decays with the time that passes before each change, and `changed` tells when something last
changed from outside: everything but our own decisions.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from muster.errors import InvalidSpec
from muster.job_status import JobStatus, Outcome
from muster.moments import seconds_of, whole_ms
from muster.parse import needs_of
from muster.scheduling.cluster import Cluster, Objects
from muster.scheduling.snapshot import Gang, Needs
from muster.scheduling.usage import decayed
from muster_operator.records import JobRecord, PodRecord


class Account:
    """Calls *on_capacity* when a cycle is worthwhile."""

    def __init__(
        self, on_capacity: Callable[[], None], clock: Callable[[], float], half_life: float
    ) -> None:
        """With a *half_life* (seconds) the queues' usage decays."""
        self.cluster = Cluster()
        self.changed = 0.0
        """When something last changed from outside, in whole milliseconds; see `Snapshot`."""
        self._on_capacity = on_capacity
        self._clock = clock
        self._half_life = half_life
        self._gangs: dict[str, Gang] = {}
        self._foreign: set[str] = set()

    def count(self, key: str, gang: Gang | None) -> None:
        """Bring what is known of a gang up to date; `None` takes it out."""
        before = self._gangs.get(key)
        if gang == before:
            return
        self.pass_time()
        if gang is None:
            del self._gangs[key]
            self.cluster.remove_gang(key)
        else:
            self._gangs[key] = gang
            self.cluster.upsert_gang(gang)
        if _matters(before, gang):
            self._on_capacity()

    def hold(self, pod: PodRecord) -> None:
        """Count a pod on its node that no placement accounts for."""
        if pod.uid not in self._foreign and pod.owner is None:
            self.note_change()
        self._foreign.add(pod.uid)
        self.cluster.upsert_foreign(pod.uid, pod.node, _needs_of(pod))

    def release(self, pod_uid: str, owner: str | None) -> None:
        """Count such a pod no longer, if it was counted."""
        if pod_uid not in self._foreign:
            return
        self._foreign.discard(pod_uid)
        self.cluster.remove_foreign(pod_uid)
        if owner is None:
            self.note_change()
        self._on_capacity()

    def pass_time(self) -> None:
        """Decay usage up to now; called before anything changes."""
        if self._half_life > 0:
            self.cluster.advance(self._clock(), self._half_life)

    def load_usage(self, queues: Mapping[str, Mapping[str, Any]]) -> None:
        """Go on from the decayed usage in the statuses of *queues*, brought to one time."""
        if self._half_life <= 0:
            return
        told = {
            name: ((raw.get("status") or {}).get("usage") or {}) for name, raw in queues.items()
        }
        times = {name: seconds_of(usage.get("asOf")) for name, usage in told.items()}
        at = max((time for time in times.values() if time is not None), default=None)
        if at is None:
            return
        total: list[tuple[str, float]] = []
        by_model: list[tuple[str, str, float]] = []
        for name, usage in told.items():
            age = at - (times[name] or at)
            total.append((name, decayed(usage.get("value") or 0.0, 0.0, age, self._half_life)))
            for model, value in (usage.get("byModel") or {}).items():
                by_model.append((name, model, decayed(value, 0.0, age, self._half_life)))
        self.cluster.load_usage(
            Objects(usage=tuple(total), usage_by_model=tuple(by_model), usage_at=at)
        )
        self.pass_time()

    def note_change(self) -> None:
        """Something changed that is not a decision of ours."""
        self.set_changed(whole_ms(self._clock()))

    def set_changed(self, at: float) -> None:
        """Something changed at that time, if nothing has since."""
        if at > self.changed:
            self.changed = at
            self.cluster.set_changed(at)

    def note_past(self, record: JobRecord) -> None:
        """A job that is new to us: its submission, and what it tells of changes before.

        An operator that starts anew takes up the clock of the last one by this: evictions that
        must not undo each other still must not.
        """
        status, placement = record.status, record.status.placement
        times = [
            record.job.created if record.job is not None else 0.0,
            status.finished_at or 0.0,
            status.displaced.at if status.displaced is not None else 0.0,
            placement.took.at if placement is not None and placement.took is not None else 0.0,
        ]
        if status.phase is None:
            times.append(self._clock())
        self.set_changed(whole_ms(max(times)))


def has_ended(before: JobStatus, after: JobStatus) -> bool:
    """Whether a gang gave back what it held, and not because it was evicted."""
    if before.placement is None or after.placement is not None:
        return after.is_final and not before.is_final
    last = after.attempts[-1] if after.attempts else None
    return last is None or last.outcome is not Outcome.PREEMPTED


def _matters(before: Gang | None, after: Gang | None) -> bool:
    """Whether a plan may differ now; the progress that a running gang reports can wait."""
    if after is None:
        return before is not None and before.placement is not None
    if after.placement is None:
        return True
    if before is None or before.placement is None:
        return False  # a cycle decided it, and has looked on from there
    return replace(before, run=after.run) != after


def _needs_of(pod: PodRecord) -> Needs:
    try:
        return needs_of(pod.spec)
    except InvalidSpec:
        return Needs()  # the API server would not have stored it
