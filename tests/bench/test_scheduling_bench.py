"""How long the scheduling core takes, in processor time of this process, and how that grows.

Figures are for reading; only ratios within one run are held against a bound, since the machine may
be busy with other things.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from muster.scheduling.cluster import Cluster
from muster.scheduling.cycle import plan_cycle
from muster.scheduling.plan import Plan
from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import Gang, Level, Needs, Node, Queue, TopologyRequest

pytestmark = pytest.mark.bench

LEVELS = (Level("zone", "zone"), Level("block", "block"), Level("rack", "rack"))
ONE_GPU = Needs(1, 4_000, 16 << 30)
WHOLE_NODE = Needs(8, 32_000, 128 << 30)


@dataclass
class Stopwatch:
    """Collects what was measured and shows it at the end."""

    lines: list[tuple[str, float]]

    def measure(self, what: str, deed: Callable[[], object], *, per: int = 1) -> float:
        """Milliseconds of processor time that the fastest of three runs took."""
        spent = []
        for _ in range(3):
            start = time.process_time()
            deed()
            spent.append((time.process_time() - start) * 1000 / per)
        self.lines.append((what, min(spent)))
        return min(spent)


@pytest.fixture
def stopwatch(capsys):
    watch = Stopwatch([])
    yield watch
    with capsys.disabled():
        for what, spent in watch.lines:
            sys.stdout.write(f"\n{spent:12.4f} ms  {what}")


def cluster_of(size: int, gpus: int = 8) -> Cluster:
    return Cluster.of(
        levels=LEVELS,
        nodes=[
            Node(
                f"n{number}",
                gpus,
                labels={
                    "zone": f"z{number // 640}",
                    "block": f"b{number // 160}",
                    "rack": f"r{number // 16}",
                    "kubernetes.io/hostname": f"n{number}",
                },
                gpu_model="H100",
                cpu_millis=96_000,
                memory_bytes=1 << 40,
                pods=110,
            )
            for number in range(size)
        ],
    )


def gangs_of(number: int, replicas: int, needs: Needs = ONE_GPU, queues: int = 1) -> list[Gang]:
    return [
        Gang(f"x/g{n}", replicas, replicas, needs, float(n), queue=f"q{n % queues}")
        for n in range(number)
    ]


def submit(cluster: Cluster, gangs: list[Gang]) -> None:
    for queue in sorted({gang.queue for gang in gangs}):
        cluster.upsert_queue(Queue(queue))
    for gang in gangs:
        cluster.upsert_gang(gang)


def carry_out(cluster: Cluster, gangs: list[Gang]) -> Plan:
    plan = plan_cycle(cluster.snapshot(), Policy(), 0.0)
    by_key = {gang.key: gang for gang in gangs}
    for admit in plan.admitted:
        cluster.upsert_gang(replace(by_key[admit.gang], placement=admit.nodes))
    return plan


def planning(cluster: Cluster) -> Callable[[], Plan]:
    return lambda: plan_cycle(cluster.snapshot(), Policy(), 0.0)


@pytest.mark.parametrize(
    ("number", "replicas", "needs"),
    [(300, 16, ONE_GPU), (300, 16, WHOLE_NODE), (3_000, 3, ONE_GPU)],
)
def test_a_decision_costs_far_less_than_ten_times_as_much_on_ten_times_the_nodes(
    stopwatch, number, replicas, needs
):
    shape = f"{number} gangs of {replicas} x {needs.gpus} GPUs"
    spent = {}
    for size in (500, 5_000):
        # A tenth of the nodes gets a tenth of the gangs, so that both are as full.
        gangs = gangs_of(number * size // 5_000, replicas, needs)
        cluster = cluster_of(size)
        submit(cluster, gangs)
        what = (
            f"a decision: {size} nodes, a tenth of {shape}"
            if size == 500
            else (f"a decision: {size} nodes, {shape}")
        )
        spent[size] = stopwatch.measure(what, planning(cluster), per=len(gangs))

    assert spent[5_000] < 8 * spent[500]


def test_a_whole_plan_of_500_gangs_of_8_on_500_nodes(stopwatch):
    cluster = cluster_of(500)
    gangs = gangs_of(500, 8)
    submit(cluster, gangs)

    stopwatch.measure("a plan: 500 nodes, 500 gangs of 8", planning(cluster))

    assert 500 == len(carry_out(cluster, gangs).admitted)


def test_a_gang_of_512_on_nodes_that_are_busy_in_parts(stopwatch):
    cluster = cluster_of(512)
    for number in range(0, 512, 3):
        busy = Gang(f"x/b{number}", 1, 1, ONE_GPU, 0.0, placement=(f"n{number}",))
        cluster.upsert_gang(busy)
    wish = TopologyRequest(preferred="block")
    cluster.upsert_gang(replace(gangs_of(1, 512)[0], queue="default", topology=wish))
    submit(cluster, [])

    stopwatch.measure("a decision: 512 nodes busy in parts, a gang of 512", planning(cluster))


def test_ten_thousand_equal_jobs_that_cannot_start(stopwatch):
    cluster = cluster_of(500)
    filling = gangs_of(500, 8)
    submit(cluster, filling)
    carry_out(cluster, filling)
    submit(cluster, [replace(gang, key=f"x/w{gang.key}") for gang in gangs_of(10_000, 8)])
    stopwatch.measure("a cycle: 10,000 equal jobs wait, nothing changed", planning(cluster))

    running = {gang.key: gang for gang in cluster.snapshot().running}

    def after_a_change() -> None:
        cluster.remove_gang("x/g1")
        plan_cycle(cluster.snapshot(), Policy(), 0.0)
        cluster.upsert_gang(running["x/g1"])
        plan_cycle(cluster.snapshot(), Policy(), 0.0)

    stopwatch.measure("a cycle: the same, after a gang went or came", after_a_change, per=2)


def test_ten_thousand_jobs_in_200_queues_on_100_000_gpus(stopwatch):
    cluster = cluster_of(12_500)
    filling = gangs_of(1_563, 8, WHOLE_NODE)
    submit(cluster, filling)
    carry_out(cluster, filling)
    waiting = [
        replace(gang, key=f"x/w{n}", replicas=1 + n % 7, min_replicas=1 + n % 7)
        for n, gang in enumerate(gangs_of(10_000, 8, queues=200))
    ]
    submit(cluster, waiting)

    stopwatch.measure("a cycle: 12,500 full nodes, 10,000 jobs in 200 queues", planning(cluster))


def test_changes_cost_what_they_change(stopwatch):
    cluster = cluster_of(5_000)
    submit(cluster, gangs_of(1_000, 16))
    cluster.snapshot()
    waiting = Gang("x/h", 16, 16, ONE_GPU, 0.5, queue="q0")
    running = replace(waiting, placement=("n1",) * 8 + ("n2",) * 8)
    small = Node("n5", 7)

    def gang_comes_and_starts() -> None:
        for _ in range(200):
            cluster.upsert_gang(waiting)
            cluster.upsert_gang(running)

    def pod_comes_and_goes() -> None:
        for _ in range(200):
            cluster.upsert_foreign("x/p", "n1", ONE_GPU)
            cluster.remove_foreign("x/p")

    def gpu_fails_and_heals() -> None:
        for number in range(200):
            cluster.upsert_node(replace(small, gpus=number))

    def snapshots() -> None:
        for _ in range(50):
            cluster.upsert_gang(waiting)
            cluster.upsert_gang(running)
            cluster.snapshot()

    stopwatch.measure("upsert_gang: 5,000 nodes, a gang of 16", gang_comes_and_starts, per=400)
    stopwatch.measure("upsert_foreign", pod_comes_and_goes, per=400)
    stopwatch.measure("upsert_node", gpu_fails_and_heals, per=200)
    cluster.snapshot()
    stopwatch.measure("snapshot: 5,000 nodes, a gang started", snapshots, per=50)
