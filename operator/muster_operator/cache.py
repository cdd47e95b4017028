"""Jobs and pods as the watches tell of them, and what follows for the scheduler's account.

Everything is taken in by version: what is older than what is known is ignored, so that answers to
our own writes, watch events and full lists may arrive in any order. A gang counts as placed from
the moment it is decided; pods count where their gang does, and as other people's where none
accounts for them (orphans of a deleted job, leftovers of an earlier attempt).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from muster.claims import Claim, Departure
from muster.decisions import Decision
from muster.errors import InvalidSpec
from muster.job_status import JobStatus, Phase
from muster.losses import PodFacts
from muster.parse import TrainingJob, job_of
from muster.restarts import NodeState
from muster.scheduling.snapshot import Gang
from muster.standing import Surrounding, standing
from muster.status_raw import status_of
from muster.steps import Rules, Scene
from muster_operator.account import Account, has_ended
from muster_operator.objections import objection_to
from muster_operator.pod_facts import facts_of, owner_of
from muster_operator.records import JobRecord, PodRecord, Words
from muster_operator.surroundings import Surroundings
from muster_operator.ties import Ties
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
        half_life: float = 0.0,
    ) -> None:
        """With a *half_life* (seconds) the queues' usage decays."""
        self.account = Account(on_capacity, clock, half_life)
        self.cluster = self.account.cluster
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
        self._ties = Ties()

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
        record, status = self.jobs.get(uid), status_of(raw.get("status"))
        if record is None:
            record = JobRecord(key, uid, raw, 0, None, status)
            self.jobs[uid] = record
            self._parse(record, raw)
            self.account.note_past(record)
        else:
            if _spec_of(record.raw) != _spec_of(raw):
                self._parse(record, raw)
                self.account.note_change()
            elif has_ended(record.status, status):
                self.account.note_change()
            record.raw = raw
            record.status = status
        record.version = int(metadata["resourceVersion"])
        self.settle(record)
        self._settle_followers(key)
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
            self._ties.comes_after(record.key, None)
            self._claim(record.key, None)
            self.account.count(record.key, None)
            self._settle_followers(record.key)
            if not record.status.is_final:
                self.account.note_change()
        for pod in self._pods.get(uid, {}).values():
            self._account(pod)

    def decide(self, record: JobRecord, decision: Decision | None) -> None:
        """Count what was decided as done before it is committed, or no longer."""
        record.decision = decision
        self.settle(record)

    def settle(self, record: JobRecord) -> None:
        """Bring the scheduler's account of the job up to date."""
        self._claim(record.key, record.claim)
        self.account.count(record.key, self._gang_of(record))
        for pod in self._pods.get(record.uid, {}).values():
            self._account(pod)

    def waits(self, record: JobRecord) -> bool:
        """Whether the job holds nothing and would take capacity now."""
        status, now = record.decided, self._clock()
        return (
            record.job is not None
            and record.objection is None
            and not record.is_deleted
            and not record.job.suspend
            and not status.is_final
            and status.phase is not Phase.SUSPENDED
            and status.placement is None
            and (status.retry_at is None or status.retry_at <= now)
            # After a request that failed it pauses, but keeps what is being freed for it.
            and (record.not_before <= now or status.claim is not None)
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
        # Nobody leaves for a claim that is not written yet: a crash would leave no trace of it.
        departures = tuple(d for d in self.departures(record) if self._is_written(d))
        facts = record.facts(departures, self.account.changed)
        return Scene(facts, record.status, pods, now, rules)

    def departures(self, record: JobRecord) -> tuple[Departure, ...]:
        """For whom the job has to leave."""
        return self._ties.departures(record.key, record.uid, record.decided)

    def _is_written(self, departure: Departure) -> bool:
        claimant = self.by_key(departure.claimant)
        claim = claimant.status.claim if claimant is not None else None
        return claim is not None and any(ask.id == departure.id for ask in claim.asks)

    def predecessors(self) -> Mapping[str, str]:
        """The job after which each job comes that comes after one."""
        return self._ties.predecessors()

    def victims_of(self, before: JobStatus, after: JobStatus) -> Iterable[str]:
        """The uids of those whom a claim concerns that was just written or taken back."""
        claims = [claim for claim in (before.claim, after.claim) if claim is not None]
        keys = {asked.job for claim in claims for _, asked in claim.victims()}
        return [self._uid_of[key] for key in sorted(keys) if key in self._uid_of]

    def is_released(self, record: JobRecord) -> bool:
        """Whether the job that it comes after has succeeded, which is not noted yet."""
        job = record.job
        if job is None or job.after is None or record.status.is_released:
            return False
        other = self.by_key(f"{job.namespace}/{job.after}")
        return other is not None and other.status.phase is Phase.SUCCEEDED

    def held_back(self, record: JobRecord) -> str:
        """Why the job that it comes after does not let it go; empty where nothing does."""
        job = record.job
        if job is None or job.after is None or record.status.is_released:
            return ""
        other = self.by_key(f"{job.namespace}/{job.after}")
        if other is None:
            return f"comes after {job.after}, and there is no such job in {job.namespace}"
        phase = other.status.phase or Phase.PENDING
        if phase is Phase.SUCCEEDED:
            return ""
        if phase.is_final:
            return f"comes after {job.after}, which has not succeeded ({phase.value})"
        return f"comes after {job.after}, which is not done ({phase.value})"

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
        self.account.release(uid, owner)
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
        self.account.pass_time()
        if self.around.changed(kind, raw):
            self._around_news(kind, raw["metadata"]["name"], before)

    def around_gone(self, kind: str, name: str, uid: str) -> None:
        """Note that a node, queue or topology is gone."""
        before = self.around.node_state(name) if kind == "nodes" else None
        self.account.pass_time()
        if self.around.gone(kind, name, uid):
            self._around_news(kind, name, before)

    def _around_news(self, kind: str, name: str, before: NodeState | None) -> None:
        self.account.note_change()
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
        after = record.job.after if record.job is not None else None
        namespace = raw["metadata"]["namespace"]
        self._ties.comes_after(record.key, f"{namespace}/{after}" if after else None)

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
        status = record.decided
        if status.placement is None and not self.waits(record):
            return None
        around = Surrounding(
            departures=self.departures(record),
            finished=self._finished(record),
            held_back=self.held_back(record),
            may_grow=self._may_grow(record, status),
        )
        return standing(record.job, status, around)

    def _may_grow(self, record: JobRecord, status: JobStatus) -> bool:
        attempt, placement = status.current, status.placement
        if placement is None or attempt is None or record.is_deleted:
            return False
        if record.decision is not None and record.decision.start is not None:
            return True
        return (
            attempt.outcome is None
            and attempt.running_at is not None
            and placement.keeps is None
            and placement.settled == placement.size
            and not self.departures(record)
            and (status.retry_at is None or status.retry_at <= self._clock())
        )

    def _finished(self, record: JobRecord) -> tuple[int, ...]:
        """Ranks of the current attempt that exited 0."""
        attempt = record.status.attempt
        pods = self._pods.get(record.uid, {}).values()
        facts = (pod.facts for pod in pods if pod.facts is not None)
        done = {f.replica for f in facts if f.attempt == attempt and f.has_succeeded}
        return tuple(sorted(done))

    def _claim(self, key: str, claim: Claim | None) -> None:
        """Take in what a job claims, and have those looked at who leave for it, or need not."""
        for victim in self._ties.claim(key, claim):
            record = self.by_key(victim)
            if record is not None:
                self.account.count(victim, self._gang_of(record))
                self._on_job(record.uid)

    def _settle_followers(self, key: str) -> None:
        for follower in self._ties.followers(key):
            record = self.by_key(follower)
            if record is not None and record.key != key:
                self.settle(record)
                self._on_job(record.uid, is_urgent=False)

    def _account(self, pod: PodRecord) -> None:
        """Count a pod on its node, unless the placement of its gang does."""
        record = self.jobs.get(pod.owner) if pod.owner else None
        counts = bool(pod.node) and not pod.is_over and not (record and record.holds(pod))
        if counts:
            self.account.hold(pod)
        else:
            self.account.release(pod.uid, pod.owner)

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
