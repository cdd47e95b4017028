"""Which jobs hang together: claimants with those who leave for them, jobs with those after them.

Nothing here is decided, and all of it follows from the jobs' own objects.
"""

from collections.abc import Iterable, Mapping

from muster.claims import Claim, Departure
from muster.job_status import JobStatus


class Ties:
    """Each call costs what it changes. Jobs go by key."""

    def __init__(self) -> None:
        self._claims: dict[str, Claim] = {}
        self._claimants: dict[str, dict[str, None]] = {}
        """Of each victim, in the order in which they came."""
        self._before: dict[str, str] = {}
        self._after: dict[str, dict[str, None]] = {}

    def claim(self, key: str, claim: Claim | None) -> list[str]:
        """Take in what *key* claims; the jobs for which that changes something."""
        before = self._claims.get(key)
        if before == claim:
            return []
        old, new = _named(before), _named(claim)
        for victim in old - new:
            self._claimants[victim].pop(key)
            if not self._claimants[victim]:
                del self._claimants[victim]
        for victim in new - old:
            self._claimants.setdefault(victim, {})[key] = None
        if claim is None:
            del self._claims[key]
        else:
            self._claims[key] = claim
        return sorted(old | new)

    def departures(self, key: str, uid: str, status: JobStatus) -> tuple[Departure, ...]:
        """For whom the job has to leave, in the attempt that it is in."""
        placement = status.placement
        if placement is None or key not in self._claimants:
            return ()
        found: list[Departure] = []
        for claimant in sorted(self._claimants[key]):
            for ask, asked in self._claims[claimant].victims():
                if (asked.job, asked.uid, asked.attempt) != (key, uid, placement.attempt):
                    continue
                ranks = asked.ranks
                if ranks is not None:
                    ranks = tuple(rank for rank in ranks if rank < len(placement.nodes))
                    if not ranks or ask.id in placement.yielded:
                        continue
                found.append(Departure(ask.id, claimant, ranks, ask.deadline))
        return tuple(found)

    def comes_after(self, key: str, other: str | None) -> None:
        """Note that *key* waits for the success of *other*, if for any."""
        before = self._before.pop(key, None)
        if before is not None:
            self._after[before].pop(key)
            if not self._after[before]:
                del self._after[before]
        if other is not None:
            self._before[key] = other
            self._after.setdefault(other, {})[key] = None

    def predecessors(self) -> Mapping[str, str]:
        """The job after which each job comes that comes after one."""
        return dict(self._before)

    def followers(self, key: str) -> Iterable[str]:
        """Who waits for the success of *key*."""
        return tuple(self._after.get(key, ()))


def _named(claim: Claim | None) -> set[str]:
    return set() if claim is None else {asked.job for _, asked in claim.victims()}
