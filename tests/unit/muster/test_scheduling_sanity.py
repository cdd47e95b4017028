"""What is said of queues and topologies that make no sense together."""

from typing import Any

import pytest

from muster.scheduling.quota import Held
from muster.scheduling.sanity import (
    Capacity,
    Finding,
    orphan_words,
    queue_findings,
    topology_findings,
)
from muster.scheduling.snapshot import Level, Node, Queue

_PLENTY = Capacity(1000, {"H100": 500, "A100": 500})


def q(name: str, parent: str | None = None, **fields: Any) -> Queue:
    return Queue(name, parent=parent, **fields)


# The claim: queues, what they hold, what the cluster has; then what is said of which queue.
QUEUES: dict[str, tuple[tuple[Queue, ...], Held, Capacity, dict[str, list[tuple[str, str]]]]] = {
    "queues in order are not spoken of": (
        (q("org", guaranteed=8), q("a", "org", guaranteed=4), q("b", "org", guaranteed=4)),
        Held({"org": 8, "a": 8}),
        _PLENTY,
        {},
    ),
    "a parent that is not there": (
        (q("a", "org"),),
        Held(),
        _PLENTY,
        {
            "a": [
                (
                    "UnknownParent",
                    "spec.parent: there is no queue org; until there is, a stands alone, bound "
                    "by its own quota only",
                )
            ]
        },
    ),
    "a ring": (
        (q("a", "b"), q("b", "c"), q("c", "a"), q("d", "a")),
        Held(),
        _PLENTY,
        {
            name: [
                (
                    "ParentCycle",
                    f"spec.parent: {ring} is a ring; until it is broken, each of them counts as "
                    "above the others, and the limits of all bind each",
                )
            ]
            for name, ring in {
                "a": "a -> b -> c -> a",
                "b": "b -> c -> a -> b",
                "c": "c -> a -> b -> c",
            }.items()
        },
    ),
    "its own parent": (
        (q("a", "a"),),
        Held(),
        _PLENTY,
        {
            "a": [
                (
                    "ParentCycle",
                    "spec.parent: a -> a is a ring; until it is broken, each of them counts as "
                    "above the others, and the limits of all bind each",
                )
            ]
        },
    ),
    "a negative weight": (
        (q("a", weight=-0.5),),
        Held(),
        _PLENTY,
        {"a": [("NegativeWeight", "spec.weight: must not be negative, is -0.5; it counts as 0")]},
    ),
    "a limit below the guarantee": (
        (q("a", limit=4, guaranteed=8),),
        Held(),
        _PLENTY,
        {
            "a": [
                (
                    "LimitBelowGuarantee",
                    "spec.limit: 4 is below what the queue is guaranteed, 8; the limit holds",
                )
            ]
        },
    ),
    "a limit of a model below its guarantee": (
        (q("a", limit_by_model={"A100": 9, "H100": 4}, guaranteed_by_model={"H100": 8}),),
        Held(),
        _PLENTY,
        {
            "a": [
                (
                    "LimitBelowGuarantee",
                    "spec.limit.H100: 4 is below what the queue is guaranteed, 8; the limit holds",
                )
            ]
        },
    ),
    "guarantees above the parent's": (
        (
            q("org", guaranteed=8),
            q("a", "org", guaranteed=6),
            q("b", "org", guaranteed=4),
            q("c", "org"),
        ),
        Held(),
        _PLENTY,
        {
            name: [
                (
                    "GuaranteeAboveParent",
                    "spec.guaranteed: the queues below org are guaranteed 10 GPUs together, it "
                    "itself 8; they reclaim theirs from each other, and no more than that from "
                    "queues elsewhere",
                )
            ]
            for name in ("a", "b")
        },
    ),
    "a guarantee of a model above the parent's limit": (
        (
            q("org", limit_by_model={"H100": 4}),
            q("a", "org", guaranteed_by_model={"H100": 8}),
        ),
        Held(),
        _PLENTY,
        {
            "a": [
                (
                    "GuaranteeAboveLimit",
                    "spec.guaranteed: the queues below org are guaranteed 8 H100 GPUs together, "
                    "its limit is 4; the limit holds",
                )
            ]
        },
    ),
    "a parent that is guaranteed nothing says nothing": (
        (q("org"), q("a", "org", guaranteed=6)),
        Held(),
        _PLENTY,
        {},
    ),
    "guarantees above the cluster's": (
        (q("a", guaranteed=6), q("b", guaranteed=4)),
        Held(),
        Capacity(8),
        {
            name: [
                (
                    "GuaranteeAboveCluster",
                    "spec.guaranteed: the queues without a parent are guaranteed 10 GPUs "
                    "together, the cluster has 8; not all can have theirs at once, and the one "
                    "with the lowest share goes first",
                )
            ]
            for name in ("a", "b")
        },
    ),
    "a guarantee of a model that the cluster lacks": (
        (q("a", guaranteed_by_model={"H100": 1}),),
        Held(),
        Capacity(8, {"A100": 8}),
        {
            "a": [
                (
                    "GuaranteeAboveCluster",
                    "spec.guaranteed: the queues without a parent are guaranteed 1 H100 GPUs "
                    "together, the cluster has 0; not all can have theirs at once, and the one "
                    "with the lowest share goes first",
                )
            ]
        },
    ),
    "limits below use": (
        (q("a", limit=8, limit_by_model={"A100": 8, "H100": 2}),),
        Held({"a": 12}, {("a", "A100"): 8, ("a", "H100"): 4}),
        _PLENTY,
        {
            "a": [
                (
                    "LimitBelowUse",
                    "spec.limit: its jobs hold 12 GPUs, the limit is 8; nobody has to leave, and "
                    "nothing starts until they hold less",
                ),
                (
                    "LimitBelowUse",
                    "spec.limit.H100: its jobs hold 4 H100 GPUs, the limit is 2; nobody has to "
                    "leave, and nothing starts until they hold less",
                ),
            ]
        },
    ),
}


@pytest.mark.parametrize("claim", QUEUES)
def test_queues(claim: str) -> None:
    queues, held, capacity, want = QUEUES[claim]
    found = queue_findings({queue.name: queue for queue in queues}, held, capacity)

    assert want == {name: [(f.reason, f.message) for f in each] for name, each in found.items()}


LEVELS = (Level("block", "b"), Level("rack", "r"))


def n(name: str, gpus: int = 8, **labels: str) -> Node:
    return Node(name, gpus, labels)


TOPOLOGIES: dict[str, tuple[tuple[Node, ...], list[tuple[str, str]]]] = {
    "nodes that are labelled are in order": (
        (n("n1", b="b1", r="r1"), n("n2", b="b1", r="r2")),
        [],
    ),
    "a cluster without GPUs says nothing": ((n("n1", 0),), []),
    "nodes without GPUs need no labels": ((n("n1", b="b1", r="r1"), n("cpu", 0)), []),
    "one node lacks a level": (
        (n("n1", b="b1", r="r1"), n("n2", b="b1")),
        [
            (
                "MissingLabels",
                "1 node with GPUs has no label r (n2); jobs that require one rack are not placed "
                "there",
            )
        ],
    ),
    "many nodes lack a level": (
        (n("n0", b="b1", r="r1"), *(n(f"n{i}", r="r1") for i in range(12, 7, -1))),
        [
            (
                "MissingLabels",
                "5 nodes with GPUs have no label b (n8, n9, n10 and 2 more); jobs that require "
                "one block are not placed there",
            )
        ],
    ),
    "no node has a level": (
        (n("n1", r="r1"),),
        [
            (
                "MissingLabels",
                "no node with GPUs has the label b; jobs that require one block do not start",
            )
        ],
    ),
    "a rack in two blocks": (
        (n("n1", b="b1", r="r1"), n("n2", b="b2", r="r1")),
        [
            (
                "OverlappingLevels",
                "rack r1 lies in 2 blocks (b1, b2); each part counts as a rack of its own",
            )
        ],
    ),
    "several racks in several blocks": (
        tuple(n(f"n{b}{r}", b=f"b{b}", r=f"r{r}") for b in range(2) for r in range(3)),
        [
            (
                "OverlappingLevels",
                "rack r0 lies in 2 blocks (b0, b1), and so do 2 more; each part counts as a rack "
                "of its own",
            )
        ],
    ),
}


@pytest.mark.parametrize("claim", TOPOLOGIES)
def test_topologies(claim: str) -> None:
    nodes, want = TOPOLOGIES[claim]

    assert want == [(f.reason, f.message) for f in topology_findings(LEVELS, nodes)]


def test_the_order_of_the_objects_plays_no_part() -> None:
    queues = [q("a", "b"), q("b", "a"), q("c", guaranteed=9)]
    forth = queue_findings({each.name: each for each in queues}, Held(), Capacity(8))
    back = queue_findings({each.name: each for each in reversed(queues)}, Held(), Capacity(8))

    assert list(forth.items()) == list(back.items())


def test_the_capacity_is_that_of_all_nodes() -> None:
    nodes = (
        Node("n1", 8, gpu_model="H100", is_ready=False),
        Node("n2", 4, gpu_model="H100", is_cordoned=True),
        Node("n3", 2),
    )

    assert Capacity(14, {"H100": 12}) == Capacity.of(nodes)


def test_a_job_of_a_queue_that_is_gone_is_told_what_that_means() -> None:
    assert orphan_words("vision").startswith("queue vision is gone; the job goes on")


def test_a_finding_says_which_condition_does_not_hold() -> None:
    queues = {"a": q("a", limit=1, guaranteed=2)}
    held = Held({"a": 2})
    found = queue_findings(queues, held, _PLENTY)["a"]

    assert ["Valid", "WithinLimit"] == [finding.type for finding in found]
    assert all(isinstance(finding, Finding) for finding in found)
