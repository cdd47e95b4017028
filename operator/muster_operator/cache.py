"""Jobs and pods as the watches tell of them, and what follows for the scheduler's account.

Everything is taken in by version: what is older than what is known is ignored, so that answers to
our own writes, watch events and full lists may arrive in any order. A gang counts as placed from
the moment it is decided; pods count where their gang does, and as other people's where none
accounts for them (orphans of a deleted job, leftovers of an earlier attempt).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from muster.errors import InvalidSpec
from muster.job_status import Phase
from muster.losses import PodFacts
from muster.parse import TrainingJob, gang_of, job_of, needs_of
from muster.restarts import NodeState
from muster.scheduling.cluster import Cluster
from muster.scheduling.plan import Admit
from muster.scheduling.snapshot import Gang, Needs
from muster.status_raw import status_of
from muster.steps import Rules, Scene
from muster_operator.objections import objection_to
from muster_operator.pod_facts import facts_of, owner_of
from muster_operator.records import JobRecord, PodRecord, Words
from muster_operator.surroundings import Surroundings
from muster_operator.versions import Versions

Raw = dict[str, Any]


class OnJob(Protocol):
    """Where jobs are marked to be looked at again."""

    def __call__(self, uid: str, *, is_urgent: bool = True) -> None:
        """Have the job with *uid* looked at soon."""


class Cache:
    """Tells *on_job* which job to look at again, and *on_capacity* when a cycle is worthwhile."""

    def __init__(
        self,
        *,
        has_scheduler: bool,
        on_job: OnJob,
        on_capacity: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:
        self.cluster = Cluster()
        self.around = Surroundings(self.cluster)
        self.jobs: dict[str, JobRecord] = {}
        self.versions = Versions()
        self.pod_versions = Versions()
        self._has_scheduler = has_scheduler
        self._on_job = on_job
        self._on_capacity = on_capacity
        self._clock = clock
        self._uid_of: dict[str, str] = {}
        self._pods: dict[str, dict[str, PodRecord]] = {}
        self._foreign: set[str] = set()
        self._gangs: dict[str, Gang] = {}

    # Jobs

    def job_changed(self, raw: Raw) -> JobRecord | None:
        """Take in a job; `None` where it is no news."""
        if not self.versions.take(raw):
            return None
        metadata = raw["metadata"]
        uid, key = metadata["uid"], f"{metadata['namespace']}/{metadata['name']}"
        if self._uid_of.get(key, uid) != uid:
            self.job_gone(self._uid_of[key])  # its deletion comes later, or was missed
        self._uid_of[key] = uid
        record = self.jobs.get(uid)
        if record is None:
            record = JobRecord(key, uid, raw, 0, None, status_of(raw.get("status")))
            self.jobs[uid] = record
            self._parse(record, raw)
        else:
            if _spec_of(record.raw) != _spec_of(raw):
                self._parse(record, raw)
            record.raw = raw
            record.status = status_of(raw.get("status"))
        record.version = int(metadata["resourceVersion"])
        self.settle(record)
        self._on_job(uid)
        return record

    def job_gone(self, uid: str) -> None:
        """Forget a job. Pods that it leaves behind count as other people's."""
        self.versions.drop(uid)
        record = self.jobs.pop(uid, None)
        if record is None:
            return
        if self._uid_of.get(record.key) == uid:
            del self._uid_of[record.key]
            self._count(record.key, None)
        for pod in self._pods.get(uid, {}).values():
            self._account(pod)

    def decide(self, record: JobRecord, decision: Admit | None) -> None:
        """Count the gang as placed before it is committed, or no longer."""
        record.decision = decision
        self.settle(record)

    def settle(self, record: JobRecord) -> None:
        """Bring the scheduler's account of the job up to date."""
        self._count(record.key, self._gang_of(record))
        for pod in self._pods.get(record.uid, {}).values():
            self._account(pod)

    def waits(self, record: JobRecord) -> bool:
        """Whether the job holds nothing and would take capacity now."""
        status, now = record.status, self._clock()
        return (
            record.job is not None
            and record.objection is None
            and record.decision is None
            and not record.is_deleted
            and not record.job.suspend
            and not status.is_final
            and status.phase is not Phase.SUSPENDED
            and status.placement is None
            and (status.retry_at is None or status.retry_at <= now)
            and record.not_before <= now
            and all(pod.is_over for pod in self._pods.get(record.uid, {}).values())
        )

    def by_key(self, key: str) -> JobRecord | None:
        """The job of this `namespace/name`."""
        uid = self._uid_of.get(key)
        return None if uid is None else self.jobs.get(uid)

    def scene(self, record: JobRecord, now: float, rules: Rules) -> Scene:
        """All that is known of the job, for its next step."""
        pods = tuple(self._facts(pod) for pod in self._pods.get(record.uid, {}).values())
        record.note(pods)
        return Scene(record.facts(), record.status, pods, now, rules)

    def ports(self) -> set[int]:
        """The rendezvous ports of all gangs that hold nodes."""
        placements = (record.status.placement for record in self.jobs.values())
        return {placement.port for placement in placements if placement is not None}

    # Pods

    def pod_changed(self, raw: Raw) -> None:
        """Take in a pod of anybody."""
        if not self.pod_versions.take(raw):
            return
        metadata, spec = raw["metadata"], raw["spec"]
        owner = owner_of(raw)
        pod = PodRecord(
            key=f"{metadata['namespace']}/{metadata['name']}",
            uid=metadata["uid"],
            version=int(metadata["resourceVersion"]),
            node=spec.get("nodeName") or "",
            is_over=(raw.get("status") or {}).get("phase") in ("Succeeded", "Failed"),
            spec=spec,
            owner=owner,
            facts=facts_of(raw) if owner else None,
        )
        if owner is not None:
            mine = self._pods.setdefault(owner, {})
            before = mine.get(pod.uid)
            mine[pod.uid] = pod
            if pod.facts is not None and (before is None or before.facts != pod.facts):
                # A gang that comes along is told of when there is time, what goes wrong at once.
                self._on_job(owner, is_urgent=not pod.facts.is_on_its_way)
        self._account(pod)
        self._settle_leftovers(owner)

    def pod_gone(self, raw: Raw) -> None:
        """Forget a pod."""
        self.forget_pod(raw["metadata"]["uid"], owner_of(raw))

    def forget_pod(self, uid: str, owner: str | None) -> None:
        """Forget the pod with *uid*."""
        self.pod_versions.drop(uid)
        if uid in self._foreign:
            self._foreign.discard(uid)
            self.cluster.remove_foreign(uid)
            self._on_capacity()
        if owner is None:
            return
        mine = self._pods.get(owner, {})
        if mine.pop(uid, None) is not None:
            self._on_job(owner)
        if not mine:
            self._pods.pop(owner, None)
        self._settle_leftovers(owner)

    def _settle_leftovers(self, owner: str | None) -> None:
        """Leftovers of an attempt keep a job from being planned; the last one lets it again."""
        record = self.jobs.get(owner) if owner else None
        if record is not None and record.nodes is None:
            self.settle(record)

    def pods_of(self, uid: str) -> Iterable[PodRecord]:
        """The pods that the job controls."""
        return self._pods.get(uid, {}).values()

    def mark_deleting(self, record: JobRecord, pod_uid: str, now: float) -> None:
        """Expect a pod to go, so that its deletion is not asked for twice."""
        pod = self._pods.get(record.uid, {}).get(pod_uid)
        if pod is not None and pod.facts is not None and pod.facts.deleting_since is None:
            pod.facts = replace(pod.facts, deleting_since=now)

    # What jobs run in

    def around_changed(self, kind: str, raw: Raw) -> None:
        """Take in a node, queue or topology."""
        before = self.around.node_state(raw["metadata"]["name"]) if kind == "nodes" else None
        if self.around.changed(kind, raw):
            self._around_news(kind, raw["metadata"]["name"], before)

    def around_gone(self, kind: str, name: str, uid: str) -> None:
        """Note that a node, queue or topology is gone."""
        before = self.around.node_state(name) if kind == "nodes" else None
        if self.around.gone(kind, name, uid):
            self._around_news(kind, name, before)

    def _around_news(self, kind: str, name: str, before: NodeState | None) -> None:
        if kind != "nodes":
            for record in self.jobs.values():
                self._judge(record)
        elif before is not self.around.node_state(name):
            for record in self.jobs.values():
                if name in (record.nodes or ()):
                    self._on_job(record.uid)
        self._on_capacity()

    # The scheduler's account

    def _parse(self, record: JobRecord, raw: Raw) -> None:
        record.raw = raw
        try:
            record.job = job_of(raw)
        except InvalidSpec as error:
            record.job = None
            record.objection = Words("InvalidSpec", str(error))
        else:
            record.objection = self._objection(record.job)

    def _judge(self, record: JobRecord) -> None:
        """Queues or levels changed: what spoke against a job may no longer do so."""
        if record.job is None:
            return
        objection = self._objection(record.job)
        if objection != record.objection:
            record.objection = objection
            self.settle(record)
            self._on_job(record.uid)

    def _objection(self, job: TrainingJob) -> Words | None:
        around = self.around
        return objection_to(job, around.queues, around.levels, has_scheduler=self._has_scheduler)

    def _gang_of(self, record: JobRecord) -> Gang | None:
        if record.job is None:
            return None
        nodes = record.nodes
        if nodes is None and not self.waits(record):
            return None
        return gang_of(record.job, nodes)

    def _count(self, key: str, gang: Gang | None) -> None:
        before = self._gangs.get(key)
        if gang is None:
            if before is not None:
                del self._gangs[key]
                self.cluster.remove_gang(key)
                if before.placement is not None:
                    self._on_capacity()
        elif gang != before:
            self._gangs[key] = gang
            self.cluster.upsert_gang(gang)
            if gang.placement is None:
                self._on_capacity()

    def _account(self, pod: PodRecord) -> None:
        """Count a pod on its node, unless the placement of its gang does."""
        record = self.jobs.get(pod.owner) if pod.owner else None
        counts = bool(pod.node) and not pod.is_over and not (record and record.holds(pod))
        if counts:
            self._foreign.add(pod.uid)
            self.cluster.upsert_foreign(pod.uid, pod.node, _needs_of(pod))
        elif pod.uid in self._foreign:
            self._foreign.discard(pod.uid)
            self.cluster.remove_foreign(pod.uid)
            self._on_capacity()

    def _facts(self, pod: PodRecord) -> PodFacts:
        assert pod.facts is not None
        state = self.around.node_state(pod.node) if pod.node else NodeState.UP
        return pod.facts if state is NodeState.UP else replace(pod.facts, node_state=state)


def _spec_of(raw: Mapping[str, Any]) -> tuple[object, ...]:
    """All of a job that `job_of` reads and that may change."""
    metadata = raw["metadata"]
    return (
        metadata.get("generation"),
        metadata.get("annotations"),
        metadata.get("deletionTimestamp"),
    )


def _needs_of(pod: PodRecord) -> Needs:
    try:
        return needs_of(pod.spec)
    except InvalidSpec:
        return Needs()  # the API server would not have stored it
