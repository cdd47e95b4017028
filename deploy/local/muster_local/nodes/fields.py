"""What the downward API says: fields and resources of a pod as text.

Only computes. The API server has validated the references, so an unknown one is answered with an
error that names it and no more.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from muster.errors import InvalidSpec
from muster.parse.quantity import millis

LOOPBACK: Final = "127.0.0.1"
"""The address of every process node, and of every pod on one."""

Raw = Mapping[str, Any]

_SUBSCRIPT: Final = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")
_PLAIN: Final = {
    "spec.nodeName": ("spec", "nodeName"),
    "spec.serviceAccountName": ("spec", "serviceAccountName"),
    "metadata.name": ("metadata", "name"),
    "metadata.namespace": ("metadata", "namespace"),
    "metadata.uid": ("metadata", "uid"),
}
_ADDRESSES: Final = ("status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs")


def field_of(pod: Raw, path: str) -> str:
    """The text of the field that a `fieldRef` names. Raises `InvalidSpec`."""
    if path in _ADDRESSES:
        return LOOPBACK
    if path in _PLAIN:
        part, key = _PLAIN[path]
        return str(pod[part].get(key) or "")
    if path in ("metadata.labels", "metadata.annotations"):
        values: Raw = pod["metadata"].get(path.removeprefix("metadata.")) or {}
        return "\n".join(f"{key}={_quoted(values[key])}" for key in sorted(values))
    if match := _SUBSCRIPT.fullmatch(path):
        return str((pod["metadata"].get(match[1]) or {}).get(match[2], ""))
    raise InvalidSpec(path, "is no field that a process node can tell")


def resource_of(pod: Raw, container: Raw, reference: Raw, allocatable: Mapping[str, str]) -> str:
    """The amount that a `resourceFieldRef` names, in units of its divisor, rounded up.

    *container* is the one that asks, unless the reference names another. A missing limit is what
    the node has. Raises `InvalidSpec`.
    """
    wanted = reference.get("containerName")
    if wanted:
        spec = pod["spec"]
        everyone = (*spec.get("initContainers", ()), *spec["containers"])
        found = [each for each in everyone if each["name"] == wanted]
        if not found:
            raise InvalidSpec("resourceFieldRef.containerName", f"there is no container {wanted}")
        container = found[0]
    kind, _, resource = reference["resource"].partition(".")
    resources = container.get("resources") or {}
    amount = (resources.get(kind) or {}).get(resource)
    if amount is None:
        amount = allocatable.get(resource, "0") if kind == "limits" else "0"
    divisor = millis(reference.get("divisor") or "1") or 1000
    return str(-(-millis(amount) // divisor))


def _quoted(value: str) -> str:
    """*value* as Go's `strconv.Quote` writes it, which is what the kubelet uses."""
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return '"' + "".join(escapes.get(letter, letter) for letter in value) + '"'
