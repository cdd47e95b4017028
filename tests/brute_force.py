"""The right choice on clusters that are small enough to try everything."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from entitlements import Judge, Standing, work_lost
from feasible import fits
from muster.scheduling.plan import Preempt, Right, Victim
from muster.scheduling.snapshot import Gang
from muster.scheduling.tree import natural

MOST_SETS = 600


def victim_sets(standing: Standing, claimant: Gang) -> Iterator[tuple[Victim, ...]]:
    """Every set that might leave for it: each other gang whole, or some of its highest ranks."""
    choices = [
        _of_one(gang)
        for gang in standing.gangs.values()
        if gang.key != claimant.key and gang.placement is not None and gang.is_preemptible
    ]
    for combination in product(*choices):
        yield tuple(victim for victim in combination if victim is not None)


def _of_one(gang: Gang) -> list[Victim | None]:
    size = len(gang.placement or ())
    surplus = 0 if gang.lost or gang.finished else size - gang.min_replicas
    highest = [tuple(range(size - taken, size)) for taken in range(1, surplus + 1)]
    ranks: list[tuple[int, ...] | None] = [*highest, None]
    return [None, *(Victim(gang.key, some, Right.PRIORITY, 0) for some in ranks)]


def number_of_sets(standing: Standing, claimant: Gang) -> int:
    number = 1
    for gang in standing.gangs.values():
        if gang.key != claimant.key and gang.placement is not None and gang.is_preemptible:
            number *= len(_of_one(gang))
    return number


def rank_of(standing: Standing, victims: Sequence[Victim], restart: float) -> tuple[object, ...]:
    """What sets are compared by, in the order of `scheduling.md`; less is better."""
    gangs = [standing.gangs[victim.gang] for victim in victims]
    pairs = list(zip(victims, gangs, strict=True))
    lost = sum(work_lost(gang, victim.ranks, standing.now, restart) for victim, gang in pairs)
    freed = sum(
        gang.needs.gpus * (gang.running if victim.ranks is None else len(victim.ranks))
        for victim, gang in pairs
    )
    return (
        lost,
        len(victims),
        freed,
        sorted((gang.priority for gang in gangs), reverse=True),
        sorted(-(gang.run.started if gang.run else 0.0) for gang in gangs),
        sorted((natural(gang.key), gang.key) for gang in gangs),
    )


def allowed_sets(standing: Standing, claimant: Gang) -> Iterator[tuple[Victim, ...]]:
    """The sets with which it starts, each victim by some right."""
    for victims in victim_sets(standing, claimant):
        left = standing.without(victims)
        if not fits(left.gangs[claimant.key], left.books(), now=False):
            continue
        deed = Preempt(claimant.key, ("",) * claimant.min_replicas, victims, "")
        if Judge(standing, deed).allows():
            yield victims


def could_start(standing: Standing, claimant: Gang) -> tuple[Victim, ...] | None:
    """Some set, maybe nobody, whose leaving lets it start."""
    return next(allowed_sets(standing, claimant), None)


def cheapest(standing: Standing, claimant: Gang, restart: float) -> tuple[Victim, ...] | None:
    return min(
        allowed_sets(standing, claimant),
        key=lambda victims: rank_of(standing, victims, restart),
        default=None,
    )


def ended_by(standing: Standing, end: float) -> Standing:
    """What is left when everybody has ended who says so."""
    return replace(
        standing,
        gangs={
            key: replace(gang, placement=None) if ends(gang, standing.now) <= end else gang
            for key, gang in standing.gangs.items()
        },
    )


def ends(gang: Gang, now: float) -> float:
    """When a running gang ends by what it declared or reports; endless where it is overdue."""
    if gang.placement is None or gang.run is None:
        return float("inf")
    said = [] if gang.run.eta is None else [gang.run.eta]
    if gang.max_run_time is not None:
        said.append(gang.run.started + gang.max_run_time - gang.ran)
    end = min(said, default=float("inf"))
    return end if end > now else float("inf")
