"""The simulated world between two cycles: nodes, queues and jobs, and all that happens to them.

Only what is asked for happens here; what a cycle decides is carried out by `carrying`, and the
clock runs in `drive`. Every change of a gang goes through `World.put`.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import StrEnum
from functools import partial
from typing import Any

from muster.errors import Conflict
from muster.scheduling.cluster import Cluster
from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import Displaced, Gang, Leaving, Node
from muster.simulation import effects
from muster.simulation.agenda import Agenda, Item, Phase
from muster.simulation.job import Job, instant
from muster.simulation.timeline import Event, Kind, event_of


class Becomes(StrEnum):
    """What may happen to a node."""

    DOWN = "down"
    DRAINED = "drained"
    UP = "up"


class Overplaced(Conflict):
    """A job is said to run already where there is no room for it."""

    def __init__(self, job: str, node: str, at: float) -> None:
        super().__init__(f"{job} cannot run on {node} already at {at:g} s: there is no room")
        self.job, self.node, self.at = job, node, at


class World:
    """All that exists, at one time, with what is due later."""

    def __init__(
        self,
        cluster: Cluster,
        policy: Policy,
        *,
        now: float = 0.0,
        keeps_work: bool = True,
        restart_cost: float = 0.0,
    ) -> None:
        snapshot = cluster.snapshot()
        self.cluster = cluster
        self.policy = policy
        self.now = now
        self.keeps_work = keeps_work
        self.restart_cost = restart_cost
        self.jobs: dict[str, Job] = {}
        self.nodes: dict[str, Node] = {node.name: node for node in snapshot.nodes}
        self.agenda = Agenda(self._is_void)
        self.events: list[Event] = []
        """What happened at this instant."""
        self.changed = snapshot.changed
        self.disturbed = 0
        """Counts what may keep a claimant from its start: changes of nodes, queues and wishes."""
        self.used_gpu_seconds = 0.0
        self.up_gpu_seconds = 0.0
        self.begun: dict[str, Gang] = {}
        """What started at this instant, as it was before."""
        self.gained: dict[str, int] = {}
        """Replicas that a job has got at this instant."""
        self.asked: dict[str, set[str]] = defaultdict(set)
        """Who was asked to leave, by claimant."""
        self._is_counting = False
        self._held = 0
        self._up = sum(node.gpus for node in snapshot.nodes if node.is_ready)
        self._followers: dict[str, list[str]] = defaultdict(list)

    def advance(self, now: float) -> None:
        """Let time pass in which nothing happens."""
        passed = now - self.now
        if passed and self._is_counting:
            self.used_gpu_seconds += self._held * passed
            self.up_gpu_seconds += self._up * passed
        self.now = now
        self.cluster.advance(now, self.policy.usage_half_life)

    def put(self, job: Job, gang: Gang, *, overhead: float = 0.0) -> None:
        """Go on with *job* as *gang*, and note when something is due for it."""
        self._held += (gang.running - job.gang.running) * gang.needs.gpus
        job.become(gang, self.now, overhead=overhead)
        self.cluster.upsert_gang(gang)
        due = partial(self.agenda.add, order=gang.sequence, key=gang.key, ticket=job.ticket)
        due(job.next_end(), Phase.COMPLETION)
        for leaving in gang.leaving:
            due(leaving.deadline, Phase.TIMER)
        lost_at = gang.run.lost_at if gang.run else None
        if lost_at is not None and gang.lost:
            over = lost_at + self.policy.replace_failed_for
            # Once it is over, the next cycle has been told.
            if over > self.now or lost_at == self.now:
                due(over, Phase.TIMER)

    def note_change(self) -> None:
        """Something changed from outside: see `Snapshot.changed`."""
        self.changed += 1
        self.cluster.set_changed(self.changed)

    def tell(self, kind: Kind, gang: Gang, by: str = "") -> None:
        """Note what happened to a gang, which is given as it is after it."""
        self.events.append(event_of(self.now, kind, gang, by))

    # What comes from outside.

    def register(self, gang: Gang, job: Job) -> None:
        """Know a job before it is submitted."""
        if gang.key in self.jobs:
            raise Conflict(f"there are two jobs named {gang.key}; rename one")
        self.jobs[gang.key] = job

    def submit(self, key: str, placement: tuple[str, ...] | None) -> None:
        """A job comes: into its queue, or with a placement as one that runs already."""
        self._is_counting = True
        job = self.jobs[key]
        gang = job.gang
        if placement is None and job.after:
            first = self.jobs.get(job.after)
            if first is None or first.finished is None:
                self._followers[job.after].append(key)
                words = f"comes after {job.after}, which has not succeeded"
                gang = replace(gang, held_back=words)
        job.is_submitted = True
        self.note_change()
        self.put(job, gang)
        self.tell(Kind.SUBMITTED, gang)
        if placement is not None:
            self.put(job, effects.started(gang, placement, self.now))
            self._check_room(key, placement)
            job.starts.append(self.now)
            self.tell(Kind.STARTED, job.gang)

    def adopt(self, gang: Gang, job: Job) -> None:
        """Take over a gang that the cluster knows already."""
        self.register(gang, job)
        self._is_counting = job.is_submitted = True
        self._held += gang.running * gang.needs.gpus
        if job.after and gang.held_back:
            self._followers[job.after].append(gang.key)
        for leaving in gang.leaving:
            if leaving.claimant:
                self.asked[leaving.claimant].add(gang.key)
        self.put(job, gang)

    def becomes(self, name: str, state: Becomes) -> None:
        """A node goes down, is drained, or is up again."""
        old = self.nodes[name]
        is_drained = state is Becomes.DRAINED
        node = replace(
            old,
            is_ready=old.is_ready if is_drained else state is Becomes.UP,
            is_cordoned=is_drained or (old.is_cordoned and state is not Becomes.UP),
            is_draining=is_drained or (old.is_draining and state is not Becomes.UP),
        )
        self.nodes[name] = node
        self._up += node.gpus * (node.is_ready - old.is_ready)
        self.disturbed += 1
        self.note_change()
        self.cluster.upsert_node(node)
        if state is not Becomes.DRAINED:
            for gang in self.cluster.snapshot().running:
                ranks = [rank for rank, on in enumerate(gang.placement or ()) if on == name]
                if ranks and state is Becomes.DOWN:
                    self.lose(self.jobs[gang.key], ranks)
                elif ranks and gang.leaving:
                    self.put(self.jobs[gang.key], effects.undrained(gang, ranks))

    def set_queue(self, name: str, fields: Mapping[str, Any]) -> None:
        """A queue gets other settings: fields of `Queue`, by name."""
        queue = self.cluster.snapshot().quotas.queues[name]
        self.disturbed += 1
        self.note_change()
        self.cluster.upsert_queue(replace(queue, **fields))

    def suspend(self, key: str, *, is_suspended: bool) -> None:
        """Somebody suspends a job, or lets it go on."""
        job = self.jobs[key]
        gang = replace(job.gang, is_suspended=is_suspended)
        if not job.is_submitted:
            job.gang = gang
        if not job.is_submitted or job.finished is not None:
            return
        self.disturbed += 1
        self.note_change()
        if is_suspended and not gang.is_pending:
            if self.policy.leaves_at_once:
                self.put(job, gang)
                self.depart(job, Kind.SUSPENDED)
                return
            if all(each.ranks is not None for each in gang.leaving):
                deadline = instant(self.now + self.policy.notice)
                gang = effects.asked(gang, Leaving("", None, deadline))
        if not is_suspended:
            gang = effects.unsuspended(gang)
        self.put(job, gang)

    # What time brings about.

    def end(self, job: Job) -> None:
        """What was due of a job's work is done: some ranks, or all of them."""
        gang = job.gang
        ranks = job.ending_ranks()
        if job.work.by_rank and (len(ranks) < gang.running or gang.lost):
            for rank in ranks:
                gang = effects.finished(gang, rank)
            self.note_change()
            self.put(job, gang)
            return
        job.count(self.now)
        self._held -= gang.running * gang.needs.gpus
        job.finished = self.now
        job.ticket += 1
        self.note_change()
        self.cluster.remove_gang(gang.key)
        self.withdraw(gang.key)
        job.gang = replace(gang, placement=None, leaving=(), claim=())
        self.tell(Kind.FINISHED, job.gang)
        for key in self._followers.pop(gang.key, ()):
            follower = self.jobs[key]
            self.put(follower, replace(follower.gang, held_back=""))

    def expire(self, job: Job) -> None:
        """A deadline of a job is over."""
        gang = job.gang
        due = [each for each in gang.leaving if each.deadline <= self.now]
        for leaving in due:
            if leaving.ranks is None:
                kind = Kind.EVICTED if leaving.claimant else Kind.SUSPENDED
                self.depart(job, kind, leaving.claimant)
                return
            if leaving.claimant:
                self.take_surplus(job, leaving.ranks, leaving.claimant)
            else:
                self.lose(job, leaving.ranks)
        if not due:
            # The time for a replacement: what follows from that is decided by the next cycle.
            self.note_change()

    def depart(self, job: Job, kind: Kind, by: str = "") -> None:
        """All of a job leaves."""
        before = self.begun.pop(job.key, None)
        if before is not None and kind is Kind.EVICTED:
            self._unstart(job, before, by)
            return
        job.count(self.now)
        if kind is not Kind.SUSPENDED and not self.keeps_work:
            job.lose_work()
        gang = effects.waiting(
            job.gang,
            attained=job.held_gpu_seconds,
            ran=job.done,
            is_returning=kind is not Kind.SUSPENDED,
            displaced=Displaced(by, self.changed) if by else None,
        )
        job.evictions += kind is not Kind.SUSPENDED
        self.withdraw(job.key)
        self.put(job, gang)
        self.tell(kind, gang, by)

    def take_surplus(self, job: Job, ranks: Iterable[int], by: str) -> None:
        """Replicas beyond the minimum leave: the highest ranks."""
        ranks = tuple(ranks)
        gang = effects.cut(job.gang, ranks)
        self.put(job, gang)
        new = min(self.gained.get(job.key, 0), len(ranks))
        job.replicas_lost += len(ranks) - new
        if new:
            self.gained[job.key] -= new
        self.tell(Kind.SHRUNK, gang, by)

    def lose(self, job: Job, ranks: Iterable[int]) -> None:
        """Replicas are gone for another reason than that somebody took them."""
        job.count(self.now)
        if not self.keeps_work:
            job.lose_work()
        gang = effects.lost(job.gang, tuple(ranks), self.now)
        self.put(job, gang)
        self.tell(Kind.REPLICA_LOST, gang)

    def withdraw(self, claimant: str) -> None:
        """Nobody has to leave for *claimant* any more."""
        for key in sorted(self.asked.pop(claimant, ())):
            victim = self.jobs[key]
            if any(each.claimant == claimant for each in victim.gang.leaving):
                self.put(victim, effects.released(victim.gang, claimant))

    def _unstart(self, job: Job, before: Gang, by: str) -> None:
        """A job started and displaced in the same instant was not started."""
        job.starts.pop()
        displaced = Displaced(by, self.changed) if by else None
        self.put(job, replace(before, claim=(), displaced=displaced))
        start = max(
            number
            for number, event in enumerate(self.events)
            if event.job == job.key and event.kind is Kind.STARTED
        )
        told = [event for event in self.events[start:] if event.job != job.key]
        # Whoever left for it left for the one that took its place.
        told = [
            replace(event, by=by) if event.by == job.key else event
            for event in (*self.events[:start], *told)
        ]
        self.events = told

    def _check_room(self, key: str, placement: Iterable[str]) -> None:
        snapshot = self.cluster.snapshot()
        for name in dict.fromkeys(placement):
            has_room = (snapshot.free[:, snapshot.tree.position[name]] >= 0).all()
            if not has_room or not self.nodes[name].is_ready:
                raise Overplaced(key, name, self.now)

    def _is_void(self, item: Item) -> bool:
        return item.act is None and self.jobs[item.key].ticket != item.ticket
