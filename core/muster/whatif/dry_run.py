"""What would become of a job that is not submitted yet: start or wait, at whose cost.

The cluster is planned and foreseen twice, without the job and with it. What differs is what the
job does to others: who has to leave and how much work that costs, and whose start moves.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from muster.scheduling.cluster import Cluster, Objects
from muster.scheduling.plan import Victim, Wait, WaitReason
from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import Gang
from muster.simulation.forecast import UNFORESEEN, Forecast, forecast
from muster.whatif.trying import Start, Trying, Variant, start_in, wait_in

_NEVER = frozenset({WaitReason.NEVER_FITS, WaitReason.NO_MATCHING_NODES})
_FULL_LOOK = 2_000
"""Objects up to which a forecast looks at a thousand instants; beyond it at fewer, so that an
answer stays one that somebody can wait for."""


class Verdict(StrEnum):
    """What becomes of the job."""

    STARTS = "starts"
    """Now; where somebody leaves for it, once they have saved their work."""
    WAITS = "waits"
    NEVER = "never"
    """It fits neither the empty cluster nor its limits."""


@dataclass(frozen=True, slots=True)
class Delay:
    """A job that starts later because of this one. Seconds since the epoch, `None` is unknown."""

    gang: str
    before: float | None
    after: float | None


@dataclass(frozen=True, slots=True)
class DryRun:
    """The outcome."""

    verdict: Verdict
    reason: WaitReason | None
    """Why it waits."""
    message: str
    """The place, or the reason, in words."""
    position: int | None
    """Its place in its queue, while it waits."""
    predicted_start: float | None
    waits_for: str
    """The job whose end makes it start."""
    placement: tuple[str, ...]
    """Node of each replica, where it starts now."""
    victims: tuple[Victim, ...]
    delayed: tuple[Delay, ...]


def dry_run(objects: Objects, policy: Policy, now: float, gang: Gang) -> DryRun:
    """What would become of *gang*, submitted at *now*."""
    return dry_run_in(Trying(objects, policy, now), gang, policy)


def dry_run_in(trying: Trying, gang: Gang, policy: Policy) -> DryRun:
    """The same for a cluster that is being tried already; *policy* is the real one."""
    objects, now = trying.objects, trying.now
    variant = Variant(gang)
    plan = trying.plan(variant, with_reasons=True)
    start, wait = start_in(plan, gang.key), wait_in(plan, gang.key)
    before = foreseen(objects, policy, now)
    settled = trying.settled(variant)
    after = foreseen(settled or variant.made_in(objects), policy, now)
    outcome = _outcome(start, wait, after.get(gang.key, UNFORESEEN), policy, now)
    if settled is None:
        return outcome
    return replace(outcome, delayed=_delays(before, after, _evicted(start), now, gang.key))


def foreseen(objects: Objects, policy: Policy, now: float) -> Mapping[str, Forecast]:
    """When each pending gang starts."""
    size = len(objects.gangs) + len(objects.nodes)
    most = max(20, 1_000 * _FULL_LOOK // max(size, _FULL_LOOK))
    return forecast(Cluster.restored(objects), policy, now, most_instants=most)


def _evicted(start: Start | None) -> tuple[str, ...]:
    """Who leaves whole for it."""
    victims = start.victims if start is not None else ()
    return tuple(victim.gang for victim in victims if victim.ranks is None)


def _outcome(
    start: Start | None, wait: Wait | None, then: Forecast, policy: Policy, now: float
) -> DryRun:
    if start is not None:
        notice = policy.notice if start.victims else 0.0
        return DryRun(
            verdict=Verdict.STARTS,
            reason=None,
            message=start.why,
            position=None,
            predicted_start=now + notice,
            waits_for="",
            placement=start.nodes,
            victims=start.victims,
            delayed=(),
        )
    reason = wait.reason if wait else None
    is_never = reason in _NEVER
    return DryRun(
        verdict=Verdict.NEVER if is_never else Verdict.WAITS,
        reason=reason,
        message=wait.message if wait else "",
        position=wait.position if wait else None,
        predicted_start=None if is_never else then.starts,
        waits_for=then.waits_for,
        placement=(),
        victims=(),
        delayed=(),
    )


def _delays(
    before: Mapping[str, Forecast],
    after: Mapping[str, Forecast],
    evicted: Iterable[str],
    now: float,
    own: str,
) -> tuple[Delay, ...]:
    """Who starts later than without the job, or nobody knows when any more. *after* knows those
    that still wait when all decisions of now are carried out; the others have started.
    """
    starts = {key: each.starts for key, each in before.items()} | dict.fromkeys(evicted, now)
    found = []
    for key in sorted(starts.keys() & after.keys() - {own}):
        was, then = starts[key], after[key].starts
        if was is not None and (then is None or then > was):
            found.append(Delay(key, was, then))
    return tuple(found)
