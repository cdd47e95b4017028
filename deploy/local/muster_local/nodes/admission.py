"""Whether a process node can run a pod at all, and what of it has no effect there.

Only computes. Refusals are final: such a pod fails with the reason, as a kubelet's admission does.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from muster import wire
from muster.errors import InvalidSpec
from muster.parse.pod import needs_of
from muster.scheduling.snapshot import Needs
from muster_local.nodes.projection import FILLED
from muster_local.nodes.table import NodeEntry

Raw = Mapping[str, Any]

_VOLUMES: Final = (*FILLED, "emptyDir", "hostPath")
_WITHOUT_EFFECT: Final = (
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
    "securityContext",
    "volumeDevices",
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a pod fails before it starts: as `status.reason` and `status.message`."""

    reason: str
    message: str


def containers_of(pod: Raw) -> tuple[Raw, ...]:
    """Init containers, then the others."""
    spec = pod["spec"]
    return (*(spec.get("initContainers") or ()), *spec["containers"])


def refusal(pod: Raw) -> Refusal | None:
    """Why no process node can run *pod*, if that is so."""
    for volume in pod["spec"].get("volumes") or ():
        if not any(volume.get(kind) is not None for kind in _VOLUMES):
            kinds = ", ".join(key for key in volume if key != "name") or "unknown"
            return Refusal(
                "UnsupportedVolume",
                f"spec.volumes: {volume['name']} is of kind {kinds}; process nodes have "
                f"{', '.join(_VOLUMES)}",
            )
    for container in containers_of(pod):
        if not (container.get("command") or container.get("args")):
            return Refusal(
                "NoCommand",
                f"container {container['name']} has neither command nor args; a process node "
                f"pulls no image, so it does not know the entry point of {container['image']}",
            )
    return None


def misfit(pod: Raw, node: NodeEntry, held: Mapping[str, Needs]) -> Refusal | None:
    """Why *pod* does not fit beside those that *node* runs, as the kubelet would say it.

    *held* is what those take, by uid.
    """
    try:
        needs = needs_of(pod["spec"])
    except InvalidSpec as error:
        return Refusal("UnexpectedAdmissionError", str(error))
    others = tuple(held.values())
    rows = (
        ("pods", 1, len(others), node.pods),
        ("cpu", needs.cpu_millis, sum(o.cpu_millis for o in others), node.cpus * 1000),
        ("memory", needs.memory_bytes, sum(o.memory_bytes for o in others), node.memory_bytes),
        (wire.GPU_RESOURCE, needs.gpus, sum(o.gpus for o in others), node.gpus),
    )
    for resource, asked, used, capacity in rows:
        if asked and asked + used > capacity:
            return Refusal(
                f"OutOf{resource}",
                f"Pod was rejected: Node didn't have enough resource: {resource}, requested: "
                f"{asked}, used: {used}, capacity: {capacity}",
            )
    return None


def without_effect(pod: Raw) -> tuple[str, ...]:
    """The fields that a process node does not carry out, sorted."""
    found = set(_ignored(pod))
    return tuple(sorted(found))


def _ignored(pod: Raw) -> Iterator[str]:
    spec = pod["spec"]
    if spec.get("securityContext"):
        yield "securityContext"
    for container in containers_of(pod):
        yield from (field for field in _WITHOUT_EFFECT if container.get(field))
        limits = (container.get("resources") or {}).get("limits") or {}
        yield from (f"limits.{each}" for each in ("cpu", "memory") if each in limits)
