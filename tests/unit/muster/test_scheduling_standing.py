"""Where queues stand, as `muster queues` tells it."""

from muster.scheduling.cluster import Cluster
from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import Queue
from muster.scheduling.standing import standings
from small_clusters import MODELS, gang, holding, nodes


def told(cluster, *names, policy=None, now=0.0):
    """These attributes of each queue, in the order of the list."""
    found = standings(cluster.snapshot(), policy or Policy(), now)
    return [tuple(getattr(each, name) for name in ("name", *names)) for each in map(flat, found)]


class flat:  # noqa: N801
    """A standing whose queue's name is at hand."""

    def __init__(self, standing):
        self.standing = standing

    def __getattr__(self, name):
        return self.standing.queue.name if name == "name" else getattr(self.standing, name)


ORG = [
    Queue("org", guaranteed=16),
    Queue("b", parent="org", guaranteed=8, weight=2.0),
    Queue("a", parent="org"),
    Queue("z"),
]
GANGS = [
    holding(gang("x", 10, queue="b"), " ".join(["n1"] * 8 + ["n2"] * 2)),
    holding(gang("y", 3, queue="a"), "n2 n2 n2"),
    gang("p", 4, 2, queue="a"),
    gang("q", 9, 1, queue="z", min_replicas=2),
]


def test_a_queue_counts_all_below_it_and_comes_before_it():
    cluster = Cluster.of(nodes=nodes("n1 n2 n3"), queues=ORG, gangs=GANGS)

    assert [
        ("default", 0, 0, 0, 0),
        ("org", 0, 13, 8, 0),
        ("a", 1, 3, 8, 3),
        ("b", 1, 10, 0, 2),
        ("z", 0, 0, 9, 0),
    ] == told(cluster, "depth", "usage", "pending", "borrowed")


def test_shares_are_those_of_the_policy():
    cluster = Cluster.of(nodes=nodes("n1 n2 n3"), queues=ORG, gangs=GANGS)

    want = {"default": 0.0, "org": -3 / 16, "a": 3.0, "b": 1.0, "z": 0.0}
    assert want == dict(told(cluster, "share"))


def test_quota_by_model_is_judged_by_model():
    queue = Queue("q", guaranteed_by_model={"H100": 4, "A100": 4})
    running = holding(gang("x", 6, queue="q"), "h1 h1 h1 h1 h1 a1")
    cluster = Cluster.of(nodes=MODELS, queues=[queue], gangs=[running])

    assert ("q", {"A100": 1, "H100": 5}, 1, 1.0) in told(
        cluster, "usage_by_model", "borrowed", "share"
    )


def test_with_a_half_life_usage_decays_towards_what_is_held():
    policy = Policy(usage_half_life=100.0)
    cluster = Cluster.of(nodes=nodes("n1"), gangs=[holding(gang("x", 8), " ".join(["n1"] * 8))])

    assert [("default", 8, 0.0)] == told(cluster, "usage", "decayed", policy=policy)
    assert [("default", 8, 4.0)] == told(cluster, "usage", "decayed", policy=policy, now=100.0)
    assert [("default", 8, 8)] == told(cluster, "usage", "decayed", now=100.0)


def test_queues_in_a_ring_are_told_too():
    ring = [Queue("a", parent="b"), Queue("b", parent="a"), Queue("c", parent="nowhere")]

    assert ["c", "default", "a", "b"] == [
        name for name, _ in told(Cluster.of(queues=ring), "depth")
    ]
