"""The cluster as the scheduler keeps it between cycles, changed in place by what the watches say."""

from collections.abc import Iterable
from types import MappingProxyType

from muster.scheduling.snapshot import Gang, Level, Needs, Node, Queue, Snapshot


class Cluster:
    """Nodes, queues, gangs and other people's pods; used from one thread."""

    def __init__(self) -> None:
        self._levels: tuple[Level, ...] = ()
        self._nodes: dict[str, Node] = {}
        self._queues: dict[str, Queue] = {}
        self._gangs: dict[str, Gang] = {}
        self._foreign: dict[str, tuple[str, Needs]] = {}

    def set_levels(self, levels: Iterable[Level]) -> None:
        """The levels of the topology, outermost first."""
        self._levels = tuple(levels)

    def upsert_node(self, node: Node) -> None:
        """Take in a node, or what changed about it."""
        self._nodes[node.name] = node

    def remove_node(self, name: str) -> None:
        """Forget a node; what is placed there keeps its place."""
        self._nodes.pop(name, None)

    def upsert_queue(self, queue: Queue) -> None:
        """Take in a queue, or what changed about it."""
        self._queues[queue.name] = queue

    def remove_queue(self, name: str) -> None:
        """Forget a queue."""
        self._queues.pop(name, None)

    def upsert_gang(self, gang: Gang) -> None:
        """Take in a gang, pending or placed; a placed one holds its nodes."""
        self._gangs[gang.key] = gang

    def remove_gang(self, key: str) -> None:
        """Forget a gang and give back what it holds."""
        self._gangs.pop(key, None)

    def upsert_foreign(self, key: str, node_name: str, needs: Needs) -> None:
        """Take in a pod on *node_name* that is not ours."""
        self._foreign[key] = (node_name, needs)

    def remove_foreign(self, key: str) -> None:
        """Forget a pod that is not ours."""
        self._foreign.pop(key, None)

    def snapshot(self) -> Snapshot:
        """The cluster at this moment."""
        return Snapshot(
            levels=self._levels,
            nodes=tuple(self._nodes[name] for name in sorted(self._nodes)),
            queues=MappingProxyType(dict(self._queues)),
            gangs=tuple(self._gangs[key] for key in sorted(self._gangs)),
            foreign=tuple(self._foreign[key] for key in sorted(self._foreign)),
        )
