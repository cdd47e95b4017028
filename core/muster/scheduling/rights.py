"""Whom a gang may take capacity from, and how much of it.

By priority inside its own queue; by reclaim from other queues, within its guarantee or as long as
it stays at or below the share of the queue it takes from; by reservation from what started behind
it. Rights to reclaim depend on the whole set of victims, so they are judged for sets: `Claims.of`
gives each victim its right, or says that the set is not allowed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from muster.scheduling.amounts import taken_by
from muster.scheduling.fair_share import Shares, Stake
from muster.scheduling.holders import Holder, Roster
from muster.scheduling.movable import Movables, movables_of
from muster.scheduling.order import level_of
from muster.scheduling.plan import Right
from muster.scheduling.policy import Policy
from muster.scheduling.quota import Quotas
from muster.scheduling.snapshot import Gang, Order, Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class Option:
    """Something that one holder could be made to give: all of it, or its highest ranks."""

    holder: Holder
    ranks: tuple[int, ...] | None
    """Surplus ranks; `None` means the whole gang."""
    spread: Mapping[int, int]
    """The replicas that leave, by node."""
    gpus: int
    """Of the model that the claimant is judged on."""
    price: float
    """The work that is lost."""
    each: tuple[int, int, int, int]
    """What one of its replicas holds."""
    free_right: Right | None
    """The right that holds whatever else leaves; `None` where it has to be reclaimed."""

    @property
    def all_gpus(self) -> int:
        """GPUs of any model."""
        number = self.holder.replicas if self.ranks is None else len(self.ranks)
        return number * self.holder.gang.needs.gpus

    def is_more_than(self, other: "Option | None") -> bool:
        """Whether it takes what the other one of the same holder takes, and more."""
        if other is None:
            return True
        if other.ranks is None:
            return False
        return self.ranks is None or len(self.ranks) > len(other.ranks)


@dataclass(frozen=True, slots=True)
class Claimant:
    """A gang that asks for capacity that others hold."""

    gang: Gang
    gpus: int
    """What it takes in all."""
    model: str | None
    """The GPU model that it is judged on."""
    now: float
    rank: float = 0.0
    """Its place by the queue's order: its level, or the seconds that remain."""
    may_share: bool = True
    """False where only the guarantee gives it anything: growth."""
    surplus_only: bool = False
    """It never takes a gang's minimum: growth."""
    waives_share: bool = False
    """For an explanation: as if the share rule alone did not exist."""


class Claims:
    """The rights of one claimant over the holders of a trial."""

    def __init__(
        self,
        claimant: Claimant,
        snapshot: Snapshot,
        shares: Shares,
        policy: Policy,
        took: frozenset[tuple[str, str]],
        *,
        own_relief: int,
        behind: Sequence[Holder],
    ) -> None:
        """*took* is `taken_at_reserved_times` of the snapshot; *own_relief* is how many GPUs might
        leave the claimant's own queue for it, at most; *behind* are those who started
        behind its reservation.
        """
        self.claimant = claimant
        self._models = snapshot.columns.models
        self._quotas: Quotas = snapshot.quotas
        self._shares = shares
        self._policy = policy
        self._took = took
        self._own_relief = own_relief
        self._behind: dict[str, list[Holder]] = {}
        for holder in behind:
            self._behind.setdefault(holder.queue, []).append(holder)
        self._reliefs: dict[str, int] = {}
        self._open: dict[tuple[str, Stake], bool] = {}
        self._reclaimable: dict[str, bool] = {}
        gang, changed = claimant.gang, snapshot.changed
        displaced = gang.displaced
        self._untouchable = displaced.by if displaced and displaced.at >= changed else ""

    def concerns(self, queue: str) -> bool:
        """Whether anything that the jobs of a queue hold may be taken; a quick first look."""
        return (
            queue == self.claimant.gang.queue or queue in self._behind or self._may_reclaim(queue)
        )

    def concerned(self, queue: str, roster: Roster) -> Iterable[Holder]:
        """The holders of a queue that anything may be taken from, and perhaps some others."""
        if queue == self.claimant.gang.queue:
            is_all = bool(self._own_reach(roster.kept(queue, movables_of)))
        else:
            is_all = self._may_reclaim(queue)
        return roster.of_queue(queue) if is_all else self._behind.get(queue, ())

    def within_reach(self, queue: str, movables: Mapping[int, Movables]) -> list[Movables]:
        """Of what a queue holds, what might be taken."""
        if queue != self.claimant.gang.queue and self._may_reclaim(queue):
            return list(movables.values())
        behind = movables_of(self._behind.get(queue, ()))
        own = self._own_reach(movables) if queue == self.claimant.gang.queue else ()
        return [*own, *behind.values()]

    def _own_reach(self, movables: Mapping[int, Movables]) -> list[Movables]:
        """Those of its own queue that it may preempt, or take surplus from."""
        claimant = self.claimant
        queue = claimant.gang.queue
        known = self._quotas.queues.get(queue)
        preempts = known is not None and known.order is not Order.FIFO
        return [
            group
            for priority, group in movables.items()
            if priority < claimant.gang.priority
            or (priority == claimant.gang.priority and (preempts or group.has_surplus))
        ]

    def most_from(self, queue: str, groups: Iterable[Movables]) -> tuple[str, int, float]:
        """GPUs that might leave a queue, at most; with a name for the one of its lineage that is
        compared with the claimant's, and how many might leave that one.
        """
        groups = list(groups)
        most = sum(group.gpus for group in groups)
        if queue == self.claimant.gang.queue or queue in self._behind:
            return "", most, inf
        largest = max((group.most_gpus for group in groups), default=0)
        model, shares = self.claimant.model, self._shares
        common, ours, theirs = self.rivals(queue)
        for name in shares.path_below(queue, common):
            counted, guaranteed = shares.basis(name, model)
            if counted == model or model is None:
                above = shares.held(name, counted) - guaranteed
                most = min(most, above - 1 + largest)
        cap = inf
        if not self.claimant.waives_share and not self._might_be_guaranteed(common, ours):
            share = shares.stake_share(ours, model, self.claimant.gpus - self._relief(ours.queue))
            cap = shares.may_lose(theirs, model, share)
        return f"{common}/{theirs.queue}/{theirs.is_own}", most, cap

    def options(self, holder: Holder) -> list[Option]:
        """What a holder may have to give: surplus from the highest rank on, then all of it."""
        claimant = self.claimant
        if (
            not holder.gang.is_preemptible
            or holder.is_asked
            or holder.key in (self._untouchable, claimant.gang.key)
        ):
            return []
        is_own = holder.queue == claimant.gang.queue
        may_reclaim = not is_own and self._may_reclaim(holder.queue)
        found = []
        right = self._right_to_surplus(holder, is_own=is_own)
        if right is not None or may_reclaim:
            most = len(holder.nodes)
            found += [
                self._option(holder, tuple(range(most - number, most)), right)
                for number in range(1, holder.surplus + 1)
            ]
        right = self._right_to_all(holder, is_own=is_own)
        is_open = not claimant.surplus_only and not self._is_shielded(holder)
        if is_open and (right is not None or may_reclaim):
            found.append(self._option(holder, None, right))
        return found

    def of(self, options: Sequence[Option]) -> list[Right] | None:
        """The right to each of the options, taken together; `None` if one of them has none."""
        reclaimed = [option for option in options if option.free_right is None]
        leaving: Mapping[str, int] = self._leaving(options) if reclaimed else {}
        rights = []
        for option in options:
            right = option.free_right
            if right is None:
                right = self._reclaim(option, leaving)
            if right is None:
                return None
            rights.append(right)
        return rights

    def _may_reclaim(self, queue: str) -> bool:
        """Whether the victim's queue is above its guarantee now, at every level below the common
        ancestor (with others gone it only gets less), and the claimant within its guarantee or not
        above that queue's share.
        """
        found = self._reclaimable.get(queue)
        if found is None:
            found = self._reclaimable[queue] = self._works_out(queue)
        return found

    def _works_out(self, queue: str) -> bool:
        common, ours, theirs = self.rivals(queue)
        claimant, shares = self.claimant, self._shares
        return self._is_open_stake(common, ours, theirs) and not any(
            shares.within_guarantee(name, claimant.model, 0)
            for name in shares.path_below(queue, common)
        )

    def _is_open_stake(self, common: str, ours: Stake, theirs: Stake) -> bool:
        found = self._open.get((common, theirs))
        if found is None:
            found = self._open[common, theirs] = self._is_open(common, ours, theirs)
        return found

    def _is_open(self, common: str, ours: Stake, theirs: Stake) -> bool:
        """Whether anything might be reclaimed from a branch of the tree of queues."""
        claimant, shares, model = self.claimant, self._shares, self.claimant.model
        if not theirs.is_own and shares.within_guarantee(theirs.queue, model, 0):
            return False
        if claimant.waives_share:
            return True
        if self._might_be_guaranteed(common, ours):
            return True
        if not claimant.may_share:
            return False
        share = shares.stake_share(ours, model, claimant.gpus - self._relief(ours.queue))
        return share <= shares.stake_share(theirs, model)

    def _might_be_guaranteed(self, common: str, ours: Stake) -> bool:
        """Whether the claimant is within its guarantee, if all leaves its branch that might."""
        claimant, shares = self.claimant, self._shares
        return not ours.is_own and all(
            shares.within_guarantee(name, claimant.model, claimant.gpus - self._relief(name))
            for name in shares.path_below(claimant.gang.queue, common)
        )

    def _relief(self, name: str) -> int:
        """GPUs that might leave a queue above the claimant's, or its own, at most."""
        found = self._reliefs.get(name)
        if found is None:
            found = self._reliefs[name] = self._relief_of(name)
        return found

    def _relief_of(self, name: str) -> int:
        lineage = self._quotas.lineage(self.claimant.gang.queue)
        place = lineage.index(name)
        if not place:
            return self._own_relief
        below, shares = lineage[place - 1], self._shares
        relief = self._relief(below)
        rest = shares.held(name, None) - shares.held(below, None)
        for child in shares.children(name):
            if child != below:
                held = shares.held(child, None)
                rest -= held
                if self._is_open_stake(name, Stake(below), Stake(child)):
                    relief += held
        # What is left are the jobs of the queue itself.
        return relief + rest

    def rivals(self, queue: str) -> tuple[str, Stake, Stake]:
        """The common ancestor with a victim's queue, and the two that are compared."""
        return self._shares.rivals(self.claimant.gang.queue, queue)

    def _option(
        self, holder: Holder, ranks: tuple[int, ...] | None, right: Right | None
    ) -> Option:
        price = 0.0
        if ranks is None:
            price = holder.work_lost(self._policy, self.claimant.now)
        spread, model = holder.spread(ranks), self.claimant.model
        if model is None:
            number = holder.replicas if ranks is None else len(ranks)
        else:
            number = sum(n for node, n in spread.items() if self._models[node] == model)
        needs = holder.gang.needs
        return Option(holder, ranks, spread, number * needs.gpus, price, taken_by(needs), right)

    def _right_to_surplus(self, holder: Holder, *, is_own: bool) -> Right | None:
        claimant = self.claimant.gang
        if self.claimant.surplus_only:
            return None
        if claimant.key in (*holder.run.behind, *holder.run.grown_behind):
            return Right.RESERVATION
        if is_own and holder.gang.priority <= claimant.priority:
            return Right.SURPLUS
        return None

    def _right_to_all(self, holder: Holder, *, is_own: bool) -> Right | None:
        claimant = self.claimant.gang
        if is_own and (
            holder.gang.priority < claimant.priority
            or (holder.gang.priority == claimant.priority and self._goes_before(holder))
        ):
            return Right.PRIORITY
        return Right.RESERVATION if claimant.key in holder.run.behind else None

    def _goes_before(self, holder: Holder) -> bool:
        """Whether the order of the queue itself lets the claimant preempt one of its priority."""
        queue = self._quotas.queues.get(holder.queue)
        match queue.order if queue else Order.FIFO:
            case Order.ATTAINED_SERVICE:
                return self.claimant.rank < level_of(attained_by(holder, self.claimant.now))
            case Order.SHORTEST_REMAINING:
                return self.claimant.rank < holder.ends(self.claimant.now) - self.claimant.now
        return False

    def _is_shielded(self, holder: Holder) -> bool:
        return not holder.is_fresh and shield_ends(holder, self._quotas) > self.claimant.now

    def _leaving(self, options: Iterable[Option]) -> dict[str, int]:
        """GPUs that leave each queue, those below it included."""
        leaving: dict[str, int] = {}
        for option in options:
            for name in self._quotas.lineage(option.holder.queue):
                leaving[name] = leaving.get(name, 0) + option.gpus
        return leaving

    def _reclaim(self, option: Option, leaving: Mapping[str, int]) -> Right | None:
        # With all other victims gone, this one still in its queue.
        others = {
            name: leaving[name] - option.gpus for name in self._quotas.lineage(option.holder.queue)
        }
        return self.reclaim(option, leaving, others)

    def reclaim(
        self, option: Option, leaving: Mapping[str, int], others: Mapping[str, int]
    ) -> Right | None:
        """The right to reclaim an option, when so many GPUs leave each queue with it, and so many
        *others* without whichever option leaves the most behind.
        """
        model = self.claimant.model
        common, ours, theirs = self.rivals(option.holder.queue)
        for name in self._shares.path_below(option.holder.queue, common):
            if self._shares.within_guarantee(name, model, -others[name]):
                return None
            if self.claimant.surplus_only and self._sinks(name, leaving[name]):
                return None
        gang, gpus = self.claimant.gang, self.claimant.gpus
        if not ours.is_own and all(
            self._shares.within_guarantee(name, model, gpus - leaving.get(name, 0))
            for name in self._shares.path_below(gang.queue, common)
        ):
            return Right.GUARANTEE
        if not self.claimant.may_share or (gang.queue, option.holder.queue) in self._took:
            return None
        if self.claimant.waives_share:
            return Right.SHARE
        share = self._shares.stake_share(ours, model, gpus - self._of_stake(ours, leaving))
        if share == inf:
            return None
        after = self._shares.stake_share(theirs, model, -self._of_stake(theirs, leaving))
        return Right.SHARE if share <= after else None

    def _sinks(self, queue: str, leaving: int) -> bool:
        """Whether the queue would be below its guarantee."""
        counted, guaranteed = self._shares.basis(queue, self.claimant.model)
        return self._shares.held(queue, counted) - leaving < guaranteed

    def _of_stake(self, stake: Stake, leaving: Mapping[str, int]) -> int:
        whole = leaving.get(stake.queue, 0)
        if not stake.is_own:
            return whole
        return whole - sum(leaving.get(c, 0) for c in self._shares.children(stake.queue))


def attained_by(holder: Holder, now: float) -> float:
    """GPU-seconds that a running gang has held so far, earlier runs included."""
    return holder.gang.attained + holder.gpus * max(now - holder.started, 0.0)


def shield_ends(holder: Holder, quotas: Quotas) -> float:
    """Until when nobody may evict a holder."""
    queue = quotas.queues.get(holder.queue)
    least = queue.min_run_time if queue else 0.0
    return holder.started + least if least > 0 else -inf
