"""Config maps and secrets that a pod refers to: which, and what is in them.

Which ones is computed; `fetch` reads them. They are read when the pod starts; later changes do not
reach it, unlike with a kubelet, whose pods see them in volumes within about a minute.
"""

import asyncio
import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from muster.errors import MusterError
from muster_kube import ApiNotFound, Kube

Raw = Mapping[str, Any]
Content = Mapping[str, bytes]


class Kind(StrEnum):
    """The kinds of object that hold files and values; the value is the plural in the API."""

    CONFIG_MAP = "configmaps"
    SECRET = "secrets"


@dataclass(frozen=True, slots=True)
class Source:
    """One config map or secret of the pod's namespace."""

    kind: Kind
    name: str

    def __str__(self) -> str:
        return f'{self.kind.removesuffix("s")} "{self.name}"'


Sources = Mapping[Source, Content]
"""Those that exist, with what is in them."""


class Missing(MusterError):
    """Something that is not optional does not exist, yet: the pod waits for it."""


def content_of(sources: Sources, source: Source, *, is_optional: bool) -> Content | None:
    """What is in *source*; `None` where it is missing and may be. Raises `Missing`."""
    content = sources.get(source)
    if content is None and not is_optional:
        raise Missing(f"{source} not found")
    return content


def value_of(sources: Sources, source: Source, key: str, *, is_optional: bool) -> bytes | None:
    """One value of *source*; `None` where it is missing and may be. Raises `Missing`."""
    content = content_of(sources, source, is_optional=is_optional)
    if content is not None and key in content:
        return content[key]
    if is_optional:
        return None
    raise Missing(f"{source} has no key {key}")


def sources_of(pod: Raw) -> frozenset[Source]:
    """Everything that *pod* refers to, in environments and volumes."""
    spec = pod["spec"]
    containers = (*spec.get("initContainers", ()), *spec["containers"])
    found = [source for container in containers for source in _in_environment(container)]
    for volume in spec.get("volumes") or ():
        found += _in_volume(volume)
        for part in (volume.get("projected") or {}).get("sources") or ():
            found += _in_volume(part)
    return frozenset(found)


async def fetch(kube: Kube, namespace: str, wanted: frozenset[Source]) -> Sources:
    """What is in *wanted*; those that do not exist are left out. Raises an `ApiError`."""
    ordered = sorted(wanted, key=lambda source: (source.kind, source.name))
    contents = await asyncio.gather(*(_read(kube, namespace, source) for source in ordered))
    pairs = zip(ordered, contents, strict=True)
    return {source: content for source, content in pairs if content is not None}


def _in_environment(container: Raw) -> Iterator[Source]:
    for each in container.get("envFrom") or ():
        if reference := each.get("configMapRef"):
            yield Source(Kind.CONFIG_MAP, reference["name"])
        if reference := each.get("secretRef"):
            yield Source(Kind.SECRET, reference["name"])
    for variable in container.get("env") or ():
        origin = variable.get("valueFrom") or {}
        if reference := origin.get("configMapKeyRef"):
            yield Source(Kind.CONFIG_MAP, reference["name"])
        if reference := origin.get("secretKeyRef"):
            yield Source(Kind.SECRET, reference["name"])


def _in_volume(volume: Raw) -> Iterator[Source]:
    """Of a volume or of a part of a projected one, which names secrets in another key."""
    if reference := volume.get("configMap"):
        yield Source(Kind.CONFIG_MAP, reference["name"])
    if reference := volume.get("secret"):
        yield Source(Kind.SECRET, reference.get("secretName") or reference["name"])


async def _read(kube: Kube, namespace: str, source: Source) -> Content | None:
    try:
        found = await kube.get(f"/api/v1/namespaces/{namespace}/{source.kind}/{source.name}")
    except ApiNotFound:
        return None
    if source.kind is Kind.SECRET:
        return _decoded(found.get("data"))
    texts = found.get("data") or {}
    return {
        **{key: text.encode() for key, text in texts.items()},
        **_decoded(found.get("binaryData")),
    }


def _decoded(values: Mapping[str, str] | None) -> Content:
    return {key: base64.b64decode(value) for key, value in (values or {}).items()}
