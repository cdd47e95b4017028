"""A container's environment, command and arguments, by the rules of Kubernetes.

Only computes. What the platform itself adds is in `Platform`; what a pod says wins over it, except
that the directory of our Python stays first on PATH.
"""

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from muster.errors import InvalidSpec
from muster_local.nodes.fields import field_of, resource_of
from muster_local.nodes.sources import Kind, Source, Sources, content_of, value_of

Raw = Mapping[str, Any]

VISIBLE_DEVICES: Final = "NVIDIA_VISIBLE_DEVICES"
"""The simulated devices that the container holds. CUDA_VISIBLE_DEVICES is left alone: on a machine
with fewer real GPUs than simulated ones it would hide them all."""

_KEPT: Final = ("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "LOGNAME", "TMPDIR", "TZ", "USER")
_REFERENCE: Final = re.compile(r"\$(?:\$|\(([^)]*)\))")


def expand(text: str, variables: Mapping[str, str]) -> str:
    """*text* with `$(NAME)` replaced; unknown names stay as they are, `$$` is a dollar."""

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name is None:
            return "$"
        return variables.get(name, match[0])

    return _REFERENCE.sub(value, text)


def machine_environment(outer: Mapping[str, str], programs: str) -> dict[str, str]:
    """What a container sees of the machine's own environment: little, and no secrets.

    *programs* is the directory that leads PATH.
    """
    kept = {name: outer[name] for name in _KEPT if name in outer}
    return {**kept, "PATH": leading(outer.get("PATH", os.defpath), programs)}


def leading(path: str, programs: str) -> str:
    """The search *path* with *programs* in front."""
    rest = [part for part in path.split(os.pathsep) if part and part != programs]
    return os.pathsep.join((programs, *rest))


def environment_of(
    pod: Raw,
    container: Raw,
    sources: Sources,
    *,
    platform: Mapping[str, str],
    allocatable: Mapping[str, str],
) -> dict[str, str]:
    """The environment of *container*, on top of *platform*.

    Raises `Missing` for what may still come, `InvalidSpec` for what cannot be told.
    """
    variables = dict(platform)
    for each in container.get("envFrom") or ():
        variables.update(_whole(each, sources))
    for variable in container.get("env") or ():
        if "valueFrom" in variable:
            value = _referred(pod, container, variable["valueFrom"], sources, allocatable)
        else:
            value = expand(variable.get("value") or "", variables)
        if value is not None:
            variables[variable["name"]] = value
    return variables


def command_of(container: Raw, variables: Mapping[str, str]) -> tuple[str, ...]:
    """Command and arguments, expanded. An image's own entry point cannot be known here."""
    words = (*(container.get("command") or ()), *(container.get("args") or ()))
    return tuple(expand(word, variables) for word in words)


def _whole(reference: Raw, sources: Sources) -> Iterator[tuple[str, str]]:
    """All values of one `envFrom`."""
    kind = Kind.CONFIG_MAP if "configMapRef" in reference else Kind.SECRET
    named = reference.get("configMapRef") or reference.get("secretRef") or {}
    source = Source(kind, named["name"])
    content = content_of(sources, source, is_optional=bool(named.get("optional")))
    for key, value in (content or {}).items():
        yield (reference.get("prefix") or "") + key, os.fsdecode(value)


def _referred(
    pod: Raw, container: Raw, origin: Raw, sources: Sources, allocatable: Mapping[str, str]
) -> str | None:
    """The value of one `valueFrom`; `None` leaves the variable out."""
    if reference := origin.get("fieldRef"):
        return field_of(pod, reference["fieldPath"])
    if reference := origin.get("resourceFieldRef"):
        return resource_of(pod, container, reference, allocatable)
    for key, kind in (("configMapKeyRef", Kind.CONFIG_MAP), ("secretKeyRef", Kind.SECRET)):
        if reference := origin.get(key):
            source = Source(kind, reference["name"])
            optional = bool(reference.get("optional"))
            value = value_of(sources, source, reference["key"], is_optional=optional)
            return None if value is None else os.fsdecode(value)
    raise InvalidSpec("valueFrom", f"{', '.join(origin)} is not known to a process node")
