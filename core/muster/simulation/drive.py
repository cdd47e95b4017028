"""The scheduler driven through simulated time.

    simulation = Simulation(cluster, policy)
    simulation.submit(gang, Work(seconds=3600.0))      # at gang.submitted
    simulation.node_becomes(600.0, "n1", Becomes.DOWN)
    simulation.run()                                   # or run(until=...), and on from there
    simulation.jobs["team/a"].starts, .finished, .evictions, .replicas_lost, .wait
    simulation.utilization, simulation.now

`cluster` holds levels, nodes and queues and is changed in place; `policy` is handed to every
cycle. What a job really takes is `Work`; the scheduler knows `Gang.max_run_time` only. With
`restart_cost`, each start but a job's first spends that many seconds on nothing; with
`keeps_work=False` an eviction or a lost node costs a job all that it has done. Reasons are worked
out when somebody asks: `explain()` gives each pending job its `wait`. Whoever wants to see more
than the end gives watchers.

At one instant: changes of nodes and queues, completions, expired timers, wishes, submissions, then
cycles until one decides nothing; then whatever became due at the same instant, in the same order.
An instant costs what happens in it and what its cycles cost, however many jobs have finished.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from math import ceil, inf
from typing import Any, Final, Protocol

from muster.errors import MusterError
from muster.scheduling.cluster import Cluster
from muster.scheduling.cycle import plan_cycle
from muster.scheduling.plan import Plan
from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import Gang, Snapshot
from muster.simulation import effects
from muster.simulation.agenda import Phase
from muster.simulation.carrying import Hands
from muster.simulation.job import ENDLESS, Job, Work
from muster.simulation.timeline import Event, told
from muster.simulation.world import Becomes, World

_PASSES: Final = 1_000
"""Cycles in one instant after which it will never end."""
_IDLE_WAKES: Final = 100
"""Times that the scheduler may ask to be called again without having anything to decide."""
FOREVER: Final = 100 * 365 * 86_400.0
"""Nothing is driven for longer than this many seconds."""


class Unsettled(MusterError):
    """The scheduler goes on changing its mind within one instant: a defect of the core."""

    def __init__(self, at: float, jobs: Iterable[str]) -> None:
        self.at, self.jobs = at, tuple(jobs)
        super().__init__(
            f"the decisions at {at:g} s do not settle: {', '.join(self.jobs)} keep changing "
            "places; this is a fault of the scheduler, please report the input"
        )


Planner = Callable[[Snapshot, Policy, float], Plan]
"""Whatever decides; `plan_cycle` unless something else is to be tried."""


class Watcher(Protocol):
    """Sees everything as it happens."""

    def planning(self, simulation: "Simulation") -> None:
        """Called before the deeds of one cycle are carried out."""

    def planned(self, simulation: "Simulation") -> None:
        """Called when they have been."""

    def settled(self, simulation: "Simulation", events: tuple[Event, ...]) -> None:
        """Called at the end of each instant, with what happened in it."""


class Simulation:
    """A cluster, its jobs, and the time."""

    def __init__(
        self,
        cluster: Cluster,
        policy: Policy,
        *,
        start: float = 0.0,
        keeps_work: bool = True,
        restart_cost: float = 0.0,
        watchers: tuple[Watcher, ...] = (),
        planner: Planner = plan_cycle,
    ) -> None:
        self.world = World(
            cluster, policy, now=start, keeps_work=keeps_work, restart_cost=restart_cost
        )
        # Reasons take longer than decisions, and play no part in them.
        self._terse = replace(policy, max_explained=0)
        self._settled_at = start
        self._hands = Hands(self.world)
        self._watchers = watchers
        self._planner = planner
        self._wake_at = inf
        self._idle_wakes = 0
        self._end = (start, 0.0, 0.0)

    # What is to come.

    def submit(self, gang: Gang, work: Work = ENDLESS, *, after: str = "") -> None:
        """*gang* comes at `gang.submitted`; with a placement, as one that runs already by then.

        *after* names the job that has to succeed before it starts.
        """
        placement = gang.placement
        waiting = replace(gang, placement=None)
        self.world.register(waiting, Job(waiting, work, after, counted=gang.submitted))
        self.world.agenda.add(
            gang.submitted,
            Phase.SUBMISSION,
            order=gang.sequence,
            act=partial(self.world.submit, gang.key, placement),
        )

    def adopt(self, gang: Gang, seconds_left: float = inf, *, after: str = "") -> None:
        """*gang* is in the cluster already, and has this much to do."""
        ran, attained = gang.ran, gang.attained
        if not gang.is_pending:
            passed = max(0.0, self.now - effects.run_of(gang).started)
            ran += passed
            attained += passed * gang.running * gang.needs.gpus
        job = Job(gang, Work(ran + seconds_left), after, counted=self.now, done=ran)
        job.held_gpu_seconds = attained
        if gang.run is not None:
            job.starts.append(gang.run.started)
        self.world.adopt(gang, job)

    def node_becomes(self, at: float, node: str, state: Becomes) -> None:
        """A node goes down, is drained, or is up again."""
        act = partial(self.world.becomes, node, state)
        self.world.agenda.add(at, Phase.CHANGE, act=act)

    def set_queue(self, at: float, queue: str, fields: Mapping[str, Any]) -> None:
        """A queue gets other settings: fields of `Queue`, by name."""
        act = partial(self.world.set_queue, queue, fields)
        self.world.agenda.add(at, Phase.CHANGE, act=act)

    def suspend(self, at: float, job: str, *, is_suspended: bool = True) -> None:
        """Somebody suspends a job, or lets it go on."""
        act = partial(self.world.suspend, job, is_suspended=is_suspended)
        self.world.agenda.add(at, Phase.WISH, act=act)

    def look(self, at: float) -> None:
        """The scheduler looks at the cluster at that time, whether something happens or not."""
        self.world.agenda.add(at, Phase.CHANGE, act=lambda: None)

    # What is.

    @property
    def now(self) -> float:
        """The time, in seconds."""
        return self.world.now

    @property
    def jobs(self) -> Mapping[str, Job]:
        """All jobs by name, those included that are still to be submitted."""
        return self.world.jobs

    @property
    def cluster(self) -> Cluster:
        """The cluster as it is now."""
        return self.world.cluster

    @property
    def end(self) -> float:
        """When something happened for the last time."""
        return self._end[0]

    @property
    def utilization(self) -> float:
        """GPU-seconds held, divided by those of nodes that are up, from the first submission to
        the end; to now, once `run` was given a later time."""
        used, up = self.world.used_gpu_seconds, self.world.up_gpu_seconds
        return used / up if up else 0.0

    @property
    def utilization_at_the_end(self) -> float:
        """The same up to `end`."""
        _, used, up = self._end
        return used / up if up else 0.0

    def run(self, until: float = inf, *, stops: "Stop | None" = None) -> None:
        """Drive on up to and including *until*; without it, until nothing can change any more.

        With *stops*, only until it says so; it is asked after each instant.
        """
        while (at := self._next_time()) <= min(until, FOREVER):
            self._instant(at)
            if stops is not None and stops(self):
                return
        if until < inf and until > self.now:
            self.world.advance(until)

    def explain(self) -> None:
        """Give each pending job the reason that the scheduler gave when it looked last."""
        world = self.world
        plan = self._planner(world.cluster.snapshot(), world.policy, self._settled_at)
        for wait in plan.waiting:
            world.jobs[wait.gang].wait = wait

    def _next_time(self) -> float:
        wake_at = self._wake_at if self._idle_wakes < _IDLE_WAKES else inf
        return min(self.world.agenda.next_time(), wake_at)

    def _instant(self, now: float) -> None:
        world = self.world
        if now > world.now:
            world.advance(now)
        has_happened = False
        while True:
            has_happened |= self._handle_due(now)
            has_happened |= self._settle()
            if world.agenda.next_time() > now:
                break
        if has_happened:
            self._idle_wakes = 0
            self._end = (now, world.used_gpu_seconds, world.up_gpu_seconds)
        else:
            self._idle_wakes += 1
        events, world.events = told(world.events), []
        world.begun, world.gained = {}, {}
        for watcher in self._watchers:
            watcher.settled(self, events)

    def _handle_due(self, now: float) -> bool:
        world = self.world
        due = world.agenda.take(now)
        for item in due:
            if item.act is not None:
                item.act()
                continue
            job = world.jobs[item.key]
            if job.ticket != item.ticket:
                continue
            if item.phase is Phase.COMPLETION:
                world.end(job)
            else:
                world.expire(job)
        return bool(due)

    def _settle(self) -> bool:
        """Plan until a plan has no deeds; whether any had."""
        world = self.world
        for number in range(_PASSES):
            plan = self._planner(world.cluster.snapshot(), self._terse, world.now)
            deeds = plan.deeds
            if not deeds:
                self._wake(plan.wake_at)
                self._settled_at = world.now
                return number > 0
            for watcher in self._watchers:
                watcher.planning(self)
            self._hands.carry_out(deeds)
            for watcher in self._watchers:
                watcher.planned(self)
        raise Unsettled(world.now, dict.fromkeys(deed.gang for deed in deeds))

    def _wake(self, wake_at: float | None) -> None:
        self._wake_at = inf
        # A time that has come already would bring the same plan again, for ever.
        if wake_at is not None and self.now < wake_at < FOREVER:
            # Up to the next microsecond, since nothing has changed a little before.
            self._wake_at = ceil(wake_at * 1e6) / 1e6


class Stop(Protocol):
    """Says after each instant whether enough was seen."""

    def __call__(self, simulation: Simulation, /) -> bool:
        """Whether to stop."""
