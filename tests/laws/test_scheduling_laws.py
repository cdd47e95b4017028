"""What holds for every cluster: the laws of the scheduling core, on thousands of random ones."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby, product

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.scheduling.cluster import Cluster
from muster.scheduling.cycle import placed
from muster.scheduling.fit import misfit
from muster.scheduling.plan import Admit, Plan, WaitReason
from muster.scheduling.snapshot import (
    Gang,
    Needs,
    Node,
    NodeRules,
    Queue,
    Taint,
    Toleration,
    TopologyRequest,
)
from muster.scheduling.trial import Trial
from small_clusters import BLOCKS, carry_out, planned


def tried(times: int) -> settings:
    """How often; a busy machine makes no test fail."""
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(max_examples=times, deadline=None, suppress_health_check=slow)


MODELS = (None, "A100", "H100")
QUEUES = ("default", "org", "a", "b")
NAMES = tuple(f"n{number}" for number in range(1, 8))
TAINT = Taint("dedicated", "ml")


@dataclass(frozen=True)
class World:
    """Everything that a cluster is told."""

    nodes: tuple[Node, ...]
    queues: tuple[Queue, ...]
    gangs: tuple[Gang, ...]
    foreign: tuple[tuple[str, str, Needs], ...]

    def cluster(self) -> Cluster:
        return Cluster.of(
            levels=BLOCKS,
            nodes=self.nodes,
            queues=self.queues,
            gangs=self.gangs,
            foreign=self.foreign,
        )


amounts = st.one_of(st.none(), st.integers(0, 6))
needs = st.builds(Needs, st.integers(0, 3), st.integers(0, 2), st.integers(0, 2))


@st.composite
def nodes_named(draw: st.DrawFn, name: str) -> Node:
    labels = {
        level: draw(st.sampled_from(values))
        for level, values in (("block", ("x", "y", "")), ("rack", ("r1", "r2", "r3", "")))
    }
    return Node(
        name=name,
        gpus=draw(st.integers(0, 5)),
        labels={level: value for level, value in labels.items() if value},
        gpu_model=draw(st.sampled_from(MODELS)),
        cpu_millis=draw(amounts),
        memory_bytes=draw(amounts),
        pods=draw(amounts),
        taints=draw(st.sampled_from([(), (), (TAINT,)])),
        is_ready=draw(st.integers(0, 5)) > 0,
        is_cordoned=draw(st.integers(0, 5)) == 0,
    )


@st.composite
def queues_named(draw: st.DrawFn, name: str) -> Queue:
    limits = draw(st.dictionaries(st.sampled_from(["A100", "H100"]), st.integers(0, 8)))
    return Queue(
        name=name,
        parent="org" if name in {"a", "b"} else None,
        limit=draw(st.one_of(st.none(), st.integers(0, 12))),
        limit_by_model=limits,
        is_paused=draw(st.integers(0, 9)) == 0,
    )


levels = st.sampled_from([None, None, "block", "rack", "node"])


@st.composite
def gangs_named(draw: st.DrawFn, name: str, *, may_run: bool = True) -> Gang:
    replicas = draw(st.integers(1, 7))
    size = draw(st.sampled_from([None, None, 1, 2, 3]))
    gang = Gang(
        key=name,
        replicas=replicas,
        min_replicas=draw(st.integers(1, replicas)),
        needs=draw(needs),
        submitted=float(draw(st.integers(0, 3))),
        queue=draw(st.sampled_from(QUEUES)),
        priority=draw(st.integers(0, 2)),
        is_suspended=draw(st.integers(0, 9)) == 0,
        rules=NodeRules(
            gpu_models=draw(st.sampled_from([(), (), ("H100",), ("A100", "H100")])),
            tolerations=draw(st.sampled_from([(), (Toleration("dedicated", "Exists"),)])),
        ),
        topology=TopologyRequest(
            required=draw(levels),
            preferred=draw(levels),
            part_size=size,
            part_required=draw(st.sampled_from(["block", "rack", "node"])) if size else None,
        ),
    )
    if may_run and draw(st.integers(0, 3)) == 0:
        placement = draw(st.lists(st.sampled_from((*NAMES, "gone")), min_size=1, max_size=4))
        return replace(gang, placement=tuple(placement))
    return gang


@st.composite
def worlds(draw: st.DrawFn, *, may_run: bool = True) -> World:
    return World(
        nodes=tuple(draw(nodes_named(name)) for name in NAMES[: draw(st.integers(0, 7))]),
        queues=tuple(draw(queues_named(name)) for name in QUEUES),
        gangs=tuple(
            draw(gangs_named(f"g{number}", may_run=may_run))
            for number in range(draw(st.integers(1, 9)))
        ),
        foreign=tuple(
            (f"p{number}", draw(st.sampled_from((*NAMES, "gone"))), draw(needs))
            for number in range(draw(st.integers(0, 2)))
        ),
    )


def check_is_lawful(world: World, plan: Plan) -> None:
    """No node beyond its capacity, no queue beyond its limits, every gang whole or absent."""
    pending = {gang.key: gang for gang in world.gangs if gang.is_pending}
    assert sorted(pending) == sorted(decision.gang for decision in plan.decisions)
    for admit in plan.admitted:
        gang = pending[admit.gang]
        assert gang.min_replicas <= len(admit.nodes) <= gang.replicas
        check_is_allowed(world, gang, admit.nodes)
    check_capacity(world, plan, pending)
    check_limits(world, plan, pending)


def check_is_allowed(world: World, gang: Gang, placement: tuple[str, ...]) -> None:
    nodes = {node.name: node for node in world.nodes}
    used = [nodes[name] for name in placement]
    assert not gang.is_suspended
    assert all(node.is_ready and not node.is_cordoned for node in used)
    assert all(misfit(node, gang.rules) is None for node in used)
    topology = gang.topology
    assert len({domain(node, topology.required) for node in used}) == 1 or not topology.required
    if topology.part_size:
        for start in range(0, len(used), topology.part_size):
            part = used[start : start + topology.part_size]
            assert len({domain(node, topology.part_required) for node in part}) == 1
    outer = [level for level in ("block", "rack") if is_outside_parts(level, topology)]
    for level in (*outer, *(() if topology.part_size else ("node",))):
        rows = [key for key, _ in groupby(group(node, level) for node in used)]
        assert len(rows) == len(set(rows)), f"the replicas of a {level} are not neighbours"


def is_outside_parts(level: str, topology: TopologyRequest) -> bool:
    order = ["block", "rack", "node"]
    return not topology.part_size or order.index(level) <= order.index(topology.part_required)


def domain(node: Node, level: str | None) -> object:
    """The domain that a request may count on."""
    if level in {"block", "rack"}:
        assert level in node.labels
    return group(node, level)


def group(node: Node, level: str | None) -> object:
    path = (node.labels.get("block"), node.labels.get("rack"), node.name)
    return path[: {"block": 1, "rack": 2, "node": 3}.get(level or "", 0)]


def check_capacity(world: World, plan: Plan, pending: dict[str, Gang]) -> None:
    started = {name for admit in plan.admitted for name in admit.nodes}
    held: dict[str, Counter[str]] = {node.name: Counter() for node in world.nodes}
    placements = [(gang.needs, gang.placement) for gang in world.gangs if gang.placement]
    placements += [(pending[admit.gang].needs, admit.nodes) for admit in plan.admitted]
    placements += [(needs, (name,)) for _, name, needs in world.foreign]
    for taken, names in placements:
        for name in names:
            if name in held:
                held[name].update(gpus=taken.gpus, pods=1)
                held[name].update(cpu=taken.cpu_millis, memory=taken.memory_bytes)
    for node in world.nodes:
        # What was there before may be too much already; a gang that starts never is.
        if node.name in started:
            has = {"gpus": node.gpus, "cpu": node.cpu_millis}
            has |= {"memory": node.memory_bytes, "pods": node.pods}
            for resource, amount in has.items():
                assert (
                    amount is None
                    or held[node.name][resource] <= amount
                    or (
                        # Nobody who starts takes what is short.
                        not any(
                            takes(pending[admit.gang].needs, resource)
                            for admit in plan.admitted
                            if node.name in admit.nodes
                        )
                    )
                )


def takes(taken: Needs, resource: str) -> int:
    amounts = {"gpus": taken.gpus, "cpu": taken.cpu_millis, "memory": taken.memory_bytes}
    return {**amounts, "pods": 1}[resource]


def check_limits(world: World, plan: Plan, pending: dict[str, Gang]) -> None:
    models = {node.name: node.gpu_model for node in world.nodes}
    queues = {queue.name: queue for queue in world.queues}
    totals: Counter[str] = Counter()
    by_model: Counter[tuple[str, str | None]] = Counter()
    started: set[str] = set()
    holders = [(gang, gang.placement) for gang in world.gangs if gang.placement]
    holders += [(pending[admit.gang], admit.nodes) for admit in plan.admitted]
    for gang, names in holders:
        for queue in lineage(gang.queue, queues):
            for name in names:
                totals[queue] += gang.needs.gpus
                by_model[queue, models.get(name)] += gang.needs.gpus
            if gang.is_pending:
                assert not queues[queue].is_paused
                started |= {queue} if gang.needs.gpus else set()
    for name in started:
        queue = queues[name]
        assert queue.limit is None or totals[name] <= queue.limit
    for admit in plan.admitted:
        gang = pending[admit.gang]
        used = {models[name] for name in admit.nodes} if gang.needs.gpus else set()
        for queue in lineage(gang.queue, queues):
            for model in used & queues[queue].limit_by_model.keys():
                assert by_model[queue, model] <= queues[queue].limit_by_model[model]


def lineage(name: str | None, queues: dict[str, Queue]) -> Iterator[str]:
    while name is not None:
        yield name
        name = queues[name].parent


@tried(400)
@given(worlds())
def test_plans_are_lawful(world):
    check_is_lawful(world, planned(world.cluster()))


@tried(150)
@given(worlds(), st.randoms(use_true_random=False))
def test_the_order_of_the_input_plays_no_part(world, random):
    def shuffled(values):
        return tuple(random.sample(values, len(values)))

    other = World(*map(shuffled, (world.nodes, world.queues, world.gangs, world.foreign)))
    one, two = world.cluster(), other.cluster()

    assert planned(one) == planned(two)
    assert one.snapshot().facts() == two.snapshot().facts()


@tried(150)
@given(worlds())
def test_once_carried_out_nothing_more_starts_and_nothing_changes(world):
    cluster = world.cluster()
    carry_out(cluster, planned(cluster), world.gangs)
    settled = planned(cluster)

    assert () == settled.admitted
    assert settled == planned(cluster)
    assert settled == planned(replace(world, gangs=told(cluster)).cluster())


def told(cluster: Cluster) -> tuple[Gang, ...]:
    """All gangs, as the cluster has them now."""
    snapshot = cluster.snapshot()
    waiting = (pending.gang for lane in snapshot.pending.values() for pending in lane)
    return (*snapshot.running, *waiting)


@tried(150)
@given(worlds(), st.integers(0, 9))
def test_carried_out_in_part_and_planned_again_the_laws_hold(world, done):
    plan = planned(world.cluster())
    starts = {admit.gang: admit.nodes for admit in plan.admitted[:done]}
    left = replace(
        world,
        gangs=tuple(
            replace(gang, placement=starts[gang.key]) if gang.key in starts else gang
            for gang in world.gangs
        ),
    )

    check_is_lawful(left, planned(left.cluster()))


@st.composite
def changes(draw: st.DrawFn) -> tuple[str, object]:
    name, key = draw(st.sampled_from(NAMES)), f"g{draw(st.integers(0, 5))}"
    queue, pod = draw(st.sampled_from(QUEUES)), f"p{draw(st.integers(0, 2))}"
    return draw(
        st.one_of(
            st.tuples(st.just("upsert_node"), st.tuples(nodes_named(name))),
            st.tuples(st.just("remove_node"), st.just((name,))),
            st.tuples(st.just("upsert_gang"), st.tuples(gangs_named(key))),
            st.tuples(st.just("remove_gang"), st.just((key,))),
            st.tuples(st.just("upsert_queue"), st.tuples(queues_named(queue))),
            st.tuples(st.just("remove_queue"), st.just((queue,))),
            st.tuples(st.just("upsert_foreign"), st.tuples(st.just(pod), st.just(name), needs)),
            st.tuples(st.just("remove_foreign"), st.just((pod,))),
            st.tuples(st.just("set_levels"), st.tuples(st.sampled_from([BLOCKS, BLOCKS[1:], ()]))),
        )
    )


@tried(150)
@given(worlds(), st.lists(changes(), max_size=12))
def test_a_cluster_changed_in_place_equals_one_told_anew(world, steps):
    cluster = world.cluster()
    given_now = {
        "levels": BLOCKS,
        "nodes": {node.name: node for node in world.nodes},
        "queues": {queue.name: queue for queue in world.queues},
        "gangs": {gang.key: gang for gang in world.gangs},
        "foreign": {key: (key, *rest) for key, *rest in world.foreign},
    }
    for what, arguments in steps:
        # Planning in between fills what is kept from cycle to cycle.
        planned(cluster)
        getattr(cluster, what)(*arguments)
        note(given_now, what, arguments)
    fresh = Cluster.of(
        levels=given_now["levels"],
        **{kind: given_now[kind].values() for kind in ("nodes", "queues", "gangs", "foreign")},
    )

    assert () == cluster.audit()
    assert fresh.snapshot().facts() == cluster.snapshot().facts()
    assert planned(fresh) == planned(cluster)


def note(given_now: dict, what: str, arguments: tuple) -> None:
    if what == "set_levels":
        given_now["levels"] = arguments[0]
        return
    deed, _, kind = what.partition("_")
    kept = given_now["foreign" if kind == "foreign" else f"{kind}s"]
    key = getattr(arguments[0], "key", getattr(arguments[0], "name", arguments[0]))
    if deed == "remove":
        kept.pop(key, None)
    else:
        kept[key] = arguments if kind == "foreign" else arguments[0]


@tried(150)
@given(worlds(), st.lists(st.tuples(st.integers(0, 6), st.integers(1, 3), needs), max_size=8))
def test_a_rolled_back_trial_is_as_it_was(world, moves):
    snapshot = world.cluster().snapshot()
    trial = Trial(snapshot)
    question = next((p.question for lane in snapshot.pending.values() for p in lane), None)
    before = placed(question, 1, trial) if question else None
    for node, replicas, taken in moves:
        if node < len(snapshot.nodes):
            trial.take("a", taken, {node: replicas})
            trial.give("b", taken, {node: 2 * replicas})
            if question:
                placed(question, 1, trial)
    trial.rollback(0)

    assert snapshot.free.tolist() == trial.free.tolist()
    assert snapshot.held == trial.held
    assert before == (placed(question, 1, trial) if question else None)


@tried(200)
@given(worlds(may_run=False))
def test_never_fits_is_said_of_exactly_those_that_an_empty_cluster_does_not_hold(world):
    up = tuple(replace(node, is_ready=True, is_cordoned=False) for node in world.nodes)
    open_queues = tuple(replace(queue, is_paused=False) for queue in world.queues)
    for wait in planned(world.cluster()).waiting:
        (gang,) = (gang for gang in world.gangs if gang.key == wait.gang)
        alone = replace(world, nodes=up, queues=open_queues, gangs=(gang,), foreign=())
        starts = bool(planned(alone.cluster()).admitted)
        if wait.reason in {WaitReason.NO_MATCHING_NODES, WaitReason.NEVER_FITS}:
            assert not starts
        elif wait.reason is not WaitReason.SUSPENDED:
            assert starts


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
