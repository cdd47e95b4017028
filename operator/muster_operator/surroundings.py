"""What jobs run in: nodes, queues, topology and quotas, kept for the scheduler and the checks."""

import logging
from collections.abc import Mapping
from typing import Any

from muster import wire
from muster.errors import InvalidSpec
from muster.parse import QueueAccess, access_of, node_of, queue_of, topology_of
from muster.restarts import NodeState
from muster.scheduling.cluster import Cluster
from muster.scheduling.snapshot import Level, Node, Queue
from muster_operator.quota import Quota, readable
from muster_operator.versions import Versions

_log = logging.getLogger(__name__)
Raw = Mapping[str, Any]


class Surroundings:
    """Each method takes in one piece of news, and says whether anything that matters changed."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.versions = {kind: Versions() for kind in ("nodes", "queues", "topologies")}
        self.queues: dict[str, QueueAccess] = {}
        self.quotas_of: dict[str, Queue] = {}
        self.levels: tuple[Level, ...] = ()
        self.unreadable: dict[tuple[str, str], str] = {}
        """What is wrong with objects whose spec makes no sense by itself."""
        self._raws: dict[str, dict[str, Raw]] = {"queues": {}, "topologies": {}}
        self._nodes: dict[str, tuple[Node, NodeState]] = {}
        self._uids: dict[tuple[str, str], str] = {}
        self._quotas: dict[str, dict[str, Quota]] = {}

    def node_state(self, name: str) -> NodeState:
        """What is known of a node; one that there is no object for is gone."""
        known = self._nodes.get(name)
        return NodeState.GONE if known is None else known[1]

    def raw_of(self, kind: str) -> Mapping[str, Raw]:
        """The queues or topologies as they were read last, by name."""
        return dict(self._raws[kind])

    def quotas(self, namespace: str) -> tuple[Quota, ...]:
        """The resource quotas of *namespace*."""
        return tuple(self._quotas.get(namespace, {}).values())

    def changed(self, kind: str, raw: Raw) -> bool:
        """Take in an object of *kind* (the plural), in any order."""
        if not self.versions[kind].take(raw):
            return False
        name = raw["metadata"]["name"]
        self._uids[kind, name] = raw["metadata"]["uid"]
        self.unreadable.pop((kind, name), None)
        if kind in self._raws:
            self._raws[kind][name] = raw
        take = {"nodes": self._node, "queues": self._queue, "topologies": self._topology}[kind]
        try:
            return take(name, raw)
        except InvalidSpec as error:
            _log.warning("unreadable kind=%s name=%s problem=%r", kind, name, str(error))
            self.unreadable[kind, name] = str(error)
            return self._forget(kind, name)

    def gone(self, kind: str, name: str, uid: str) -> bool:
        """Note that an object is gone, unless another one of its name has taken its place."""
        self.versions[kind].drop(uid)
        if self._uids.get((kind, name)) != uid:
            return False
        del self._uids[kind, name]
        self.unreadable.pop((kind, name), None)
        self._raws.get(kind, {}).pop(name, None)
        return self._forget(kind, name)

    def missing(self, kind: str, listed: Mapping[str, Raw], version: int) -> list[tuple[str, str]]:
        """The (name, uid) of objects that are known and not in a full list of *version*."""
        gone = set(self.versions[kind].missing_from(listed, version))
        return [(name, uid) for (k, name), uid in self._uids.items() if k == kind and uid in gone]

    def quota_changed(self, raw: Raw) -> None:
        """Take in a ResourceQuota. They come from a watch of our own, in order."""
        metadata = raw["metadata"]
        quota = readable(raw)
        if quota is not None:
            self._quotas.setdefault(metadata["namespace"], {})[metadata["name"]] = quota

    def quota_gone(self, raw: Raw) -> None:
        """Note that a ResourceQuota is gone."""
        metadata = raw["metadata"]
        self._quotas.get(metadata["namespace"], {}).pop(metadata["name"], None)

    def _node(self, name: str, raw: Raw) -> bool:
        node = node_of(raw)
        entry = (node, _state_of(raw))
        before = self._nodes.get(name)
        if before == entry:
            return False  # a heartbeat
        self._nodes[name] = entry
        if before is None or before[0] != node:
            self._cluster.upsert_node(node)
        return True

    def _queue(self, name: str, raw: Raw) -> bool:
        queue, access = queue_of(raw), access_of(raw)
        if self.quotas_of.get(name) == queue and self.queues.get(name) == access:
            return False  # somebody wrote its status
        self._cluster.upsert_queue(queue)
        self.quotas_of[name], self.queues[name] = queue, access
        return True

    def _topology(self, name: str, raw: Raw) -> bool:
        if name != wire.DEFAULT_TOPOLOGY:
            return False
        return self._set_levels(topology_of(raw))

    def _set_levels(self, levels: tuple[Level, ...]) -> bool:
        if levels == self.levels:
            return False
        self.levels = levels
        self._cluster.set_levels(levels)
        return True

    def _forget(self, kind: str, name: str) -> bool:
        if kind == "nodes":
            self._cluster.remove_node(name)
            return self._nodes.pop(name, None) is not None
        if kind == "queues":
            self._cluster.remove_queue(name)
            self.quotas_of.pop(name, None)
            return self.queues.pop(name, None) is not None
        return name == wire.DEFAULT_TOPOLOGY and self._set_levels(())


def _state_of(node: Raw) -> NodeState:
    """Whether the control plane still hears of the node."""
    for condition in (node.get("status") or {}).get("conditions") or ():
        if condition["type"] == "Ready" and condition["status"] == "Unknown":
            return NodeState.UNREACHABLE
    return NodeState.UP
