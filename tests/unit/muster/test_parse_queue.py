from typing import Any

import pytest

from muster.errors import InvalidSpec
from muster.parse import QueueAccess, access_of, admissible, queue_of, topology_of
from muster.scheduling.snapshot import Level, Order, Queue, TieBreak


def a_queue(**spec: Any) -> dict[str, Any]:
    metadata = {"name": "vision", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"metadata": metadata, "spec": spec}


CREATED = 1_767_225_600.0

QUEUES = {
    "nothing said means no limit": ({}, Queue("vision", created=CREATED)),
    "a limit in all": (
        {"limit": 8, "parent": "all", "paused": True},
        Queue("vision", parent="all", limit=8, is_paused=True, created=CREATED),
    ),
    "no GPUs at all": ({"limit": 0}, Queue("vision", limit=0, created=CREATED)),
    "a limit for each model, by the names that nodes get": (
        {"limit": {"h100": 8, "NVIDIA-A100-SXM4-80GB": 0}},
        Queue("vision", limit_by_model={"H100": 8, "A100": 0}, created=CREATED),
    ),
    "what it is guaranteed, and its part of the rest": (
        {"guaranteed": 4, "weight": 2.5},
        Queue("vision", guaranteed=4, weight=2.5, created=CREATED),
    ),
    "a guarantee for each model": (
        {"guaranteed": {"H100": 4}, "weight": 0},
        Queue("vision", guaranteed_by_model={"H100": 4}, weight=0.0, created=CREATED),
    ),
    "who goes first, and how long nobody may evict it": (
        {
            "order": "attained-service",
            "perUserLimit": 2,
            "minRunTimeBeforePreemption": "1h30m",
            "tieBreak": ["spot"],
        },
        Queue(
            "vision",
            order=Order.ATTAINED_SERVICE,
            per_user_limit=2,
            min_run_time=5400.0,
            tie_break=(TieBreak.SPOT,),
            created=CREATED,
        ),
    ),
}


@pytest.mark.parametrize("claim", QUEUES)
def test_a_queue_is_read(claim: str) -> None:
    spec, want = QUEUES[claim]
    assert want == queue_of(a_queue(**spec))


BAD_QUEUES = {
    "a negative limit": ({"limit": -1}, "spec.limit: must be at least 0, is -1"),
    "a limit in words": ({"limit": "8"}, "spec.limit: must be a whole number, is '8'"),
    "a limit that is true": ({"limit": True}, "spec.limit: must be a whole number, is True"),
    "a limit that is a list": ({"limit": [8]}, "spec.limit: must be a whole number, is a list"),
    "a negative limit of a model": (
        {"limit": {"H100": -1}},
        "spec.limit.H100: must be at least 0, is -1",
    ),
    "a limit of no model": (
        {"limit": {"nvidia": 1}},
        "spec.limit.nvidia: must be the number of GPUs of a model",
    ),
    "no limit of a model": (
        {"limit": {"H100": None}},
        "spec.limit.H100: must be the number of GPUs of a model",
    ),
    "one model by two names": (
        {"limit": {"H100": 1, "h100": 2}},
        "spec.limit.h100: H100 is there twice",
    ),
    "a guarantee in words": (
        {"guaranteed": "8"},
        "spec.guaranteed: must be a whole number, is '8'",
    ),
    "a guarantee of no model": (
        {"guaranteed": {"nvidia": 1}},
        "spec.guaranteed.nvidia: must be the number of GPUs of a model",
    ),
    "a negative weight": ({"weight": -0.5}, "spec.weight: must be at least 0, is -0.5"),
    "a weight in words": ({"weight": "2"}, "spec.weight: must be a number, is '2'"),
    "an unknown order": (
        {"order": "lifo"},
        "spec.order: must be one of fifo, attained-service, shortest-remaining, is 'lifo'",
    ),
    "a time in words": (
        {"minRunTimeBeforePreemption": "soon"},
        "spec.minRunTimeBeforePreemption: 'soon' is no duration; write it as 1h30m, 90s or 500ms",
    ),
    "an unknown tie-break": (
        {"tieBreak": ["spot", "price"]},
        "spec.tieBreak[1]: must be one of health, spot, is 'price'",
    ),
    "a negative limit of a user": (
        {"perUserLimit": -1},
        "spec.perUserLimit: must be at least 0, is -1",
    ),
    "its own parent": ({"parent": "vision"}, "spec.parent: must name another queue"),
    "a pause in words": ({"paused": "yes"}, "spec.paused: must be true or false, is 'yes'"),
}


@pytest.mark.parametrize("claim", BAD_QUEUES)
def test_a_bad_queue_is_refused_with_the_path_of_the_field(claim: str) -> None:
    spec, want = BAD_QUEUES[claim]
    with pytest.raises(InvalidSpec) as refused:
        queue_of(a_queue(**spec))
    assert want == str(refused.value)


def test_who_may_use_a_queue_is_read() -> None:
    obj = a_queue(namespaces=["a", "b"], users=["jane"])
    assert QueueAccess("vision", ("a", "b"), ("jane",)) == access_of(obj)


ACCESS = {
    "a queue that names nobody takes everybody": (QueueAccess("q"), "ns", "joe", None),
    "a namespace that is named": (QueueAccess("q", ("ns",)), "ns", "joe", None),
    "another namespace": (
        QueueAccess("q", ("a", "b")),
        "ns",
        "joe",
        "queue q takes jobs of the namespaces a, b only, not of ns",
    ),
    "a user who is named": (QueueAccess("q", (), ("joe",)), "ns", "joe", None),
    "another user": (
        QueueAccess("q", (), ("jane",)),
        "ns",
        "joe",
        "queue q does not take jobs of joe",
    ),
    "a user that nobody recorded": (
        QueueAccess("q", (), ("jane",)),
        "ns",
        "",
        "queue q does not take jobs of a user that is not recorded",
    ),
    "the right user in the wrong namespace": (
        QueueAccess("q", ("a",), ("joe",)),
        "ns",
        "joe",
        "queue q takes jobs of the namespaces a only, not of ns",
    ),
    "both right": (QueueAccess("q", ("ns",), ("joe",)), "ns", "joe", None),
}


@pytest.mark.parametrize("claim", ACCESS)
def test_a_queue_takes_the_jobs_of_whom_it_names(claim: str) -> None:
    queue, namespace, user, want = ACCESS[claim]
    assert want == admissible(queue, namespace, user)


def test_the_levels_come_outermost_first() -> None:
    levels = [
        {"name": "block", "label": "muster.dev/block"},
        {"name": "rack", "label": "muster.dev/rack", "switch": True},
    ]
    want = (Level("block", "muster.dev/block"), Level("rack", "muster.dev/rack", is_switch=True))
    assert want == topology_of({"spec": {"levels": levels}})


BAD_LEVELS = {
    "the node itself": ([{"name": "node", "label": "a"}], "[0].name: must not be node"),
    "a name twice": (
        [{"name": "rack", "label": "a"}, {"name": "rack", "label": "b"}],
        "[1].name: rack is there twice",
    ),
    "a label twice": (
        [{"name": "block", "label": "a"}, {"name": "rack", "label": "a"}],
        "[1].label: a is there twice",
    ),
    "no label": ([{"name": "rack"}], "[0].label: is missing"),
}


@pytest.mark.parametrize("claim", BAD_LEVELS)
def test_a_bad_level_is_refused_with_the_path_of_the_field(claim: str) -> None:
    levels, want = BAD_LEVELS[claim]
    with pytest.raises(InvalidSpec) as refused:
        topology_of({"spec": {"levels": levels}})
    assert str(refused.value).startswith(f"spec.levels{want}")
