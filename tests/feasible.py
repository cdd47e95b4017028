"""Whether a gang fits at all, by counting: no search, and nothing of the core's placement."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from books import Books, Ledgers, lineage, room
from muster.scheduling.fit import misfit
from muster.scheduling.snapshot import Gang, Node, TopologyRequest
from random_worlds import domain_of


def fits(gang: Gang, books: Books, *, replicas: int | None = None, now: bool = True) -> bool:
    """Whether so many replicas (its minimum) fit what is free, within every limit."""
    wanted = gang.min_replicas if replicas is None else replicas
    ledgers = [books.later, books.now] if now else [books.later]
    barred: set[str] = set()
    for book in ledgers:
        if not _keeps_limits(gang, wanted, books, book):
            return False
        barred |= _barred(gang, wanted, books, book)
    nodes = [
        node
        for node in books.nodes.values()
        if node.is_ready
        and not node.is_cordoned
        and misfit(node, gang.rules) is None
        and node.gpu_model not in barred
    ]
    rooms = {
        node.name: min(room(gang, node, book.node.get(node.name, Counter())) for book in ledgers)
        for node in nodes
    }
    return has_room(gang.topology, wanted, nodes, rooms)


def _keeps_limits(gang: Gang, wanted: int, books: Books, book: Ledgers) -> bool:
    gpus = wanted * gang.needs.gpus
    for name in lineage(gang.queue, books.queues) if gpus else ():
        queue = books.queues.get(name)
        if queue is None:
            continue
        if queue.limit is not None and book.queue[name] + gpus > queue.limit:
            return False
        most = queue.per_user_limit
        if gang.user and most is not None and book.user[name, gang.user] + gpus > most:
            return False
    return True


def _barred(gang: Gang, wanted: int, books: Books, book: Ledgers) -> set[str]:
    """The models of which its queues may not hold so many more."""
    gpus = wanted * gang.needs.gpus
    return {
        model
        for name in (lineage(gang.queue, books.queues) if gpus else ())
        if name in books.queues
        for model, limit in books.queues[name].limit_by_model.items()
        if book.model[name, model] + gpus > limit
    }


def has_room(
    topology: TopologyRequest, wanted: int, nodes: Sequence[Node], rooms: Mapping[str, int]
) -> bool:
    """Whether one required domain takes all, whole parts each in one domain of theirs."""
    return any(_takes(topology, wanted, home, rooms) for home in domains(nodes, topology.required))


def _takes(
    topology: TopologyRequest, wanted: int, home: Sequence[Node], rooms: Mapping[str, int]
) -> bool:
    size = topology.part_size
    if size is None:
        return sum(rooms[node.name] for node in home) >= wanted
    full, rest = divmod(wanted, size)
    counts = [
        sum(rooms[node.name] for node in domain)
        for domain in domains(home, topology.part_required)
    ]
    parts = sum(count // size for count in counts)
    if not rest:
        return parts >= full
    return parts > full or (parts == full and any(count % size >= rest for count in counts))


def domains(nodes: Iterable[Node], level: str | None) -> list[list[Node]]:
    """The nodes by the domain of a level; those without its label are in none."""
    if level is None:
        return [list(nodes)]
    found: dict[tuple[str, ...], list[Node]] = {}
    for node in nodes:
        if level == "node" or level in node.labels:
            found.setdefault(domain_of(node, level), []).append(node)
    return [found[key] for key in sorted(found)]
