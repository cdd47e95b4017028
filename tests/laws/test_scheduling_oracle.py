"""Where one gang starts, against trying all ways on clusters that are small enough."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from muster.scheduling.plan import Admit
from muster.scheduling.snapshot import (
    Needs,
    Node,
    NodeRules,
)
from random_clusters import (
    NAMES,
    World,
    gangs_named,
    group,
    tried,
)
from small_clusters import planned


@st.composite
def puzzles(draw: st.DrawFn) -> World:
    """One gang on a small free cluster: few enough ways to try them all."""
    size = draw(st.integers(1, 6))
    gang = draw(gangs_named("g", may_run=False))
    return World(
        nodes=tuple(
            Node(
                name,
                draw(st.integers(0, 3)),
                labels={
                    level: value
                    for level in ("block", "rack")
                    if (value := draw(st.sampled_from(["1", "2", "3", ""])))
                },
            )
            for name in NAMES[:size]
        ),
        queues=(),
        gangs=(
            replace(
                gang,
                queue="default",
                is_suspended=False,
                rules=NodeRules(),
                needs=Needs(1),
                min_replicas=gang.replicas,
            ),
        ),
        foreign=(),
    )


def ways(world: World, replicas: int) -> Iterator[tuple[int, ...]]:
    """Every number of replicas for each node that adds up."""
    for way in product(*(range(node.gpus + 1) for node in world.nodes)):
        if sum(way) == replicas:
            yield way


def is_allowed(world: World, way: tuple[int, ...]) -> bool:
    (gang,) = world.gangs
    topology = gang.topology
    used = [node for node, replicas in zip(world.nodes, way, strict=True) if replicas]
    if topology.required:
        if any(topology.required in {"block", "rack"} - node.labels.keys() for node in used):
            return False
        if len({group(node, topology.required) for node in used}) > 1:
            return False
    if not topology.part_size:
        return True
    rooms: Counter[object] = Counter()
    for node, replicas in zip(world.nodes, way, strict=True):
        if replicas and topology.part_required in {"block", "rack"} - node.labels.keys():
            return False
        rooms[group(node, topology.part_required)] += replicas
    full, rest = divmod(gang.replicas, topology.part_size)
    # Each domain is cut into whole parts; at most one of them is the short one.
    odd = [room % topology.part_size for room in rooms.values() if room % topology.part_size]
    return (
        odd == ([rest] if rest else [])
        and sum(room // topology.part_size for room in rooms.values()) == full
    )


def lowest(world: World, way: tuple[int, ...]) -> str | None:
    """The lowest level, from the preferred one outwards, whose one domain holds all of it."""
    (gang,) = world.gangs
    levels = ["node", "rack", "block"]
    wished = [level for level in (gang.topology.preferred, gang.topology.required) if level]
    first = min((levels.index(level) for level in wished), default=0)
    if not gang.topology.preferred:
        first = 0
    used = [node for node, replicas in zip(world.nodes, way, strict=True) if replicas]
    for level in levels[first:]:
        has_label = level == "node" or all(level in node.labels for node in used)
        if has_label and len({group(node, level) for node in used}) == 1:
            return level
    return None


@tried(400)
@given(puzzles())
def test_a_gang_starts_where_trying_all_ways_finds_one_and_as_close_as_any(world):
    (gang,) = world.gangs
    allowed = [way for way in ways(world, gang.replicas) if is_allowed(world, way)]
    plan = planned(world.cluster())

    assert bool(allowed) == bool(plan.admitted)
    for admit in plan.admitted:
        check_is_as_close_as_any(world, admit, allowed)


def check_is_as_close_as_any(world: World, admit: Admit, allowed: list[tuple[int, ...]]) -> None:
    taken = Counter(admit.nodes)
    chosen = tuple(taken[node.name] for node in world.nodes)
    assert chosen in allowed
    rank = {"node": 0, "rack": 1, "block": 2, None: 3}
    best = min(rank[lowest(world, way)] for way in allowed)
    assert best == rank[lowest(world, chosen)]
    if best == rank[None]:
        assert min(spread(world, way) for way in allowed) == spread(world, chosen)
    else:
        level = next(name for name, number in rank.items() if number == best)
        rivals = [way for way in allowed if lowest(world, way) == level]
        assert min(left(world, way, level) for way in rivals) == left(world, chosen, level)


def spread(world: World, way: tuple[int, ...]) -> int:
    """Over how many domains of the outermost level it goes."""
    return len(
        {group(n, "block") for n, replicas in zip(world.nodes, way, strict=True) if replicas}
    )


def left(world: World, way: tuple[int, ...], level: str | None) -> int:
    """GPUs left over in the one domain of the level."""
    (home,) = {group(n, level) for n, replicas in zip(world.nodes, way, strict=True) if replicas}
    return sum(n.gpus for n in world.nodes if group(n, level) == home) - sum(way)
