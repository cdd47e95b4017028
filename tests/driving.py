"""Carries plans out as the contract says, and lets the world change: a driver for tests.

Independent of `muster.simulation` on purpose, so that the two check each other. Whoever wants to
see each decision before it is carried out passes a *witness*.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import replace

from muster.scheduling.cluster import Cluster
from muster.scheduling.cycle import plan_cycle
from muster.scheduling.plan import (
    Admit,
    Deed,
    Grow,
    Leave,
    Plan,
    Preempt,
    Replace,
    Requeue,
    Right,
    Shrink,
    Withdraw,
)
from muster.scheduling.snapshot import (
    NOWHERE,
    Displaced,
    Gang,
    Leaving,
    Needs,
    Node,
    Queue,
    Run,
    Took,
)
from random_worlds import World

MOST_PASSES = 60
"""So many passes in one instant are far more than decisions take to settle."""

Witness = Callable[["Drive", Deed], None]


class Drive:
    """A world in motion: its values, and the cluster that was told of them."""

    def __init__(
        self, world: World, witness: Witness | None = None, *, keeps_work: bool = True
    ) -> None:
        self.policy, self.now = world.policy, world.now
        self.nodes = {node.name: node for node in world.nodes}
        self.queues = {queue.name: queue for queue in world.queues}
        self.gangs = {gang.key: gang for gang in world.gangs}
        self.foreign = world.foreign
        self.cluster = world.cluster()
        self.changed = 1.0
        self.evictions: Counter[str] = Counter()
        self.replicas_lost: Counter[str] = Counter()
        self.starts: dict[str, list[float]] = {}
        self.deeds: list[tuple[float, Deed]] = []
        self._witness = witness
        self._keeps_work = keeps_work
        self._reserved_from: dict[str, tuple[str, ...]] = {}

    def sketch(self) -> "Drive":
        """The values alone, to try what a plan makes of them; no cluster is told, nobody sees."""
        sketch = copy(self)
        sketch.gangs = dict(self.gangs)
        sketch.evictions, sketch.replicas_lost = Counter(), Counter()
        sketch.starts, sketch.deeds = {}, []
        sketch.cluster, sketch._witness = Cluster(), None
        return sketch

    # What the scheduler decides.

    def plan(self) -> Plan:
        self.cluster.advance(self.now, self.policy.usage_half_life)
        return plan_cycle(self.cluster.snapshot(), self.policy, self.now)

    def settle(self, most: int = MOST_PASSES) -> Plan:
        """Plan and carry out until nothing changes; the last plan, which has no deeds."""
        for _ in range(most):
            plan = self.plan()
            if not plan.deeds:
                return plan
            self.carry_out(plan.deeds)
        raise AssertionError(f"decisions go on for ever: {plan.deeds}")

    def carry_out(self, deeds: Iterable[Deed]) -> None:
        for deed in deeds:
            if self._witness:
                self._witness(self, deed)
            self.deeds.append((self.now, deed))
            self.apply(deed)

    def apply(self, deed: Deed) -> None:
        if isinstance(deed, Withdraw):
            # Of a gang that is gone, too.
            self._withdraw(deed.gang)
            return
        gang = self.gangs[deed.gang]
        match deed:
            case Admit():
                self._admit(gang, deed)
            case Preempt():
                self._preempt(gang, deed)
            case Grow():
                run = gang.run or Run(0.0)
                behind = tuple(sorted({*run.grown_behind, *deed.behind}))
                placement = (*(gang.placement or ()), *deed.nodes)
                run = replace(run, grown_behind=behind)
                self.put(replace(gang, placement=placement, claim=(), run=run))
            case Shrink():
                self.put(without(gang, deed.ranks))
            case Replace():
                self._replace(gang, deed)
            case Requeue():
                self.evictions[gang.key] += 1
                self.put(replace(self._stopped(gang), is_returning=True))
            case Leave():
                if self.policy.leaves_at_once:
                    self._lose(gang.key, deed.ranks)
                else:
                    self._ask(gang.key, Leaving("", deed.ranks, self.now + self.policy.notice))

    def _admit(self, gang: Gang, deed: Admit) -> None:
        took = None
        if queues := self._reserved_from.pop(gang.key, ()):
            took = Took(queues, self.changed)
        self.starts.setdefault(gang.key, []).append(self.now)
        self.put(
            replace(
                gang,
                placement=deed.nodes,
                claim=(),
                is_returning=False,
                displaced=None,
                run=Run(started=self.now, behind=deed.behind, took=took),
            )
        )

    def _preempt(self, gang: Gang, deed: Preempt) -> None:
        others = {
            self.gangs[victim.gang].queue
            for victim in deed.victims
            if victim.right is Right.RESERVATION
        } - {gang.queue}
        if gang.is_pending:
            self._reserved_from[gang.key] = tuple(sorted(others))
        for victim in deed.victims:
            leaving = Leaving(gang.key, victim.ranks, self.now + self.policy.notice)
            if self.policy.leaves_at_once:
                self._go(victim.gang, leaving)
            else:
                self._ask(victim.gang, leaving)
        # Where they leave at once the start follows in the same plan, and takes the claim up.
        self.put(replace(self.gangs[gang.key], claim=deed.nodes))

    def _withdraw(self, key: str) -> None:
        self._reserved_from.pop(key, None)
        if key in self.gangs:
            self.put(replace(self.gangs[key], claim=()))
        for other in list(self.gangs.values()):
            kept = tuple(leaving for leaving in other.leaving if leaving.claimant != key)
            self.put(replace(other, leaving=kept))

    def _replace(self, gang: Gang, deed: Replace) -> None:
        placement = list(gang.placement or ())
        for rank, node in zip(deed.ranks, deed.nodes, strict=True):
            placement[rank] = node
        gang = replace(gang, placement=tuple(placement), claim=())
        if not gang.lost and gang.run:
            gang = replace(gang, run=replace(gang.run, lost_at=None))
        self.put(gang)

    def _ask(self, key: str, leaving: Leaving) -> None:
        gang = self.gangs[key]
        self.put(replace(gang, leaving=(*gang.leaving, leaving)))

    def _go(self, key: str, leaving: Leaving) -> None:
        """Somebody leaves who was asked to."""
        gang = self.gangs[key]
        gang = replace(gang, leaving=tuple(x for x in gang.leaving if x != leaving))
        if leaving.ranks is None:
            self.evictions[key] += 1
            displaced = Displaced(leaving.claimant, self.changed)
            self.put(replace(self._stopped(gang), is_returning=True, displaced=displaced))
        elif leaving.claimant:
            self.replicas_lost[key] += len(leaving.ranks)
            self.put(without(gang, leaving.ranks))
        else:
            self.put(gang)
            self._lose(key, leaving.ranks)

    def _stopped(self, gang: Gang) -> Gang:
        started = gang.run.started if gang.run else 0.0
        spent = self.now - started
        return replace(
            gang,
            placement=None,
            run=None,
            leaving=(),
            claim=(),
            finished=(),
            attained=gang.attained + spent * gang.needs.gpus * gang.running,
            ran=gang.ran + (spent if self._keeps_work else 0.0),
        )

    def _lose(self, key: str, ranks: Iterable[int]) -> None:
        gang = self.gangs[key]
        placement = list(gang.placement or ())
        for rank in ranks:
            placement[rank] = NOWHERE
        run = gang.run or Run(0.0)
        if run.lost_at is None:
            run = replace(run, lost_at=self.now)
        self.put(replace(gang, placement=tuple(placement), run=run))

    # What the world does.

    def put(self, gang: Gang) -> None:
        self.gangs[gang.key] = gang
        self.cluster.upsert_gang(gang)

    def stir(self) -> None:
        """Something changes from outside."""
        self.cluster.advance(self.now, self.policy.usage_half_life)
        self.changed += 1
        self.cluster.set_changed(self.changed)

    def submit(self, gang: Gang) -> None:
        self.stir()
        self.put(replace(gang, submitted=self.now))

    def end(self, key: str) -> None:
        """A job succeeds, or is cancelled."""
        self.stir()
        del self.gangs[key]
        self.cluster.remove_gang(key)

    def finish_rank(self, key: str, rank: int) -> None:
        self.stir()
        gang = self.gangs[key]
        placement = list(gang.placement or ())
        placement[rank] = NOWHERE
        self.put(replace(gang, placement=tuple(placement), finished=(*gang.finished, rank)))

    def suspend(self, key: str, *, is_suspended: bool) -> None:
        """A suspended job leaves at once; that is no eviction."""
        self.stir()
        gang = replace(self.gangs[key], is_suspended=is_suspended)
        self.put(self._stopped(gang) if is_suspended and gang.placement else gang)

    def change_node(self, node: Node) -> None:
        """Tell of a node; one that is not ready loses what runs there."""
        self.stir()
        self.nodes[node.name] = node
        self.cluster.upsert_node(node)
        if not node.is_ready:
            for gang in list(self.gangs.values()):
                lost = [r for r, name in enumerate(gang.placement or ()) if name == node.name]
                if lost:
                    self._lose(gang.key, lost)

    def remove_node(self, name: str) -> None:
        """Forget a node; what runs there keeps its place."""
        self.stir()
        del self.nodes[name]
        self.cluster.remove_node(name)

    def come(self, key: str, node: str, needs: Needs) -> None:
        """A pod of others takes its place, whether there is room or not."""
        self.stir()
        self.foreign = (*(f for f in self.foreign if f[0] != key), (key, node, needs))
        self.cluster.upsert_foreign(key, node, needs)

    def remove_queue(self, name: str) -> None:
        self.stir()
        del self.queues[name]
        self.cluster.remove_queue(name)

    def change_queue(self, queue: Queue) -> None:
        self.stir()
        self.queues[queue.name] = queue
        self.cluster.upsert_queue(queue)

    def leave_early(self, key: str, leaving: Leaving) -> None:
        """Its checkpoint is committed: it goes before the notice period is over."""
        self.cluster.advance(self.now, self.policy.usage_half_life)
        self._go(key, leaving)

    # Time.

    def pass_until(self, end: float, each: Callable[[], object]) -> None:
        """Let time pass; at each moment at which something is due, *each* is called."""
        while (due := self._next(end)) <= end:
            self._come(due)
            each()
            if due == end:
                return

    def _next(self, end: float) -> float:
        times = [leaving.deadline for gang in self.gangs.values() for leaving in gang.leaving]
        wait = self.policy.replace_failed_for
        runs = [gang.run for gang in self.gangs.values() if gang.run]
        times += [run.lost_at + wait for run in runs if run.lost_at is not None]
        wake = self.plan().wake_at
        times += [] if wake is None else [wake]
        return min([t for t in times if t > self.now] + [end])

    def _come(self, now: float) -> None:
        wait = self.policy.replace_failed_for
        self.cluster.advance(now, self.policy.usage_half_life)
        self.now = now
        for gang in sorted(self.gangs.values(), key=lambda gang: gang.key):
            for leaving in gang.leaving:
                if leaving.deadline <= now and leaving in self.gangs[gang.key].leaving:
                    self._go(gang.key, leaving)
            if gang.run and gang.run.lost_at is not None and gang.run.lost_at + wait == now:
                self.stir()


def without(gang: Gang, ranks: Iterable[int]) -> Gang:
    """The gang without these ranks; those behind them move up."""
    gone = set(ranks)
    size = len(gang.placement or ())
    place = {old: new for new, old in enumerate(r for r in range(size) if r not in gone)}

    def moved(some: Iterable[int]) -> tuple[int, ...]:
        return tuple(place[rank] for rank in some if rank in place)

    gang = replace(
        gang,
        placement=tuple(n for r, n in enumerate(gang.placement or ()) if r not in gone),
        finished=moved(gang.finished),
        leaving=tuple(
            leaving if leaving.ranks is None else replace(leaving, ranks=moved(leaving.ranks))
            for leaving in gang.leaving
            if leaving.ranks is None or moved(leaving.ranks)
        ),
    )
    if not gang.lost and gang.run and gang.run.lost_at is not None:
        gang = replace(gang, run=replace(gang.run, lost_at=None))
    return gang
