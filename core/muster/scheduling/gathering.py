"""Victims gathered where there are too many sets to look at all of them.

In each domain where the gang could go: room under limits first, then the node where one replica
more costs least, again and again until the gang fits; a gang of parts takes the cheapest in turn
instead. Then each victim is tried for giving back, the dearest first. The result may cost more
work than the best set, but it holds no victim that it does not need, and breaks no right.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from math import inf

from muster.scheduling.amounts import GPUS, taken_by
from muster.scheduling.budget import Budget
from muster.scheduling.fit import Mask
from muster.scheduling.ground import Ground
from muster.scheduling.placement import Run, find, settle
from muster.scheduling.plan import Right
from muster.scheduling.quota import Quotas
from muster.scheduling.rights import Claims, Option
from muster.scheduling.room import Field
from muster.scheduling.tree import natural

_LOOKED_AT_AGAIN = 256
"""Victims that are tried for giving back where each takes a look at all nodes."""


@dataclass(frozen=True, slots=True)
class Scheme:
    """A set of victims, each with the right to it, and where the gang goes then."""

    options: tuple[Option, ...]
    rights: tuple[Right, ...]
    runs: tuple[Run, ...]


def scheme_of(options: Sequence[Option], rights: Sequence[Right], ground: Ground) -> Scheme | None:
    """The scheme of a set of victims; `None` if the gang has no place with it."""
    field = ground.field(options)
    if field.total < ground.request.replicas:
        return None
    spot = find(field, ground.request, ground.ties)
    if spot is None:
        return None
    runs = settle(field, ground.request, spot, ground.ties)
    return Scheme(tuple(options), tuple(rights), runs)


def gathered(
    choices: Sequence[Sequence[Option]],
    claims: Claims,
    ground: Ground,
    quotas: Quotas,
    most: Field,
) -> Iterator[Scheme]:
    """A scheme for each domain in which one was found; *most* is the room at most."""
    gains = most.counts[-1] > ground.field(()).counts[-1]
    for domain in ground.domains(most):
        near = [_Unit(options) for options in choices if ground.is_near(options[-1], domain)]
        near.sort(key=lambda unit: unit.worth)
        gathering = _Gathering(claims, ground, quotas, domain)
        gathering.make_limit_room(near)
        if ground.is_plain:
            gathering.node_by_node(near, gains)
        else:
            gathering.one_by_one(near)
        scheme = gathering.settled()
        if scheme is not None:
            yield scheme


class _Unit:
    """One holder, and what is taken of it."""

    def __init__(self, options: Sequence[Option]) -> None:
        self.options = options
        self.taken: Option | None = None
        holder, first = options[-1].holder, options[0]
        self.queue = holder.queue
        self.worth = (
            first.price / max(first.all_gpus, 1),
            holder.gang.priority,
            -holder.started,
            natural(holder.key),
            holder.key,
        )

    def next(self, than: Option | None) -> Option | None:
        """The least option beyond another one."""
        return next((option for option in self.options if option.is_more_than(than)), None)

    def next_on(self, node: int, than: Option | None) -> Option | None:
        """The least option beyond another one that frees more on a node."""
        before = 0 if than is None else than.spread.get(node, 0)
        for option in self.options:
            if option.spread.get(node, 0) > before and option.is_more_than(than):
                return option
        return None


_Cost = tuple[float, int, tuple[float, ...], int]
"""Work lost and jobs disturbed for one replica more, latest starts, the node."""


class _Gathering:
    """Victims gathered for one domain."""

    def __init__(
        self, claims: Claims, ground: Ground, quotas: Quotas, domain: tuple[int, int]
    ) -> None:
        self._claims = claims
        self._ground = ground
        self._budget = Budget(claims, quotas)
        self._first, self._end = domain
        self._units: list[_Unit] = []
        self._refused: dict[str, int] = {}
        """GPUs that a queue did not give for one replica."""
        self._needs = [(r, a) for r, a in enumerate(taken_by(ground.question.needs)) if a]
        self._free: dict[int, list[int]] = {}
        counts = ground.field(()).counts[-1]
        self._room = int(counts[self._first : self._end].sum())

    def make_limit_room(self, units: Sequence[_Unit]) -> None:
        """Take the cheapest that leave room under limits which the gang would pass."""
        for unit in units:
            while not self._ground.keeps_limits(self._options):
                option = unit.next(unit.taken)
                if option is None or not self._ground.relieves(option):
                    break
                if not self._take(unit, option):
                    break

    def node_by_node(self, units: Sequence[_Unit], gains: Mask) -> None:
        """Free the node where the next replica costs least, again and again, of those that could
        take more than now.
        """
        on_node: dict[int, list[_Unit]] = {}
        cheapest: dict[int, float] = {}
        for unit in units:
            for node in unit.options[-1].spread:
                if self._first <= node < self._end and gains[node]:
                    on_node.setdefault(node, []).append(unit)
                    # The units come in the order of what a GPU of theirs costs.
                    cheapest.setdefault(node, unit.worth[0])
        # A node is looked at closely only when no other can be cheaper.
        costs: list[_Cost] = [
            (price * self._lacking(node), 0, (), node) for node, price in cheapest.items()
        ]
        heapify(costs)
        while self._room < self._ground.request.replicas and costs:
            cost = heappop(costs)
            node = cost[-1]
            actual, parts = self._cost(node, on_node[node])
            if actual is None:
                continue
            if actual <= cost:
                self._take_all(parts)
                actual, _ = self._cost(node, on_node[node])
            if actual is not None:
                heappush(costs, actual)

    def _lacking(self, node: int) -> int:
        """GPUs that have to come free on a node for one replica more."""
        free = self._ground.free[GPUS, node]
        each = self._ground.question.needs.gpus
        return int(each - free % each) if each and free > 0 else each

    def one_by_one(self, units: Sequence[_Unit]) -> None:
        """Take the cheapest in turn, as few as will do."""
        steps = [(unit, unit.taken) for unit in self._units if unit.taken is not None]
        least = len(steps)
        for unit in units:
            option = unit.next(unit.taken)
            while option is not None and self._take(unit, option):
                steps.append((unit, option))
                option = unit.next(option)
        most = len(steps)
        while least < most:
            middle = (least + most) // 2
            self._keep(steps[:middle])
            if self._ground.fits(self._options) and self._ground.keeps_limits(self._options):
                most = middle
            else:
                least = middle + 1
        self._keep(steps[:most])

    def settled(self) -> Scheme | None:
        """The set without whoever is not needed, if it makes room and every right holds."""
        options = self._options
        if not self._ground.keeps_limits(options) or not self._ground.fits(options):
            return None
        self._give_back()
        options = self._options
        rights = self._claims.of(options)
        return None if rights is None else scheme_of(options, rights, self._ground)

    @property
    def _options(self) -> list[Option]:
        return [unit.taken for unit in self._units if unit.taken is not None]

    def _keep(self, steps: Sequence[tuple[_Unit, Option]]) -> None:
        for unit in self._units:
            self._put(unit, None)
        for unit, option in steps:
            self._put(unit, option)

    def _give_back(self) -> None:
        order = sorted(self._units, key=lambda unit: unit.worth, reverse=True)
        if not self._ground.is_plain:
            order = order[:_LOOKED_AT_AGAIN]
        for unit in order:
            taken = unit.taken
            if taken is None:
                continue
            lesser = [option for option in unit.options if taken.is_more_than(option)]
            for instead in (None, *lesser):
                if self._is_enough(unit, instead):
                    self._put(unit, instead)
                    break

    def _is_enough(self, unit: _Unit, instead: Option | None) -> bool:
        """Whether the rest will do, with less of one victim or without it."""
        before, room = unit.taken, self._room
        self._put(unit, instead)
        enough = room_is_left = self._room >= self._ground.request.replicas
        if room_is_left and not self._ground.is_plain:
            enough = self._ground.fits(self._options)
        enough = enough and self._ground.keeps_limits(self._options)
        self._put(unit, before)
        assert self._room == room
        return enough

    def _cost(
        self, node: int, units: Sequence[_Unit]
    ) -> tuple[_Cost | None, list[tuple[_Unit, Option]]]:
        """The cheapest way to one replica more on a node."""
        free = self._amounts(node)
        more = self._replicas(free) + 1
        # What is lacking of each resource; nothing where it is not positive.
        lacking = {resource: more * amount - free[resource] for resource, amount in self._needs}
        parts: list[tuple[_Unit, Option]] = []
        asked: dict[str, int] = {}
        for unit in units:
            option = unit.taken
            while any(amount > 0 for amount in lacking.values()):
                following = unit.next_on(node, option)
                if following is None or self._is_too_much(unit, following, option, asked):
                    break
                _lessen(lacking, following, option, node)
                option = following
            if option is not unit.taken:
                assert option is not None
                parts.append((unit, option))
            if all(amount <= 0 for amount in lacking.values()):
                break
        if any(amount > 0 for amount in lacking.values()):
            return None, []
        needed = []
        for unit, option in reversed(parts):
            without = dict(lacking)
            _lessen(without, unit.taken, option, node)
            if all(amount <= 0 for amount in without.values()):
                lacking = without
            else:
                needed.append((unit, option))
        price = sum(o.price - (u.taken.price if u.taken else 0.0) for u, o in needed)
        starts = tuple(sorted(-option.holder.started for _, option in needed))
        return (price, len(needed), starts, node), needed

    def _is_too_much(
        self, unit: _Unit, option: Option, than: Option | None, asked: dict[str, int]
    ) -> bool:
        """Whether as little as this was refused to its queue before; else it counts as *asked*."""
        if option.free_right is not None:
            return False
        more = asked.get(unit.queue, 0) + option.gpus - (than.gpus if than else 0)
        if more >= self._refused.get(unit.queue, inf):
            return True
        asked[unit.queue] = more
        return False

    def _take_all(self, parts: Sequence[tuple[_Unit, Option]]) -> None:
        """Take all that one replica costs, or nothing of it."""
        mark = self._budget.mark()
        asked: dict[str, int] = {}
        for unit, option in parts:
            self._is_too_much(unit, option, unit.taken, asked)
            if not self._budget.takes(option, unit.taken):
                # Not this, and never as much again: what a queue may lose only gets less.
                self._refused[unit.queue] = asked[unit.queue]
                self._budget.rollback(mark)
                return
        for unit, option in parts:
            self._note(unit, option)

    def _take(self, unit: _Unit, option: Option) -> bool:
        if not self._budget.takes(option, unit.taken):
            return False
        self._note(unit, option)
        return True

    def _note(self, unit: _Unit, option: Option) -> None:
        if unit.taken is None:
            self._units.append(unit)
        self._put(unit, option)

    def _put(self, unit: _Unit, option: Option | None) -> None:
        """Put another option of a unit in the place of the one that is taken."""
        touched = {*(option.spread if option else ()), *(unit.taken.spread if unit.taken else ())}
        for node in touched:
            free = self._amounts(node)
            counts = self._first <= node < self._end and bool(self._ground.mask[node])
            before = self._replicas(free) if counts else 0
            _add(free, option, unit.taken, node)
            if counts:
                self._room += self._replicas(free) - before
        unit.taken = option

    def _amounts(self, node: int) -> list[int]:
        free = self._free.get(node)
        if free is None:
            free = self._free[node] = self._ground.free[:, node].tolist()
        return free

    def _replicas(self, free: Sequence[int]) -> int:
        return max(min(free[resource] // amount for resource, amount in self._needs), 0)


def _add(free: list[int], option: Option | None, instead_of: Option | None, node: int) -> None:
    for sign, which in ((1, option), (-1, instead_of)):
        replicas = 0 if which is None else which.spread.get(node, 0)
        if which is not None and replicas:
            for resource, amount in enumerate(which.each):
                free[resource] += sign * amount * replicas


def _lessen(
    lacking: dict[int, int], option: Option | None, instead_of: Option | None, node: int
) -> None:
    """Count what an option frees on a node, in the place of another one, as no longer lacking."""
    for sign, which in ((1, option), (-1, instead_of)):
        replicas = 0 if which is None else which.spread.get(node, 0)
        if which is not None and replicas:
            for resource in lacking:
                lacking[resource] -= sign * which.each[resource] * replicas
