"""The files of volumes that the API fills: config maps, secrets, downward API, tokens.

Only computes which files; `volumes` writes them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from muster_local.nodes.fields import field_of, resource_of
from muster_local.nodes.sources import Content, Kind, Missing, Source, Sources, content_of

Raw = Mapping[str, Any]

_DEFAULT_MODE: Final = 0o644
FILLED: Final = ("configMap", "secret", "downwardAPI", "projected")
"""The kinds of volume that this module fills."""


@dataclass(frozen=True, slots=True)
class File:
    """One file of a volume; its path is relative to the volume."""

    path: str
    content: bytes
    mode: int = _DEFAULT_MODE


@dataclass(frozen=True, slots=True)
class TokenOrder:
    """A service account token that a projected volume asks for."""

    path: str
    audience: str
    """Empty: the API server's own."""
    seconds: int


Tokens = Mapping[TokenOrder, str]


def tokens_of(volume: Raw) -> tuple[TokenOrder, ...]:
    """The tokens that *volume* asks for."""
    parts = (volume.get("projected") or {}).get("sources") or ()
    return tuple(_order(part["serviceAccountToken"]) for part in parts if _has_token(part))


def files_of(
    volume: Raw, pod: Raw, sources: Sources, tokens: Tokens, *, allocatable: Mapping[str, str]
) -> tuple[File, ...]:
    """The files of *volume*, which is of one of the `FILLED` kinds. Raises `Missing`."""
    projected = volume.get("projected")
    mode = int((projected or _only(volume)).get("defaultMode") or _DEFAULT_MODE)
    parts = (projected.get("sources") or ()) if projected else (volume,)
    found: dict[str, File] = {}
    for part in parts:
        for file in _files_of_part(part, pod, sources, tokens, mode, allocatable):
            found[file.path] = file
    return tuple(found.values())


def _only(volume: Raw) -> Raw:
    return next((volume[kind] for kind in FILLED if volume.get(kind)), {})


def _files_of_part(
    part: Raw,
    pod: Raw,
    sources: Sources,
    tokens: Tokens,
    mode: int,
    allocatable: Mapping[str, str],
) -> Iterator[File]:
    if (reference := part.get("configMap")) is not None:
        yield from _from(Source(Kind.CONFIG_MAP, reference["name"]), reference, sources, mode)
    if (reference := part.get("secret")) is not None:
        name = reference.get("secretName") or reference["name"]
        yield from _from(Source(Kind.SECRET, name), reference, sources, mode)
    if (reference := part.get("downwardAPI")) is not None:
        for item in reference.get("items") or ():
            text = _told(item, pod, allocatable)
            yield File(item["path"], text.encode(), int(item.get("mode") or mode))
    if _has_token(part):
        order = _order(part["serviceAccountToken"])
        yield File(order.path, tokens[order].encode(), mode)


def _from(source: Source, reference: Raw, sources: Sources, mode: int) -> Iterator[File]:
    """The files of a config map or secret: all of it, or the items named."""
    is_optional = bool(reference.get("optional"))
    content: Content = content_of(sources, source, is_optional=is_optional) or {}
    items = reference.get("items")
    if not items:
        yield from (File(key, value, mode) for key, value in content.items())
        return
    for item in items:
        if item["key"] in content:
            yield File(item["path"], content[item["key"]], int(item.get("mode") or mode))
        elif not is_optional:
            raise Missing(f"{source} has no key {item['key']}")


def _told(item: Raw, pod: Raw, allocatable: Mapping[str, str]) -> str:
    if reference := item.get("fieldRef"):
        return field_of(pod, reference["fieldPath"])
    return resource_of(pod, {}, item["resourceFieldRef"], allocatable)


def _has_token(part: Raw) -> bool:
    return part.get("serviceAccountToken") is not None


def _order(token: Raw) -> TokenOrder:
    seconds = int(token.get("expirationSeconds") or 3600)
    return TokenOrder(token["path"], token.get("audience") or "", seconds)
