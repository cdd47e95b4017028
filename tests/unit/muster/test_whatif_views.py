"""The answers as scripts read them."""

from dataclasses import replace
from math import inf

import pytest

from muster.cost import PriceRow
from muster.scheduling.cluster import Cluster
from muster.scheduling.plan import Right, Victim
from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import NOWHERE, Queue, Run
from muster.whatif.losses import cost_of_loss
from muster.whatif.views import nodes_view, queues_view, shown_to, time_of, unknown_because
from small_clusters import gang, holding, node, nodes

H100 = [
    PriceRow("H100", "on-demand", 0, 3_600_000),
    PriceRow("H100", "on-demand", 95_000, 7_200_000),
    PriceRow("H100", "spot", 0, 360_000),
]
RUNNING = holding(gang("t/x", 3, 2, run=Run(0.0)), "n1 n1 n2")


def objects_with(*gangs, **more):
    told = nodes("n1 n2", gpu_model="H100", **more)
    return Cluster.of(nodes=told, gangs=gangs).objects()


LOSSES = {
    # Ten seconds of six GPUs, five of them at twice the price.
    "by dated prices": (objects_with(RUNNING), 60, 90_000),
    "a node that does not say is on-demand, a spot node is not": (
        objects_with(RUNNING, capacity_type="spot"),
        60,
        6_000,
    ),
    "nothing for surplus": (objects_with(RUNNING), 0, 0),
    "nothing for who is gone": (objects_with(), 60, 0),
    "unknown without a price": (
        Cluster.of(nodes=nodes("n1 n2"), gangs=[RUNNING]).objects(),
        60,
        None,
    ),
}


@pytest.mark.parametrize("claim", LOSSES)
def test_lost_work_costs(claim):
    objects, lost, want = LOSSES[claim]
    victim = Victim("t/x", None, Right.PRIORITY, lost)

    assert want == cost_of_loss(victim, objects, H100, 100.0)


def test_a_lost_rank_costs_nothing_more():
    whole = holding(gang("t/x", 2, 6, run=Run(0.0)), "n1 n1")
    wounded = replace(whole, placement=("n1", NOWHERE))
    victim = Victim("t/x", None, Right.PRIORITY, 60)

    assert 90_000 == cost_of_loss(victim, objects_with(wounded), H100, 100.0)


def test_the_state_of_a_node_is_one_word():
    told = [
        node("n1"),
        node("n2", is_cordoned=True),
        node("n3", is_cordoned=True, is_draining=True),
        node("n4", is_ready=False, is_cordoned=True),
    ]
    cluster = Cluster.of(nodes=told)
    items = nodes_view(cluster.snapshot(), cluster.objects())["items"]

    assert ["up", "cordoned", "drained", "down"] == [item["state"] for item in items]


def test_an_infinite_share_is_no_number():
    running = holding(gang("t/x", 1, queue="q"), "n1")
    cluster = Cluster.of(nodes=nodes("n1"), queues=[Queue("q", weight=0.0)], gangs=[running])
    snapshot = cluster.snapshot()
    shares = {i["name"]: i["share"] for i in queues_view(snapshot, Policy(), 0.0)["items"]}

    assert {"default": 0, "q": None} == shares


def test_names_are_shown_to_whom_they_concern():
    shown = shown_to({"a": True, "b": False})

    assert ["a/x", "b/…", "c/…", "plain"] == [shown(n) for n in ("a/x", "b/y", "c/z", "plain")]


@pytest.mark.parametrize(
    ("code", "words"),
    [("NeverFits", "never starts"), ("Suspended", "resumed"), ("QueueLimit", "no maxRunTime")],
)
def test_why_nobody_knows_when_a_job_starts(code, words):
    assert words in unknown_because(code)


def test_times_are_utc():
    assert (None, "1970-01-01T00:00:01.500Z") == (time_of(None), time_of(1.5))


def test_weights_that_are_odd_are_told_as_they_are():
    cluster = Cluster.of(queues=[Queue("q", weight=inf), Queue("r", weight=1.5)])
    items = queues_view(cluster.snapshot(), Policy(), 0.0)["items"]

    assert {"default": 1, "q": inf, "r": 1.5} == {i["name"]: i["weight"] for i in items}
