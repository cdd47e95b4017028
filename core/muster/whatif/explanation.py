"""Why a job waits, when it will start, and what would start it now."""

from collections.abc import Callable
from dataclasses import dataclass

from muster.scheduling.cluster import Objects
from muster.scheduling.plan import Victim
from muster.scheduling.policy import Policy
from muster.simulation.forecast import UNFORESEEN
from muster.whatif.changes import Change, changes_in
from muster.whatif.dry_run import foreseen
from muster.whatif.trying import Trying, Variant

PLACED = "Placed"
"""The code of a job that holds its nodes, or gets them in the next cycle: nothing keeps it."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """All about one job."""

    code: str
    message: str
    position: int | None
    """Its place in its queue, from 1, while it waits."""
    predicted_start: float | None
    """Seconds since the epoch; `None` where nobody can know."""
    waits_for: str
    """The job whose end makes it start; empty where none does, or it is not known."""
    changes: tuple[Change, ...] = ()
    victims: tuple[Victim, ...] = ()
    """Who leaves for it, where it starts in the next cycle."""
    is_complete: bool = True
    """Whether all changes were tried."""


def explained(
    objects: Objects,
    policy: Policy,
    now: float,
    key: str,
    goes_on: Callable[[], bool] = lambda: True,
) -> Explanation | None:
    """Why the gang *key* waits; `None` where the scheduler does not know it. Changes are looked
    for as long as *goes_on* says so.
    """
    trying = Trying(objects, policy, now)
    gang = trying.gangs.get(key)
    if gang is None:
        return None
    if gang.placement is not None:
        started = gang.run.started if gang.run else None
        return Explanation(PLACED, f"it holds {gang.running} replicas", None, started, "")
    asked = Variant(gang)
    start = trying.start(asked)
    if start is not None:
        notice = policy.notice if start.victims else 0.0
        return Explanation(PLACED, start.why, None, now + notice, "", victims=start.victims)
    wait = trying.wait(asked)
    assert wait is not None, "a gang that does not start waits"
    then = foreseen(objects, policy, now).get(key, UNFORESEEN)
    search = Trying(objects, policy, now, goes_on=goes_on)
    found = changes_in(search, key)
    return Explanation(
        code=wait.reason,
        message=wait.message,
        position=wait.position,
        predicted_start=wait.predicted_start if then.starts is None else then.starts,
        waits_for=then.waits_for or wait.waits_for,
        changes=found,
        is_complete=not search.gave_up,
    )
