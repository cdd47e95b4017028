"""Holds every decision against the rules at the moment at which it is carried out."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import TypeGuard

from books import Books, lineage
from driving import Drive, without
from entitlements import Judge, Standing
from feasible import fits
from muster.scheduling.fit import misfit
from muster.scheduling.plan import (
    Admit,
    Deed,
    Grow,
    Leave,
    Plan,
    Preempt,
    Replace,
    Requeue,
    Shrink,
    Victim,
    Withdraw,
)
from muster.scheduling.snapshot import Gang
from random_worlds import domain_of

EPSILON = 1e-6


class Witness:
    """To be passed to a `Drive`; fails on the first decision that breaks a law."""

    def __init__(self) -> None:
        self.beneficiaries: dict[str, float] = {}
        """Who has evicted and not started since, and the clock of changes then."""

    def __call__(self, drive: Drive, deed: Deed) -> None:
        if isinstance(deed, Withdraw):
            self._check_withdrawn(drive, deed)
            return
        gang = drive.gangs[deed.gang]
        match deed:
            case Admit():
                assert gang.is_pending
                assert gang.min_replicas <= len(deed.nodes) <= gang.replicas
                assert is_free_to_start(drive, gang)
                is_new = replace(gang, placement=deed.nodes, claim=())
                self._check_placed(drive, is_new, deed.nodes)
                check_ranks_follow_topology(drive, is_new)
                self.beneficiaries.pop(gang.key, None)
            case Preempt():
                self._check_claim(drive, gang, deed)
            case Grow():
                assert not gang.is_pending
                assert not gang.lost
                assert not any(leaving.ranks is None for leaving in gang.leaving)
                grown = (*(gang.placement or ()), *deed.nodes)
                assert len(grown) <= gang.replicas
                assert is_free_to_start(drive, gang)
                grown_gang = replace(gang, placement=grown, claim=())
                self._check_placed(drive, grown_gang, deed.nodes)
                self.beneficiaries.pop(gang.key, None)
            case Replace():
                assert set(deed.ranks) <= set(gang.lost)
                placement = list(gang.placement or ())
                for rank, node in zip(deed.ranks, deed.nodes, strict=True):
                    placement[rank] = node
                mended = replace(gang, placement=tuple(placement), claim=())
                self._check_placed(drive, mended, deed.nodes)
                self.beneficiaries.pop(gang.key, None)
            case Shrink():
                assert set(deed.ranks) <= set(gang.lost)
                left = without(gang, deed.ranks)
                assert len(left.placement or ()) >= gang.min_replicas
                check_topology(drive, left)
            case Leave():
                assert deed.ranks
                for rank in deed.ranks:
                    assert drive.nodes[(gang.placement or ())[rank]].is_draining
            case Requeue():
                assert gang.lost
                assert gang.run
                assert gang.run.lost_at is not None
                wait = drive.policy.replace_failed_for
                assert drive.now + EPSILON >= gang.run.lost_at + wait

    def _check_withdrawn(self, drive: Drive, deed: Withdraw) -> None:
        is_awaited = any(
            leaving.claimant == deed.gang
            for other in drive.gangs.values()
            for leaving in other.leaving
        )
        has_claim = deed.gang in drive.gangs and drive.gangs[deed.gang].claim
        assert has_claim or is_awaited, "there is nothing to withdraw"
        if self.beneficiaries.get(deed.gang) != drive.changed:
            self.beneficiaries.pop(deed.gang, None)

    def _check_placed(self, drive: Drive, gang: Gang, names: Sequence[str]) -> None:
        for node in (drive.nodes[name] for name in names):
            assert node.is_ready
            assert not node.is_cordoned
            assert not node.is_draining
            assert misfit(node, gang.rules) is None
        check_topology(drive, gang)
        books = Books(
            drive.nodes, drive.queues, {**drive.gangs, gang.key: gang}.values(), drive.foreign
        )
        assert [] == list(books.over(gang, names))

    def _check_claim(self, drive: Drive, gang: Gang, deed: Preempt) -> None:
        assert deed.victims
        assert is_free_to_start(drive, gang) or gang.lost
        self.beneficiaries[gang.key] = drive.changed
        if gang.is_pending:
            # Where nobody has to be waited for, it has grown by then.
            most = gang.replicas if drive.policy.leaves_at_once else gang.min_replicas
            assert gang.min_replicas <= len(deed.nodes) <= most
            there = replace(gang, placement=deed.nodes, claim=())
            check_topology(drive, there)
            check_ranks_follow_topology(drive, there)
        elif gang.lost:
            assert len(deed.nodes) <= len(gang.lost)
        if not drive.policy.leaves_at_once:
            left = dict(standing_of(drive).without(deed.victims).gangs)
            left[gang.key] = replace(left[gang.key], claim=deed.nodes)
            books = Books(drive.nodes, drive.queues, left.values(), drive.foreign)
            over = [what for what in books.over(gang, deed.nodes) if what.startswith("later")]
            assert [] == over


def check_rights(drive: Drive, plan: Plan, *, is_minimal: bool = True) -> None:
    """Each victim leaves by right, and nobody could be spared.

    All who leave are named before those who start, so that what was decided between them is not
    told: a choice stands if it was right with nothing of the rest of the plan, or with all of it.
    """
    sketch = drive.sketch()
    first: list[tuple[Preempt, Standing]] = []
    for deed in plan.deeds:
        if isinstance(deed, Preempt):
            first.append((deed, standing_of(sketch, drive)))
        sketch.apply(deed)
    for deed, standing in first:
        last = standing_of(sketch, drive)
        gangs = {**last.gangs, deed.gang: standing.gangs[deed.gang]}
        gangs |= {victim.gang: standing.gangs[victim.gang] for victim in deed.victims}
        last = replace(last, gangs=gangs)
        faults = Judge(standing, deed).faults()
        ways = [
            last,
            with_others_started(standing, sketch, plan),
            with_nobody_drained(standing, drive, plan),
            with_run_untold(last, drive, deed),
            without_own_lower(last, deed),
        ]
        assert not faults or any(not Judge(way, deed).faults() for way in ways), faults
        gang = standing.gangs[deed.gang]
        if is_minimal and not drive.policy.reservation and gang.is_pending:
            last = with_chain_undone(last, standing, plan, deed)
            spare = [v for v in spared(standing, gang, deed) if v in spared(last, gang, deed)]
            assert [] == spare, "nobody needs these"
        if gang.lost and drive.policy.leaves_at_once:
            mended = sketch.gangs[gang.key]
            assert mended.running >= mended.min_replicas, "with its victims it is whole"


def with_chain_undone(last: Standing, standing: Standing, plan: Plan, deed: Preempt) -> Standing:
    """As if those had not left whom its victims took in their turn to start again."""
    taken = {d.gang: [victim.gang for victim in d.victims] for d in plan.deeds if is_preempt(d)}
    undone, left = set[str](), [victim.gang for victim in deed.victims]
    while left:
        key = left.pop()
        if key not in undone:
            undone.add(key)
            left += taken.get(key, [])
    gangs = {key: standing.gangs[key] for key in sorted(undone)}
    return replace(last, gangs={**last.gangs, **gangs})


def is_preempt(deed: Deed) -> TypeGuard[Preempt]:
    return isinstance(deed, Preempt)


def with_others_started(standing: Standing, sketch: Drive, plan: Plan) -> Standing:
    """As if those who start at nobody's cost had started before."""
    claimants = {deed.gang for deed in plan.deeds if isinstance(deed, Preempt)}
    started = {admit.gang for admit in plan.admitted} - claimants
    waited = {key for key, gang in standing.gangs.items() if gang.is_pending}
    gangs = {key: sketch.gangs[key] for key in sorted(started & waited)}
    return replace(standing, gangs={**standing.gangs, **gangs})


def with_nobody_drained(standing: Standing, drive: Drive, plan: Plan) -> Standing:
    """As if whoever leaves a drained node in this plan were there still."""
    drained = {deed.gang for deed in plan.deeds if isinstance(deed, Leave)}
    gangs = {key: drive.gangs[key] for key in sorted(drained)}
    return replace(standing, gangs={**standing.gangs, **gangs})


def with_run_untold(standing: Standing, drive: Drive, deed: Preempt) -> Standing:
    """As if the work of a run that ends in this plan were not kept; the core cannot know."""
    claimant = standing.gangs[deed.gang]
    before = replace(claimant, ran=drive.gangs[deed.gang].ran)
    return replace(standing, gangs={**standing.gangs, deed.gang: before})


def without_own_lower(standing: Standing, deed: Preempt) -> Standing:
    """As if lower jobs of its own queue had left as well: they did, and started again at once."""
    claimant = standing.gangs[deed.gang]
    victims = {victim.gang for victim in deed.victims}
    gangs = {
        key: replace(gang, placement=None)
        if gang.queue == claimant.queue
        and gang.priority < claimant.priority
        and gang.is_preemptible
        and key not in victims
        else gang
        for key, gang in standing.gangs.items()
    }
    return replace(standing, gangs=gangs)


def spared(standing: Standing, gang: Gang, deed: Preempt) -> list[Victim]:
    """The victims, or ranks of them, without whom the gang starts all the same."""
    found = []
    for victim in deed.victims:
        lesser: list[tuple[int, ...] | None] = [None]
        if victim.ranks is not None:
            ranks = sorted(victim.ranks)
            lesser = [tuple(ranks[n:]) or None for n in range(1, len(ranks) + 1)]
        for kept in lesser:
            others = tuple(v for v in deed.victims if v is not victim)
            if kept:
                others = (*others, replace(victim, ranks=kept))
            rest = replace(deed, victims=others)
            left = standing.without(others).books()
            if fits(gang, left, now=False) and Judge(standing, rest).allows():
                found.append(victim)
    return found


def is_free_to_start(drive: Drive, gang: Gang) -> bool:
    """Whether nobody has stopped it, or its queue, or one above that."""
    above = [drive.queues.get(name) for name in lineage(gang.queue, drive.queues)]
    is_paused = any(queue is not None and queue.is_paused for queue in above)
    is_known = gang.queue in drive.queues or gang.queue == "default"
    return is_known and not gang.is_suspended and not gang.held_back and not is_paused


def standing_of(drive: Drive, told: Drive | None = None) -> Standing:
    """The cluster as it is; of a sketch, decayed usage is that of the drive that was *told*."""
    origin = told or drive
    usage: dict[tuple[str, str | None], float] | None = None
    counted = None
    if drive.policy.usage_half_life:
        snapshot = origin.cluster.snapshot()
        usage = {(queue, None): value for queue, value in snapshot.usage.items()}
        usage.update(snapshot.usage_by_model.items())
        # What started in this very instant counts in full.
        fresh = [g for g in origin.gangs.values() if g.run and g.run.started == drive.now]
        started = Books(drive.nodes, drive.queues, fresh).now
        for key in {*usage, *started.model, *((queue, None) for queue in started.queue)}:
            queue, model = key
            more = started.queue[queue] if model is None else started.model[queue, model]
            usage[key] = usage.get(key, 0.0) + more
        counted = Books(drive.nodes, drive.queues, origin.gangs.values()).later
    gangs = dict(drive.gangs)
    return Standing(
        drive.nodes,
        drive.queues,
        gangs,
        drive.now,
        drive.changed,
        usage,
        counted,
        drive.foreign,
    )


def check_topology(drive: Drive, gang: Gang) -> None:
    """All of it in one required domain, and each part in one of its own."""
    topology, placement = gang.topology, gang.placement or ()
    check_together(drive, topology.required, placement)
    if topology.part_size:
        for start in range(0, len(placement), topology.part_size):
            part = placement[start : start + topology.part_size]
            check_together(drive, topology.part_required, part)


def check_together(drive: Drive, level: str | None, names: Sequence[str]) -> None:
    nodes = [drive.nodes[name] for name in names if name in drive.nodes]
    if level in {"block", "rack", "node"} and nodes:
        assert level == "node" or all(level in node.labels for node in nodes)
        assert 1 == len({domain_of(node, level) for node in nodes})


def check_ranks_follow_topology(drive: Drive, gang: Gang) -> None:
    """The minimum's replicas of one domain are neighbours."""
    topology = gang.topology
    order = ["block", "rack", "node"]
    outer = order
    if topology.part_size:
        outer = order[: order.index(topology.part_required or "") + 1]
        outer = [level for level in outer if level != "node"]
    nodes = [drive.nodes[name] for name in (gang.placement or ())[: gang.min_replicas]]
    for level in outer:
        rows = [key for key, _ in groupby(domain_of(node, level) for node in nodes)]
        assert len(rows) == len(set(rows)), f"the replicas of a {level} are not neighbours"
