"""Random clusters that the world could hold: whoever runs there was let in by the rules.

Everything that a queue, a node and a job may ask for is in them, small and often scarce. What can
only come about by decisions (claims, evictions, reservations) comes about by driving: see
`driving`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import TypeVar

from hypothesis import strategies as st

from books import Books, room
from muster.scheduling.cluster import Cluster
from muster.scheduling.fit import misfit
from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import (
    Gang,
    Needs,
    Node,
    NodeRules,
    Order,
    Queue,
    Run,
    TopologyRequest,
)
from small_clusters import BLOCKS

T = TypeVar("T")

START = 10_000.0
"""When the tests begin: far enough from 0 that jobs may run for long."""

PARENTS: Mapping[str, str | None] = {
    "org": None,
    "a": "org",
    "b": "org",
    "c": None,
    "default": None,
}
LEAVES = ("a", "b", "c", "default")


@dataclass(frozen=True)
class World:
    """Everything that a cluster is told, and the knobs of the policy."""

    nodes: tuple[Node, ...]
    queues: tuple[Queue, ...] = ()
    gangs: tuple[Gang, ...] = ()
    foreign: tuple[tuple[str, str, Needs], ...] = ()
    policy: Policy = field(default_factory=lambda: Policy(leaves_at_once=True))
    now: float = START

    def cluster(self) -> Cluster:
        cluster = Cluster.of(
            levels=BLOCKS,
            nodes=self.nodes,
            queues=self.queues,
            gangs=self.gangs,
            foreign=self.foreign,
        )
        cluster.set_changed(1.0)
        cluster.advance(self.now, self.policy.usage_half_life)
        return cluster


@dataclass(frozen=True)
class Mix:
    """What may be in a world; a law that needs it plain says so."""

    nodes: int = 6
    gangs: int = 9
    fewest_gangs: int = 3
    sizes: tuple[int, ...] = (1, 2, 1, 2, 3, 4, 5)
    has_topology: bool = True
    has_models: bool = True
    has_resources: bool = True
    """CPU, memory and pod slots that bind, and other people's pods."""
    has_orders: bool = True
    has_half_life: bool = True
    has_limits: bool = True
    has_shields: bool = True
    has_notice: bool = True
    has_inner_jobs: bool = False
    """Jobs in a queue that has children."""


class Dice:
    """Choices read from bytes: a thousand of them cost as much as a few drawn one by one.

    Zero takes the first option, so that what hypothesis shrinks becomes plain.
    """

    def __init__(self, rolled: bytes) -> None:
        self._rolled = iter(rolled)

    def pick(self, *options: T) -> T:
        return options[next(self._rolled, 0) % len(options)]

    def one_in(self, times: int) -> bool:
        return next(self._rolled, 0) % times == times - 1


def rolls(size: int = 500) -> st.SearchStrategy[Dice]:
    return st.binary(min_size=size, max_size=size).map(Dice)


def worlds(mix: Mix | None = None) -> st.SearchStrategy[World]:
    """A world in which about half of the gangs run, as far as there is room by the rules."""
    return rolls().map(lambda dice: world_of(dice, mix or Mix()))


def world_of(dice: Dice, mix: Mix) -> World:
    nodes, queues, policy = nodes_of(dice, mix), queues_of(dice, mix), policy_of(dice, mix)
    has_foreign = mix.has_resources and dice.one_in(6)
    foreign = (("p", "n1", Needs(1, 1)),) if has_foreign else ()
    gangs: list[Gang] = []
    for number in range(dice.pick(*range(mix.fewest_gangs, mix.gangs + 1))):
        gang = gang_of(dice, f"g{number}", mix)
        if not dice.one_in(3):
            gang = seated(gang, nodes, queues, gangs, foreign, dice.pick(*range(256)))
        gangs.append(gang)
    return World(nodes, queues, tuple(gangs), foreign, policy)


def nodes_of(dice: Dice, mix: Mix) -> tuple[Node, ...]:
    models = [None, "A100", "H100", "H100"] if mix.has_models else [None]
    binds = mix.has_resources and dice.one_in(4)
    amounts = [None, None, 3, 6] if binds else [None]
    nodes = []
    for number in range(1, dice.pick(*[1, 2, 3, 4, 5, 6][: mix.nodes]) + 1):
        labels = {"block": dice.pick("x", "x", "y", ""), "rack": dice.pick("r1", "r2", "r3", "")}
        nodes.append(
            Node(
                name=f"n{number}",
                gpus=dice.pick(4, 4, 2, 8, 3, 1, 0),
                labels={level: value for level, value in labels.items() if value},
                gpu_model=dice.pick(*models),
                cpu_millis=dice.pick(*amounts),
                memory_bytes=dice.pick(*amounts),
                pods=dice.pick(*amounts),
                is_ready=not dice.one_in(12),
            )
        )
    return tuple(nodes)


def queues_of(dice: Dice, mix: Mix) -> tuple[Queue, ...]:
    by_model = mix.has_models and dice.one_in(4)
    return tuple(queue_of(dice, name, mix, by_model=by_model) for name in PARENTS)


def queue_of(dice: Dice, name: str, mix: Mix, *, by_model: bool) -> Queue:
    """Quota is either for GPUs in all or for single models, in all queues of a world."""
    limit = dice.pick(None, None, None, None, 2, 4, 6, 9) if mix.has_limits else None
    guaranteed = dice.pick(0, 0, 1, 2, 3, 4)
    per_user = dice.pick(None, None, None, None, None, None, 1, 3) if mix.has_limits else None
    order = dice.pick(Order.FIFO, *Order) if mix.has_orders else Order.FIFO
    return Queue(
        name=name,
        parent=PARENTS[name],
        weight=dice.pick(1.0, 1.0, 1.0, 2.0, 0.5, 3.0, 0.0),
        guaranteed=0 if by_model else guaranteed,
        limit=None if by_model else limit,
        limit_by_model={dice.pick("A100", "H100"): limit} if by_model and limit else {},
        guaranteed_by_model={dice.pick("A100", "H100"): guaranteed} if by_model else {},
        order=order,
        per_user_limit=per_user,
        min_run_time=dice.pick(0.0, 0.0, 100.0, 5000.0) if mix.has_shields else 0.0,
        is_paused=dice.one_in(12),
    )


def topology_of(dice: Dice) -> TopologyRequest:
    levels = (None, None, "block", "rack", "node")
    size = dice.pick(None, None, None, 1, 2)
    return TopologyRequest(
        required=dice.pick(*levels),
        preferred=dice.pick(*levels),
        part_size=size,
        part_required=dice.pick("block", "rack", "node") if size else None,
    )


def gang_of(dice: Dice, key: str, mix: Mix) -> Gang:
    """A gang that waits."""
    replicas = dice.pick(*mix.sizes)
    models = [(), (), ("H100",), ("A100", "H100")] if mix.has_models else [()]
    needs = Needs(dice.pick(1, 1, 1, 2, 3, 0))
    if mix.has_resources and dice.one_in(4):
        needs = replace(needs, cpu_millis=dice.pick(0, 1, 2), memory_bytes=1)
    has_topology = mix.has_topology and dice.one_in(3)
    return Gang(
        key=key,
        replicas=replicas,
        min_replicas=dice.pick(*range(replicas, 0, -1)) if dice.one_in(3) else replicas,
        needs=needs,
        submitted=START - dice.pick(10.0, 20.0, 30.0),
        queue=dice.pick(*((*LEAVES, "org") if mix.has_inner_jobs else LEAVES)),
        priority=dice.pick(0, 0, 0, 1, 2),
        rules=NodeRules(gpu_models=dice.pick(*models)),
        topology=topology_of(dice) if has_topology else TopologyRequest(),
        user=dice.pick("", "ada", "bob"),
        is_preemptible=not dice.one_in(5),
        max_run_time=dice.pick(None, None, 50.0, 200.0, 8000.0),
        is_suspended=dice.one_in(20),
        held_back="it comes after another" if dice.one_in(25) else "",
    )


def policy_of(dice: Dice, mix: Mix) -> Policy:
    has_notice = mix.has_notice and dice.one_in(2)
    return Policy(
        reservation=dice.one_in(2),
        leaves_at_once=not has_notice,
        notice=30.0 if has_notice else 0.0,
        usage_half_life=1000.0 if mix.has_half_life and dice.one_in(5) else 0.0,
        replace_failed_for=60.0,
        restart_time=dice.pick(0.0, 0.0, 120.0),
    )


def seated(
    gang: Gang,
    nodes: Sequence[Node],
    queues: Sequence[Queue],
    others: Sequence[Gang],
    foreign: Sequence[tuple[str, str, Needs]],
    seed: int,
) -> Gang:
    """The gang, running somewhere within all limits; waiting where it finds no place at once."""
    random = Random(seed)
    if gang.is_suspended or gang.held_back:
        return gang
    names = {node.name: node for node in nodes}
    by_name = {queue.name: queue for queue in queues}
    usable = [n for n in nodes if n.is_ready and misfit(n, gang.rules) is None]
    books = Books(names, by_name, others, foreign)
    for _ in range(6):
        seats = _some_seats(gang, usable, books, random)
        placed = replace(gang, placement=tuple(seats))
        whole = Books(names, by_name, [*others, placed], foreign)
        if seats and not any(whole.over(placed, seats)):
            break
    else:
        return gang
    # Running jobs of one cluster started at different times, most of them.
    started = START - random.choice([5.0, 50.0, 150.0, 400.0, 1000.0, 3000.0, 6000.0])
    saved = random.choice([None, None, (started + START) / 2])
    eta = random.choice([None, None, None, START + 70.0])
    run = Run(started=started, saved=saved, eta=eta)
    return replace(placed, run=run, submitted=started - 1.0)


def _some_seats(gang: Gang, usable: Sequence[Node], books: Books, random: Random) -> list[str]:
    """Nodes with room for all of it, as its topology asks; none where the first try fails."""
    size = random.randint(gang.min_replicas, gang.replicas)
    home = _some_domain(usable, gang.topology.required, random)
    rooms = {n.name: room(gang, n, books.now.node.get(n.name, Counter())) for n in home}
    part = gang.topology.part_size or size
    seats: list[str] = []
    while len(seats) < size:
        nodes = _some_domain(home, gang.topology.part_required, random)
        random.shuffle(nodes)
        wanted = min(part, size - len(seats))
        for node in nodes:
            taken = min(rooms[node.name], wanted)
            rooms[node.name] -= taken
            wanted -= taken
            seats += [node.name] * taken
        if wanted:
            return []
    return seats


def _some_domain(nodes: Sequence[Node], level: str | None, random: Random) -> list[Node]:
    if level is None:
        return list(nodes)
    labelled = [n for n in nodes if level == "node" or level in n.labels]
    domains = sorted({domain_of(n, level) for n in labelled})
    if not domains:
        return []
    home = random.choice(domains)
    return [node for node in labelled if domain_of(node, level) == home]


def domain_of(node: Node, level: str) -> tuple[str, ...]:
    """The domain of a node, with those around it: a rack is a rack of its block."""
    path = (node.labels.get("block", ""), node.labels.get("rack", ""), node.name)
    return path[: {"block": 1, "rack": 2, "node": 3}[level]]
