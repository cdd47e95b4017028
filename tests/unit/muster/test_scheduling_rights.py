"""May a job take capacity, and from whom: a case for each sentence of the policy."""

import pytest

from muster.scheduling.cluster import Cluster
from muster.scheduling.snapshot import Displaced, Leaving, Order, Queue, Took
from small_clusters import AT_ONCE, NOW, decided, gang, node, nodes, running

ORG = [Queue("org", guaranteed=4), Queue("a", "org"), Queue("b", "org", guaranteed=4), Queue("c")]
EQUAL = [Queue("a"), Queue("b")]

CASES = {
    "by priority from a lower one in its own queue": (
        Cluster.of(
            nodes=nodes("n1", 4),
            gangs=[running("low", "n1 " * 4), gang("high", 4, priority=1)],
        ),
        ["high takes low by priority", "high starts on n1 n1 n1 n1", "low waits"],
    ),
    "not by an equal priority": (
        Cluster.of(nodes=nodes("n1", 4), gangs=[running("v", "n1 " * 4), gang("g", 4)]),
        ["g waits"],
    ),
    "priority does not reach into another queue": (
        Cluster.of(
            nodes=nodes("n1", 4),
            queues=[Queue("a", guaranteed=4), Queue("b", guaranteed=4)],
            gangs=[running("v", "n1 " * 4, queue="a"), gang("g", 1, queue="b", priority=9)],
        ),
        ["g waits"],
    ),
    "nor to the jobs of a queue below its own": (
        Cluster.of(
            nodes=nodes("n1", 4),
            queues=[Queue("org"), Queue("a", "org", guaranteed=4)],
            gangs=[running("v", "n1 " * 4, queue="a"), gang("g", 1, queue="org", priority=9)],
        ),
        ["g waits"],
    ),
    "never from one that is not preemptible": (
        Cluster.of(
            nodes=nodes("n1", 4),
            gangs=[running("v", "n1 " * 4, is_preemptible=False), gang("g", 4, priority=1)],
        ),
        ["g waits"],
    ),
    "never from one that leaves for somebody else already": (
        Cluster.of(
            nodes=nodes("n1", 4),
            gangs=[
                running("v", "n1 " * 4, leaving=(Leaving("h", None, NOW + 9),)),
                gang("h", 4, priority=1, claim=("n1",) * 4),
                gang("g", 4, priority=2),
            ],
        ),
        ["g waits", "h waits"],
    ),
    "a shield holds until the job has run that long": (
        Cluster.of(
            nodes=nodes("n1", 4),
            queues=[Queue("default", min_run_time=3601.0)],
            gangs=[running("v", "n1 " * 4), gang("g", 4, priority=1)],
        ),
        ["g waits"],
    ),
    "and no longer": (
        Cluster.of(
            nodes=nodes("n1", 4),
            queues=[Queue("default", min_run_time=3600.0)],
            gangs=[running("v", "n1 " * 4), gang("g", 4, priority=1)],
        ),
        ["g takes v by priority", "g starts on n1 n1 n1 n1", "v waits"],
    ),
    "within the guarantee from a queue above its own": (
        Cluster.of(
            nodes=nodes("n1", 4),
            queues=[Queue("a", guaranteed=2), Queue("b")],
            gangs=[
                running("v1", "n1 n1", queue="b"),
                running("v2", "n1 n1", queue="b", ago=60),
                gang("g", 2, queue="a"),
            ],
        ),
        ["g takes v2 by guarantee", "g starts on n1 n1", "v2 waits"],
    ),
    "not from a queue at its guarantee": (
        Cluster.of(
            nodes=nodes("n1", 4),
            queues=[Queue("a", guaranteed=2), Queue("b", guaranteed=4)],
            gangs=[running("v", "n1 " * 4, queue="b"), gang("g", 2, queue="a")],
        ),
        ["g waits"],
    ),
    "an indivisible gang may take the victim's queue below its guarantee": (
        Cluster.of(
            nodes=nodes("n1", 4),
            queues=[Queue("a", guaranteed=1), Queue("b", guaranteed=3)],
            gangs=[running("v", "n1 " * 4, queue="b"), gang("g", 1, queue="a")],
        ),
        ["g takes v by guarantee", "g starts on n1", "v waits"],
    ),
    "but with all other victims gone it is above it": (
        # b holds 4 of 2: with one of the gangs gone it is at its guarantee, and keeps the other.
        Cluster.of(
            nodes=nodes("n1", 4),
            queues=[Queue("a", guaranteed=4), Queue("b", guaranteed=2)],
            gangs=[
                running("v1", "n1 n1", queue="b"),
                running("v2", "n1 n1", queue="b"),
                gang("g", 3, queue="a"),
            ],
        ),
        ["g waits"],
    ),
    "the guarantee has to hold at every level below the common ancestor": (
        # b is guaranteed 4, but org with a and b together no more than 4 either.
        Cluster.of(
            nodes=nodes("n1", 8),
            queues=ORG,
            gangs=[
                running("x", "n1 n1", queue="a", is_preemptible=False),
                running("v", "n1 " * 6, queue="c", ago=60),
                gang("g", 4, queue="b"),
            ],
        ),
        ["g waits"],
    ),
    "the common ancestor's own guarantee does not count": (
        Cluster.of(
            nodes=nodes("n1", 8),
            queues=ORG,
            gangs=[
                running("v1", "n1 " * 4, queue="a"),
                running("v2", "n1 " * 4, queue="a", ago=60),
                gang("g", 4, queue="b"),
            ],
        ),
        ["g takes v2 by guarantee", "g starts on n1 n1 n1 n1", "v2 waits"],
    ),
    "a victim's queue has to be above its guarantee at every level too": (
        # c is above nothing that org is guaranteed: org holds no more than its 4.
        Cluster.of(
            nodes=nodes("n1", 4),
            queues=[*ORG[:3], Queue("c", guaranteed=4)],
            gangs=[running("v", "n1 " * 4, queue="a"), gang("g", 4, queue="c")],
        ),
        ["g waits"],
    ),
    "the guarantee counts what the claimant's queue holds after the victims left": (
        # a holds 2 of 4. Its own low job leaves, so that 4 more are within the guarantee.
        Cluster.of(
            nodes=nodes("n1", 6),
            queues=[Queue("a", guaranteed=4), Queue("b")],
            gangs=[
                running("low", "n1 n1", queue="a"),
                running("v1", "n1 n1", queue="b"),
                running("v2", "n1 n1", queue="b"),
                gang("g", 4, queue="a", priority=1),
            ],
        ),
        [
            "g takes low by priority and v1 by guarantee",
            "g starts on n1 n1 n1 n1",
            "low waits",
            "v1 waits",
        ],
    ),
    "above the guarantee as long as its share is not greater after the move": (
        Cluster.of(
            nodes=nodes("n1", 8),
            queues=EQUAL,
            gangs=[
                running("v1", "n1 " * 4, queue="b"),
                running("v2", "n1 " * 4, queue="b", ago=60),
                gang("g", 4, queue="a"),
            ],
        ),
        ["g takes v2 by share", "g starts on n1 n1 n1 n1", "v2 waits"],
    ),
    "a job that would overshoot waits": (
        Cluster.of(
            nodes=nodes("n1", 8),
            queues=EQUAL,
            gangs=[
                running("v1", "n1 " * 4, queue="b"),
                running("v2", "n1 " * 4, queue="b", ago=60),
                gang("g", 5, queue="a"),
            ],
        ),
        ["g waits"],
    ),
    "a greater weight makes a share smaller": (
        Cluster.of(
            nodes=nodes("n1", 8),
            queues=[Queue("a", weight=3.0), Queue("b")],
            gangs=[
                *[running(f"v{number}", "n1", queue="b", ago=60) for number in range(1, 9)],
                gang("g", 6, queue="a"),
            ],
        ),
        [
            "g takes v1 by share and v2 by share and v3 by share and v4 by share and v5 by share"
            " and v6 by share",
            "g starts on n1 n1 n1 n1 n1 n1",
            *[f"v{number} waits" for number in range(1, 7)],
        ],
    ),
    "weight 0 reclaims nothing above its guarantee": (
        Cluster.of(
            nodes=nodes("n1", 8),
            queues=[Queue("a", weight=0.0, guaranteed=1), Queue("b", weight=0.0)],
            gangs=[running("v", "n1 " * 8, queue="b"), gang("g", 2, queue="a")],
        ),
        ["g waits"],
    ),
    "but its guarantee": (
        Cluster.of(
            nodes=nodes("n1", 8),
            queues=[Queue("a", weight=0.0, guaranteed=2), Queue("b", weight=9.0)],
            gangs=[running("v", "n1 " * 8, queue="b"), gang("g", 2, queue="a")],
        ),
        ["g takes v by guarantee", "g starts on n1 n1", "v waits"],
    ),
    "the two compared are the children of the common ancestor": (
        # b holds nothing, but org with a in it is as far up as c: 4 + 1 > 4 - 1.
        Cluster.of(
            nodes=nodes("n1", 8),
            queues=[Queue("org"), Queue("a", "org"), Queue("b", "org"), Queue("c")],
            gangs=[
                running("x", "n1 " * 4, queue="a", is_preemptible=False),
                *[running(f"v{number}", "n1", queue="c") for number in range(4)],
                gang("g", 1, queue="b"),
            ],
        ),
        ["g waits"],
    ),
    "surplus of an equal priority in its own queue": (
        Cluster.of(
            nodes=nodes("n1", 4),
            gangs=[running("v", "n1 " * 4, min_replicas=1), gang("g", 2)],
        ),
        ["g takes v 2,3 by surplus", "g starts on n1 n1"],
    ),
    "no surplus of a higher priority": (
        Cluster.of(
            nodes=nodes("n1", 4),
            gangs=[running("v", "n1 " * 4, min_replicas=1, priority=1), gang("g", 2)],
        ),
        ["g waits"],
    ),
    "no surplus of one that is not preemptible": (
        Cluster.of(
            nodes=nodes("n1", 4),
            gangs=[running("v", "n1 " * 4, min_replicas=1, is_preemptible=False), gang("g", 2)],
        ),
        ["g waits"],
    ),
    "an elastic job claims for its minimum": (
        Cluster.of(
            nodes=nodes("n1", 4),
            gangs=[
                running("v1", "n1 n1"),
                running("v2", "n1 n1", ago=60),
                gang("g", 4, min_replicas=2, priority=1),
            ],
        ),
        ["g takes v2 by priority", "g starts on n1 n1", "v2 waits"],
    ),
    "who was displaced takes nothing back from the one that displaced it": (
        Cluster.of(
            nodes=nodes("n1", 4),
            queues=[Queue("a", guaranteed=4), Queue("b")],
            gangs=[
                running("g", "n1 " * 4, queue="b", ago=60),
                gang("v", 4, queue="a", is_returning=True, displaced=Displaced("g", 0.0)),
            ],
        ),
        ["v waits"],
    ),
    "until something else changed": (
        Cluster.of(
            nodes=nodes("n1", 4),
            queues=[Queue("a", guaranteed=4), Queue("b")],
            gangs=[
                running("g", "n1 " * 4, queue="b", ago=60),
                gang("v", 4, queue="a", is_returning=True, displaced=Displaced("g", -1.0)),
            ],
        ),
        ["v takes g by guarantee", "v starts on n1 n1 n1 n1", "g waits"],
    ),
    "what was taken at a reserved time is not reclaimed, from any job of its queue": (
        Cluster.of(
            nodes=nodes("n1", 4),
            queues=EQUAL,
            gangs=[
                running("r", "n1", queue="b", took=Took(("a",), 0.0), is_preemptible=False),
                running("v", "n1 n1 n1", queue="b"),
                gang("g", 1, queue="a"),
            ],
        ),
        ["g waits"],
    ),
    "but within the guarantee it is": (
        Cluster.of(
            nodes=nodes("n1", 4),
            queues=[Queue("a", guaranteed=1), Queue("b")],
            gangs=[
                running("r", "n1", queue="b", took=Took(("a",), 0.0), is_preemptible=False),
                running("v", "n1 n1 n1", queue="b"),
                gang("g", 1, queue="a"),
            ],
        ),
        ["g takes v by guarantee", "g starts on n1", "v waits"],
    ),
    "a job of a lower level of attained service preempts one of its priority": (
        Cluster.of(
            nodes=nodes("n1", 4),
            queues=[Queue("default", order=Order.ATTAINED_SERVICE)],
            gangs=[running("v", "n1 " * 4, ago=900), gang("g", 4)],
        ),
        ["g takes v by priority", "g starts on n1 n1 n1 n1", "v waits"],
    ),
    "one below a GPU-hour is still on the lowest level": (
        Cluster.of(
            nodes=nodes("n1", 4),
            queues=[Queue("default", order=Order.ATTAINED_SERVICE)],
            gangs=[running("v", "n1 " * 4, ago=899), gang("g", 4)],
        ),
        ["g waits"],
    ),
    "what it held in earlier runs counts": (
        Cluster.of(
            nodes=nodes("n1", 4),
            queues=[Queue("default", order=Order.ATTAINED_SERVICE)],
            gangs=[running("v", "n1 " * 4, ago=900, attained=0.0), gang("g", 4, attained=3600.0)],
        ),
        ["g waits"],
    ),
    "a shield holds between levels too": (
        Cluster.of(
            nodes=nodes("n1", 4),
            queues=[Queue("default", order=Order.ATTAINED_SERVICE, min_run_time=901.0)],
            gangs=[running("v", "n1 " * 4, ago=900), gang("g", 4)],
        ),
        ["g waits"],
    ),
    "levels do not preempt a higher priority": (
        Cluster.of(
            nodes=nodes("n1", 4),
            queues=[Queue("default", order=Order.ATTAINED_SERVICE)],
            gangs=[running("v", "n1 " * 4, ago=900, priority=1), gang("g", 4)],
        ),
        ["g waits"],
    ),
    "shortest-remaining preempts one that has longer to go": (
        Cluster.of(
            nodes=nodes("n1", 4),
            queues=[Queue("default", order=Order.SHORTEST_REMAINING)],
            gangs=[running("v", "n1 " * 4, max_run_time=3700.0), gang("g", 4, max_run_time=99.0)],
        ),
        ["g takes v by priority", "g starts on n1 n1 n1 n1", "v waits"],
    ),
    "by its ETA, where it reports one": (
        Cluster.of(
            nodes=nodes("n1", 4),
            queues=[Queue("default", order=Order.SHORTEST_REMAINING)],
            gangs=[running("v", "n1 " * 4, eta=NOW + 99.0), gang("g", 4, max_run_time=99.0)],
        ),
        ["g waits"],
    ),
    "a limit that victims leave room under": (
        Cluster.of(
            nodes=[node("n1", 8)],
            queues=[Queue("default", limit=4)],
            gangs=[running("v", "n1 " * 4), gang("g", 4, priority=1)],
        ),
        ["g takes v by priority", "g starts on n1 n1 n1 n1", "v waits"],
    ),
    "nobody leaves for a limit of another queue that binds all the same": (
        Cluster.of(
            nodes=[node("n1", 8)],
            queues=[Queue("org", limit=4), Queue("a", "org"), Queue("b", "org", limit=2)],
            gangs=[running("v", "n1 " * 4, queue="a"), gang("g", 3, queue="b")],
        ),
        ["g waits"],
    ),
}


@pytest.mark.parametrize("claim", CASES)
def test_the_right_to_take(claim):
    cluster, want = CASES[claim]

    assert want == decided(cluster, AT_ONCE)
