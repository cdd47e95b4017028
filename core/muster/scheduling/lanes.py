"""The gangs in the order of their turns: the pending ones by queue, the placed ones by key."""

from bisect import bisect_left, insort
from collections.abc import Mapping
from types import MappingProxyType

from muster.scheduling.order import turn_of
from muster.scheduling.snapshot import (
    Gang,
    Needs,
    NodeRules,
    Order,
    Pending,
    Question,
    TopologyRequest,
)

_Key = tuple[str, Needs, NodeRules, TopologyRequest, int, bool, str, str]


class Lanes:
    """Sorted as gangs come and go, so that a snapshot finds them in order."""

    def __init__(self) -> None:
        self._lanes: dict[str, list[Pending]] = {}
        self._waiting: dict[str, Pending] = {}
        self._frozen: dict[str, tuple[Pending, ...]] = {}
        self._pending: Mapping[str, tuple[Pending, ...]] | None = None
        self._questions: dict[_Key, Question] = {}
        self._askers: dict[Question, tuple[int, _Key]] = {}
        self._are_users_limited = False
        self._keys: list[str] = []
        self._placed: list[Gang] = []
        """In the order of the keys."""
        self._running: tuple[Gang, ...] | None = None

    def add(self, gang: Gang, order: Order = Order.FIFO) -> None:
        """Put a gang in its place; *order* is that of its queue."""
        if gang.is_pending:
            lane = self._lanes.setdefault(gang.queue, [])
            pending = Pending(turn_of(gang, order), gang, self._asked(gang))
            self._waiting[gang.key] = pending
            insort(lane, pending)
            self._forget(gang.queue)
        else:
            place = bisect_left(self._keys, gang.key)
            self._keys.insert(place, gang.key)
            self._placed.insert(place, gang)
            self._running = None

    def remove(self, gang: Gang) -> None:
        """Take a gang out that was put in."""
        if gang.is_pending:
            lane = self._lanes[gang.queue]
            pending = self._waiting.pop(gang.key)
            del lane[bisect_left(lane, pending)]
            self._withdraw(pending.question)
            if not lane:
                del self._lanes[gang.queue]
            self._forget(gang.queue)
        else:
            place = bisect_left(self._keys, gang.key)
            del self._keys[place], self._placed[place]
            self._running = None

    def reorder(self, queue: str, order: Order) -> None:
        """Sort the pending gangs of a queue anew."""
        if queue not in self._lanes:
            return
        lane = self._lanes[queue]
        lane[:] = sorted(Pending(turn_of(p.gang, order), p.gang, p.question) for p in lane)
        self._waiting.update((pending.gang.key, pending) for pending in lane)
        self._forget(queue)

    def limit_users(self, *, are_limited: bool) -> None:
        """Tell gangs of different users apart, or not, in what they ask."""
        if are_limited == self._are_users_limited:
            return
        self._are_users_limited = are_limited
        self._questions.clear()
        self._askers.clear()
        for queue, lane in self._lanes.items():
            lane[:] = [Pending(p.turn, p.gang, self._asked(p.gang)) for p in lane]
            self._waiting.update((pending.gang.key, pending) for pending in lane)
            self._forget(queue)

    def pending(self) -> Mapping[str, tuple[Pending, ...]]:
        """The pending gangs of each queue that has any, by the name of the queue."""
        if self._pending is None:
            for queue in self._lanes.keys() - self._frozen.keys():
                self._frozen[queue] = tuple(self._lanes[queue])
            ordered = {queue: self._frozen[queue] for queue in sorted(self._frozen)}
            self._pending = MappingProxyType(ordered)
        return self._pending

    def running(self) -> tuple[Gang, ...]:
        """The placed gangs, by key."""
        if self._running is None:
            self._running = tuple(self._placed)
        return self._running

    def _forget(self, queue: str) -> None:
        self._frozen.pop(queue, None)
        self._pending = None

    def _asked(self, gang: Gang) -> Question:
        key: _Key = (
            gang.queue,
            gang.needs,
            gang.rules,
            gang.topology,
            gang.min_replicas,
            gang.is_suspended,
            gang.user if self._are_users_limited else "",
            gang.held_back,
        )
        question = self._questions.get(key)
        if question is None:
            question = self._questions[key] = Question(*key)
            self._askers[question] = (0, key)
        self._askers[question] = (self._askers[question][0] + 1, key)
        return question

    def _withdraw(self, question: Question) -> None:
        number, key = self._askers.pop(question)
        if number > 1:
            self._askers[question] = (number - 1, key)
        else:
            del self._questions[key]
