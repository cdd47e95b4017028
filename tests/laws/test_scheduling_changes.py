"""What is changed in place, or tried and taken back, is as if it had been told so."""

from hypothesis import given
from hypothesis import strategies as st

from muster.scheduling.cluster import Cluster
from muster.scheduling.snapshot import Question
from muster.scheduling.trial import Trial
from random_clusters import (
    NAMES,
    QUEUES,
    gangs_named,
    needs,
    nodes_named,
    queues_named,
    tried,
    worlds,
)
from small_clusters import BLOCKS, planned


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


def room(question: Question, trial: Trial) -> list[list[int]]:
    """How many replicas of its shape every domain takes."""
    return [counts.tolist() for counts in trial.field(question.needs, question.rules).counts]


@tried(150)
@given(worlds(), st.lists(st.tuples(st.integers(0, 6), st.integers(1, 3), needs), max_size=8))
def test_a_rolled_back_trial_is_as_it_was(world, moves):
    snapshot = world.cluster().snapshot()
    trial = Trial(snapshot)
    question = next((p.question for lane in snapshot.pending.values() for p in lane), None)
    before = room(question, trial) if question else None
    for node, replicas, taken in moves:
        if node < len(snapshot.nodes):
            trial.take("a", taken, {node: replicas})
            trial.give("b", taken, {node: 2 * replicas})
            if question:
                room(question, trial)
    trial.rollback(0)

    assert snapshot.free.tolist() == trial.free.tolist()
    assert snapshot.held == trial.held
    assert before == (room(question, trial) if question else None)
