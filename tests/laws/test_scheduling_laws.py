"""What holds for the plan of every cluster, on thousands of random ones."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

from hypothesis import given
from hypothesis import strategies as st

from muster.scheduling.cluster import Cluster
from muster.scheduling.fit import misfit
from muster.scheduling.plan import Plan, WaitReason
from muster.scheduling.snapshot import (
    Gang,
    Needs,
    Node,
    Queue,
    TopologyRequest,
)
from random_clusters import (
    World,
    group,
    tried,
    worlds,
)
from small_clusters import carry_out, planned


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
