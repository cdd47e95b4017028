"""Capacity that is held for the first gang that cannot start yet, and who starts behind it."""

import pytest

from muster.scheduling.cluster import Cluster
from muster.scheduling.cycle import plan_cycle
from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import Queue
from small_clusters import AT_ONCE, NOW, RESERVED, decided, gang, node, nodes, running

HOUR = 3600.0
BUSY = running("busy", "n1 " * 4, max_run_time=2 * HOUR, is_preemptible=False)
ENDLESS = running("busy", "n1 " * 4, is_preemptible=False)
FIRST = gang("first", 2, 4, submitted=1.0, priority=2)


def behind(busy=BUSY, *, queues=(), **more) -> Cluster:
    """n1 is busy for an hour to come, n2 is free; *first* needs both, *g* comes later."""
    late = {"submitted": 2.0, "is_preemptible": False, **more}
    return Cluster.of(
        nodes=nodes("n1 n2", 4), queues=queues, gangs=[busy, FIRST, gang("g", 1, 4, **late)]
    )


CASES = {
    "one that ends in time starts behind it": (
        behind(max_run_time=HOUR),
        ["g starts on n2", "first waits"],
    ),
    "one that may end later does not": (behind(max_run_time=HOUR + 1), ["first waits", "g waits"]),
    "one that declares no limit counts as endless": (behind(), ["first waits", "g waits"]),
    "what it has run already counts": (
        behind(max_run_time=2 * HOUR, ran=HOUR),
        ["g starts on n2", "first waits"],
    ),
    "one that may be moved starts, whatever it declares": (
        behind(is_preemptible=True),
        ["g starts on n2 behind first", "first waits"],
    ),
    "but not while it is shielded at the reserved time": (
        behind(is_preemptible=True, queues=[Queue("default", min_run_time=HOUR + 1)]),
        ["first waits", "g waits"],
    ),
    "a shield that ends by then does not matter": (
        behind(is_preemptible=True, queues=[Queue("default", min_run_time=HOUR)]),
        ["g starts on n2 behind first", "first waits"],
    ),
    "one that leaves the gang its place starts, however long it runs": (
        Cluster.of(
            nodes=nodes("n1 n2 n3", 4),
            gangs=[
                BUSY,
                running("busy2", "n2 " * 4, max_run_time=2 * HOUR, is_preemptible=False),
                FIRST,
                gang("g", 1, 4, submitted=2.0, is_preemptible=False),
            ],
        ),
        ["g starts on n3", "first waits"],
    ),
    "an ETA that a job reports counts as its end": (
        behind(running("busy", "n1 " * 4, eta=NOW + 50, is_preemptible=False), max_run_time=50.0),
        ["g starts on n2", "first waits"],
    ),
    "with an unknown start one with a limit starts": (
        behind(ENDLESS, max_run_time=9 * HOUR),
        ["g starts on n2", "first waits"],
    ),
    "with an unknown start one that may be moved starts": (
        behind(ENDLESS, is_preemptible=True),
        ["g starts on n2 behind first", "first waits"],
    ),
    "with an unknown start others use nothing that the gang could use": (
        behind(ENDLESS),
        ["first waits", "g waits"],
    ),
    "a job that is overdue counts as endless": (
        behind(running("busy", "n1 " * 4, max_run_time=9.0, is_preemptible=False)),
        ["first waits", "g waits"],
    ),
    "a node that is too small for the gang is nobody's to hold": (
        Cluster.of(
            nodes=[*nodes("n1 n2", 4), node("n3", 2)],
            gangs=[ENDLESS, FIRST, gang("g", 1, 2, submitted=2.0, is_preemptible=False)],
        ),
        ["g starts on n3", "first waits"],
    ),
    "a gang that never fits holds nothing": (
        Cluster.of(
            nodes=nodes("n1", 4),
            gangs=[gang("first", 2, 4), gang("g", 1, 4, submitted=2.0, is_preemptible=False)],
        ),
        ["g starts on n1", "first waits"],
    ),
    "nor does one that comes after another": (
        Cluster.of(
            nodes=nodes("n1 n2", 4),
            gangs=[
                BUSY,
                gang("first", 2, 4, priority=2, held_back="it comes after busy"),
                gang("g", 1, 4, is_preemptible=False),
            ],
        ),
        ["g starts on n2", "first waits"],
    ),
    "nor does one whose queue is paused": (
        Cluster.of(
            nodes=nodes("n1 n2", 4),
            queues=[Queue("p", is_paused=True)],
            gangs=[
                BUSY,
                gang("first", 2, 4, queue="p"),
                gang("g", 1, 4, submitted=2.0, is_preemptible=False),
            ],
        ),
        ["g starts on n2", "first waits"],
    ),
    "one that only its limit keeps out holds its place": (
        Cluster.of(
            nodes=nodes("n1 n2", 4),
            queues=[Queue("q", limit=4)],
            gangs=[
                running("busy", "n1 n1", queue="q", max_run_time=2 * HOUR, is_preemptible=False),
                gang("first", 1, 4, queue="q", submitted=1.0),
                gang("g", 2, queue="q", submitted=2.0, is_preemptible=False),
                gang("short", 2, queue="q", submitted=3.0, max_run_time=HOUR),
            ],
        ),
        ["short starts on n1 n1 behind first", "first waits", "g waits"],
    ),
    "what it may evict by then counts as free": (
        # At the reserved time low leaves; g may not be on n3 then.
        Cluster.of(
            nodes=nodes("n1 n2 n3", 4),
            gangs=[
                BUSY,
                running("low", "n2 " * 4),
                gang("first", 3, 4, priority=2),
                gang("g", 1, 4, priority=1, max_run_time=HOUR + 1, is_preemptible=False),
            ],
        ),
        ["first waits", "g waits"],
    ),
    "one reservation for each kind of node": (
        Cluster.of(
            nodes=[node("h1", 4, gpu_model="H100"), node("a1", 4, gpu_model="A100")],
            gangs=[
                running("x", "h1", is_preemptible=False),
                running("y", "a1", is_preemptible=False),
                gang("hopper", 4, gpu_models=("H100",)),
                gang("ampere", 4, gpu_models=("A100",)),
                gang("g", gpu_models=("A100",), submitted=9.0, is_preemptible=False),
            ],
        ),
        ["ampere waits", "hopper waits", "g waits"],
    ),
    "within its guarantee a request does not yield to another queue's gang": (
        Cluster.of(
            nodes=nodes("n1 n2", 4),
            queues=[Queue("a", guaranteed=4), Queue("b")],
            gangs=[
                running("busy", "n1 " * 4, queue="b", is_preemptible=False),
                gang("first", 2, 4, queue="b"),
                gang("g", 1, 4, queue="a", is_preemptible=False),
            ],
        ),
        ["g starts on n2", "first waits"],
    ),
    "nor does it leave for that gang later": (
        Cluster.of(
            nodes=nodes("n1 n2", 4),
            queues=[Queue("a", guaranteed=4), Queue("b")],
            gangs=[
                running("busy", "n1 " * 4, queue="b", is_preemptible=False),
                gang("first", 2, 4, queue="b"),
                gang("g", 1, 4, queue="a"),
            ],
        ),
        ["g starts on n2", "first waits"],
    ),
    "at its time the gang takes what started behind it, whatever its priority or queue": (
        Cluster.of(
            nodes=nodes("n1 n2", 4),
            queues=[Queue("a"), Queue("b", weight=9.0)],
            gangs=[
                running("g", "n2 " * 4, queue="b", priority=9, behind=("first",)),
                gang("first", 2, 4, queue="a"),
            ],
        ),
        ["first takes g by reservation", "first starts on n1 n2", "g waits"],
    ),
    "surplus that was given behind it goes as well": (
        Cluster.of(
            nodes=nodes("n1", 4),
            queues=[Queue("a"), Queue("b")],
            gangs=[
                running("e", "n1 n1 n1", min_replicas=2, queue="b", grown_behind=("first",)),
                gang("first", 1, 2, queue="a"),
            ],
        ),
        ["first takes e 2 by reservation", "first starts on n1"],
    ),
}


@pytest.mark.parametrize("claim", CASES)
def test_who_waits_and_who_does_not(claim):
    cluster, want = CASES[claim]

    assert want == decided(cluster, RESERVED)


def test_without_reservations_whoever_fits_starts():
    assert ["g starts on n2", "first waits"] == decided(behind(), AT_ONCE)


@pytest.mark.parametrize(("busy", "want"), [(BUSY, NOW + HOUR), (ENDLESS, None)])
def test_the_reserved_time_is_told(busy, want):
    plan = plan_cycle(behind(busy).snapshot(), Policy(), NOW)
    (first,) = (wait for wait in plan.waiting if wait.gang == "first")

    assert (want, "busy" if want else "") == (first.predicted_start, first.waits_for)
