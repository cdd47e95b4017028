"""What everybody holds, counted afresh from plain values: slow, and so plain that it is right.

For the laws of the scheduling core, which must not trust the core's own counts. *Later* means
after everybody has left who is asked to, with every claim taken up.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from muster.scheduling.snapshot import NOWHERE, Gang, Needs, Node, Queue


def lineage(name: str | None, queues: Mapping[str, Queue]) -> tuple[str, ...]:
    """The queue and those above it, innermost first; one that is unknown stands alone."""
    path: list[str] = []
    while name is not None and name not in path and (name in queues or not path):
        path.append(name)
        name = queues[name].parent if name in queues else None
    return tuple(path)


def seats_now(gang: Gang) -> list[str]:
    return [name for name in gang.placement or () if name != NOWHERE]


def seats_later(gang: Gang) -> list[str]:
    """Where it is after its leavings, together with what it claims."""
    placement = gang.placement or ()
    if any(leaving.ranks is None for leaving in gang.leaving):
        placement = ()
    gone = {rank for leaving in gang.leaving for rank in leaving.ranks or ()}
    stays = [n for rank, n in enumerate(placement) if n != NOWHERE and rank not in gone]
    return [*stays, *gang.claim]


def amounts(needs: Needs) -> Counter[str]:
    taken = {"gpus": needs.gpus, "cpu": needs.cpu_millis, "memory": needs.memory_bytes}
    return Counter({**taken, "pods": 1})


class Books:
    """Amounts on nodes and GPUs in queues: `now[...]` and `later[...]`."""

    def __init__(
        self,
        nodes: Mapping[str, Node],
        queues: Mapping[str, Queue],
        gangs: Iterable[Gang],
        foreign: Iterable[tuple[str, str, Needs]] = (),
    ) -> None:
        self.nodes, self.queues = nodes, queues
        self.now, self.later = Ledgers(), Ledgers()
        for gang in gangs:
            self._post(self.now, gang, seats_now(gang))
            self._post(self.later, gang, seats_later(gang))
        for _, name, needs in foreign:
            for ledgers in (self.now, self.later):
                ledgers.node.setdefault(name, Counter()).update(amounts(needs))

    def _post(self, ledgers: "Ledgers", gang: Gang, seats: list[str]) -> None:
        path = lineage(gang.queue, self.queues)
        for name in seats:
            ledgers.node.setdefault(name, Counter()).update(amounts(gang.needs))
            model = self.nodes[name].gpu_model if name in self.nodes else None
            for queue in path:
                ledgers.queue[queue] += gang.needs.gpus
                ledgers.model[queue, model] += gang.needs.gpus
                ledgers.user[queue, gang.user] += gang.needs.gpus

    def over(self, gang: Gang, names: Iterable[str]) -> Iterator[str]:
        """Which limits that bind this gang on these nodes are passed, now or later."""
        used = set(names)
        for when, ledgers in (("now", self.now), ("later", self.later)):
            yield from (f"{when}: {what}" for what in self._over_nodes(ledgers, gang, used))
            if gang.needs.gpus:
                yield from (f"{when}: {what}" for what in self._over_queues(ledgers, gang, used))

    def _over_nodes(self, ledgers: "Ledgers", gang: Gang, used: set[str]) -> Iterator[str]:
        takes = amounts(gang.needs)
        for name in sorted(used):
            node, held = self.nodes[name], ledgers.node.get(name, Counter())
            has = {"gpus": node.gpus, "cpu": node.cpu_millis}
            has |= {"memory": node.memory_bytes, "pods": node.pods}
            for resource, amount in has.items():
                if amount is not None and takes[resource] and held[resource] > amount:
                    yield f"{resource} of {name}: {held[resource]} of {amount}"

    def _over_queues(self, ledgers: "Ledgers", gang: Gang, used: set[str]) -> Iterator[str]:
        models = {self.nodes[name].gpu_model for name in used}
        above = [self.queues[q] for q in lineage(gang.queue, self.queues) if q in self.queues]
        for queue in above:
            held, name = ledgers.queue[queue.name], queue.name
            if queue.limit is not None and held > queue.limit:
                yield f"limit of {name}: {held} of {queue.limit}"
            for model, limit in queue.limit_by_model.items():
                held = ledgers.model[name, model]
                if model in models and held > limit:
                    yield f"{model} limit of {name}: {held} of {limit}"
            held, most = ledgers.user[name, gang.user], queue.per_user_limit
            if gang.user and most is not None and held > most:
                yield f"limit of a user in {name}: {held} of {most}"


class Ledgers:
    """One way of counting."""

    def __init__(self) -> None:
        self.node: dict[str, Counter[str]] = {}
        self.queue: Counter[str] = Counter()
        self.model: Counter[tuple[str, str | None]] = Counter()
        self.user: Counter[tuple[str, str]] = Counter()


def room(gang: Gang, node: Node, held: Mapping[str, int]) -> int:
    """How many replicas a node takes beside what is held there."""
    has = {"gpus": node.gpus, "cpu": node.cpu_millis}
    has |= {"memory": node.memory_bytes, "pods": node.pods}
    takes = amounts(gang.needs)
    rooms = [
        max(amount - held.get(resource, 0), 0) // takes[resource]
        for resource, amount in has.items()
        if amount is not None and takes[resource]
    ]
    return min(rooms, default=1000)
