"""What the pods of one node hold: amounts, and which of its simulated GPUs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from muster import wire
from muster.parse.pod import needs_of
from muster.parse.quantity import whole
from muster.scheduling.snapshot import Needs
from muster_local.nodes.admission import Refusal, containers_of, misfit
from muster_local.nodes.table import NodeEntry

Raw = Mapping[str, Any]
Grant = Mapping[str, Sequence[int]]
"""Device indexes by container."""

NOTHING: Final[Grant] = {}


@dataclass(slots=True)
class Holdings:
    """Who holds what, by the pods' uids."""

    _needs: dict[str, Needs] = field(default_factory=dict)
    _grants: dict[str, Grant] = field(default_factory=dict)

    def take(self, pod: Raw, node: NodeEntry) -> Grant | Refusal:
        """Let *pod* hold what it needs of *node*, or say what is missing."""
        if refused := misfit(pod, node, self._needs):
            return refused
        uid = pod["metadata"]["uid"]
        grant = self._assign(pod, node)
        self.restore(pod, grant)
        return self._grants[uid]

    def restore(self, pod: Raw, grant: Grant) -> None:
        """Let *pod* hold what it held before a restart."""
        uid = pod["metadata"]["uid"]
        self._needs[uid] = needs_of(pod["spec"])
        self._grants[uid] = grant

    def give_back(self, uid: str) -> None:
        """Free what that pod holds; harmless when it holds nothing."""
        self._needs.pop(uid, None)
        self._grants.pop(uid, None)

    def _assign(self, pod: Raw, node: NodeEntry) -> Grant:
        """The lowest free devices for each container. Init containers run before the others and
        share devices with them, as the kubelet lets them."""
        taken = {i for grant in self._grants.values() for held in grant.values() for i in held}
        free = [index for index in range(node.gpus) if index not in taken]
        grant: dict[str, Sequence[int]] = {}
        start = 0
        regular = {container["name"] for container in pod["spec"]["containers"]}
        for container in containers_of(pod):
            limits = (container.get("resources") or {}).get("limits") or {}
            count = whole(limits.get(wire.GPU_RESOURCE, 0))
            if not count:
                continue
            is_regular = container["name"] in regular
            grant[container["name"]] = free[start if is_regular else 0 :][:count]
            start += count if is_regular else 0
        return grant
