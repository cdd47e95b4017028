"""Clusters for the shapes: nodes in three levels of topology, and gangs that run on them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from muster.scheduling.cluster import Cluster
from muster.scheduling.plan import Admit, Plan, Preempt
from muster.scheduling.snapshot import Displaced, Gang, Level, Needs, Node, Queue, Run

GPUS: Final = 8
"""Of each node."""
RACK: Final = 16
"""Nodes of a rack."""
BLOCK: Final = 4 * RACK
ZONE: Final = 8 * BLOCK
LEVELS: Final = (
    Level("zone", "topology.kubernetes.io/zone"),
    Level("block", "network.topology.nvidia.com/block", is_switch=True),
    Level("rack", "network.topology.nvidia.com/rack", is_switch=True),
)
HOUR: Final = 3_600.0
NOW: Final = 100 * HOUR


def gpus(number: int) -> Needs:
    """What a pod with so many GPUs takes beside them."""
    return Needs(number, 8_000 * number, (64 << 30) * number)


def nodes(number: int) -> list[Node]:
    """Equal nodes, 16 to a rack, 4 racks to a block, 8 blocks to a zone."""
    return [
        Node(
            node(place),
            GPUS,
            labels={
                LEVELS[0].label: f"z{place // ZONE}",
                LEVELS[1].label: f"b{place // BLOCK}",
                LEVELS[2].label: f"r{place // RACK}",
                "kubernetes.io/hostname": node(place),
            },
            gpu_model="H100",
            cpu_millis=96_000,
            memory_bytes=1 << 40,
            pods=110,
        )
        for place in range(number)
    ]


def node(place: int) -> str:
    """The name of a node."""
    return f"n{place}"


def pending(name: str, queue: str, replicas: int, needs: Needs, submitted: float) -> Gang:
    """A rigid gang that waits."""
    return Gang(f"team/{name}", replicas, replicas, needs, submitted, queue=queue)


def running(gang: Gang, placement: Sequence[str], started: float) -> Gang:
    """The same gang since it was started."""
    return replace(gang, placement=tuple(placement), run=Run(started))


@dataclass(slots=True)
class Scene:
    """A cluster and its gangs, on which plans are carried out at once."""

    cluster: Cluster
    gangs: dict[str, Gang]
    changes: float = 0.0

    @classmethod
    def of(cls, nodes: Iterable[Node], queues: Iterable[Queue], gangs: Iterable[Gang]) -> "Scene":
        """A cluster with all of it, ready for a pass."""
        known = {gang.key: gang for gang in gangs}
        cluster = Cluster.of(levels=LEVELS, nodes=nodes, queues=queues, gangs=known.values())
        cluster.snapshot()
        return cls(cluster, known)

    def put(self, gang: Gang) -> None:
        """Take in a gang, or what changed about it."""
        self.gangs[gang.key] = gang
        self.cluster.upsert_gang(gang)

    def submit(self, gang: Gang) -> None:
        """A new gang, from outside."""
        self._change()
        self.put(gang)

    def end(self, key: str) -> None:
        """A gang is done."""
        self._change()
        del self.gangs[key]
        self.cluster.remove_gang(key)

    def carry_out(self, plan: Plan, now: float) -> int:
        """Do what the plan says to rigid gangs; victims leave at once. How many it concerned."""
        number = 0
        for deed in plan.deeds:
            if isinstance(deed, Preempt):
                for victim in deed.victims:
                    self._evict(self.gangs[victim.gang], deed.gang)
                number += len(deed.victims)
            elif isinstance(deed, Admit):
                gang = replace(self.gangs[deed.gang], displaced=None, is_returning=False, claim=())
                self.put(replace(gang, placement=deed.nodes, run=Run(now, behind=deed.behind)))
                number += 1
        return number

    def _evict(self, gang: Gang, claimant: str) -> None:
        displaced = Displaced(claimant, self.changes)
        self.put(replace(gang, placement=None, run=None, is_returning=True, displaced=displaced))

    def _change(self) -> None:
        self.changes += 1
        self.cluster.set_changed(self.changes)

    def anew(self) -> "Scene":
        """The same objects in a new cluster, which has answered nothing yet."""
        snapshot = self.cluster.snapshot()
        queues = snapshot.quotas.queues.values()
        scene = Scene.of(snapshot.nodes, queues, self.gangs.values())
        scene.changes = self.changes
        scene.cluster.set_changed(self.changes)
        return scene


def singles(queue: str, places: Iterable[int], *, start: int = 0) -> Iterator[Gang]:
    """Jobs of one GPU that fill the nodes, started one after the other, some with a checkpoint."""
    number = start
    for place in places:
        for _ in range(GPUS):
            began = NOW - HOUR - 60.0 * (number % 997)
            gang = running(
                pending(f"{queue}-{number}", queue, 1, gpus(1), began - 60.0), [node(place)], began
            )
            if number % 3 == 0:
                assert gang.run is not None
                gang = replace(gang, run=replace(gang.run, saved=NOW - 10.0 * (number % 89)))
            yield gang
            number += 1
