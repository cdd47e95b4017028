"""One gang in a copy of the cluster, changed and tried as often as is needed.

The copy is changed in place and put back after each try, so that a try costs a cycle and not the
copying of everything that exists.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from muster.scheduling.cluster import Cluster, Objects
from muster.scheduling.cycle import plan_cycle
from muster.scheduling.plan import Admit, Plan, Preempt, Victim, Wait
from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import Gang, Queue
from muster.simulation.drive import Simulation, Unsettled

Json = Any


@dataclass(frozen=True, slots=True)
class Edit:
    """What somebody would have to write into one object."""

    kind: str
    """`TrainingJob` or `Queue`."""
    name: str
    """`namespace/name` of a job."""
    spec: Mapping[str, Json]
    """A merge patch of the spec."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A gang and its queues with something changed, in words and as patches."""

    gang: Gang
    queues: Mapping[str, Queue] = field(default_factory=dict)
    """Those that are changed."""
    words: tuple[str, ...] = ()
    edits: tuple[Edit, ...] = ()

    def with_gang(self, words: str, spec: Mapping[str, Json], gang: Gang) -> "Variant":
        """The same with another gang."""
        edit = Edit("TrainingJob", gang.key, spec)
        return replace(
            self, gang=gang, words=(*self.words, words), edits=_with_edit(self.edits, edit)
        )

    def with_queue(self, words: str, spec: Mapping[str, Json], queue: Queue) -> "Variant":
        """The same with another queue."""
        return replace(
            self,
            queues={**self.queues, queue.name: queue},
            words=(*self.words, words),
            edits=_with_edit(self.edits, Edit("Queue", queue.name, spec)),
        )

    def made_in(self, objects: Objects) -> Objects:
        """*objects* with this variant in the place of what it was made of."""
        gangs = {gang.key: gang for gang in objects.gangs} | {self.gang.key: self.gang}
        queues = {queue.name: queue for queue in objects.queues} | dict(self.queues)
        return replace(
            objects,
            gangs=tuple(gangs[key] for key in sorted(gangs)),
            queues=tuple(queues[name] for name in sorted(queues)),
        )


@dataclass(frozen=True, slots=True)
class Start:
    """How a gang starts."""

    nodes: tuple[str, ...]
    """Of each replica, in rank order."""
    why: str
    victims: tuple[Victim, ...] = ()


class Trying:
    """Tries variants of a gang. Victims leave at once here, so that a start shows.

    *goes_on* is asked before each try: once it says no, nothing starts any more, and `gave_up` is
    true. In a large, full cluster one try may take as long as a cycle that moves many jobs.
    """

    def __init__(
        self,
        objects: Objects,
        policy: Policy,
        now: float,
        *,
        goes_on: Callable[[], bool] = lambda: True,
        drive: Callable[..., Simulation] = Simulation,
    ) -> None:
        self.gave_up = False
        self._goes_on = goes_on
        self._drive = drive
        self.objects = objects
        self.policy = replace(policy, leaves_at_once=True)
        self.now = now
        self.cluster = Cluster.restored(objects)
        self.queues = {queue.name: queue for queue in objects.queues}
        self.gangs = {gang.key: gang for gang in objects.gangs}

    def plan(self, variant: Variant, *, with_reasons: bool = False) -> Plan:
        """What a cycle would decide."""
        policy = self.policy if with_reasons else replace(self.policy, max_explained=0)
        self._put(variant)
        try:
            return plan_cycle(self.cluster.snapshot(), policy, self.now)
        finally:
            self._take_back(variant)

    def start(self, variant: Variant) -> Start | None:
        """How it would start now; `None` where it would not."""
        if self.gave_up or not self._goes_on():
            self.gave_up = True
            return None
        return start_in(self.plan(variant), variant.gang.key)

    def wait(self, variant: Variant) -> Wait | None:
        """Why it would wait."""
        return wait_in(self.plan(variant, with_reasons=True), variant.gang.key)

    def settled(self, variant: Variant) -> Objects | None:
        """The cluster once all decisions of this moment are carried out, on a copy made afresh;
        `None` where they do not come to an end.
        """
        cluster = Cluster.restored(variant.made_in(self.objects))
        policy = replace(self.policy, max_explained=0)
        simulation = self._drive(cluster, policy, start=self.now)
        for gang in cluster.objects().gangs:
            simulation.adopt(gang)
        simulation.look(self.now)
        try:
            simulation.run(until=self.now)
        except Unsettled:
            return None
        return simulation.cluster.objects()

    def stays_started(self, variant: Variant) -> bool:
        """Whether it runs then: the proof of what the tries found."""
        settled = self.settled(variant)
        return settled is not None and any(
            gang.key == variant.gang.key and gang.placement is not None for gang in settled.gangs
        )

    def _put(self, variant: Variant) -> None:
        self.cluster.upsert_gang(variant.gang)
        for queue in variant.queues.values():
            self.cluster.upsert_queue(queue)

    def _take_back(self, variant: Variant) -> None:
        before = self.gangs.get(variant.gang.key)
        if before is None:
            self.cluster.remove_gang(variant.gang.key)
        else:
            self.cluster.upsert_gang(before)
        for name in variant.queues:
            self.cluster.upsert_queue(self.queues[name])


def start_in(plan: Plan, key: str) -> Start | None:
    """How the gang starts in *plan*, with those who leave for it."""
    victims = tuple(
        victim
        for deed in plan.deeds
        if isinstance(deed, Preempt) and deed.gang == key
        for victim in deed.victims
    )
    for deed in plan.deeds:
        if isinstance(deed, Admit) and deed.gang == key:
            return Start(deed.nodes, deed.why, victims)
    return None


def wait_in(plan: Plan, key: str) -> Wait | None:
    """Why the gang waits by *plan*."""
    return next((wait for wait in plan.waiting if wait.gang == key), None)


def _with_edit(edits: tuple[Edit, ...], edit: Edit) -> tuple[Edit, ...]:
    """One edit for each object: what is said of one later is added to what was said before."""
    same = [each for each in edits if (each.kind, each.name) == (edit.kind, edit.name)]
    others = tuple(each for each in edits if each not in same)
    spec: dict[str, Json] = {}
    for each in (*same, edit):
        spec = _merged(spec, each.spec)
    return (*others, replace(edit, spec=spec))


def _merged(before: Mapping[str, Json], patch: Mapping[str, Json]) -> dict[str, Json]:
    merged = dict(before)
    for name, value in patch.items():
        old = merged.get(name)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        merged[name] = _merged(old, value) if both and isinstance(old, Mapping) else value
    return merged
