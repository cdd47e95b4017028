"""List, then watch, for ever: the level-triggered view of one collection.

The consumer sees the whole collection as `ADDED` changes, then one `SYNCED`, then what changes. A
broken watch goes on from the last version seen; one that is too old to go on starts with a new
list, and what vanished in between comes as `DELETED`, so that the consumer never has to compare
anything itself.
"""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from muster_kube.client import Kube
from muster_kube.errors import ApiError, Expired

_log = logging.getLogger(__name__)
_BACKOFF_SECONDS: Final = (0.05, 0.2, 0.5, 1.0, 2.0, 5.0)


class Kind(StrEnum):
    """What happened to an object."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    SYNCED = "SYNCED"
    """The first or a fresh list is complete; carries no object."""
    BOOKMARK = "BOOKMARK"
    """Nothing changed up to `resource_version`; carries no object."""


@dataclass(frozen=True, slots=True)
class Change:
    """One step of a collection."""

    kind: Kind
    object: dict[str, Any]
    resource_version: str
    """The version of the collection after this step."""
    is_listed: bool = False
    """Part of a list. Whoever stores `resource_version` to go on from it does so at `SYNCED` only,
    or the rest of the list would be skipped."""


async def reflect(
    kube: Kube, path: str, *, resource_version: str = "", query: Mapping[str, str] | None = None
) -> AsyncIterator[Change]:
    """Yield the changes of the collection at *path* for ever; end it by closing the iterator or
    cancelling the task.

    With *resource_version* the first list is skipped and the watch goes on from there, as a
    recorder does that has stored how far it came; if that is too old, a list follows as usual.
    *query* takes label and field selectors. Errors of the API server are logged and retried with a
    growing, jittered delay: `RBAC` may be repaired while we run.
    """
    known: dict[str, dict[str, Any]] = {}
    version = resource_version
    failures = 0
    while True:
        try:
            if not version:
                items, version = await kube.list(path, query=query)
                for change in _difference(known, items, version):
                    yield change
                yield Change(Kind.SYNCED, {}, version)
            async for kind, obj in kube.watch(path, version, query=query):
                failures = 0
                version = str(obj["metadata"]["resourceVersion"])
                yield _step(known, kind, obj, version)
        except Expired:
            version = ""
            continue
        except ApiError as error:
            delay = _BACKOFF_SECONDS[min(failures, len(_BACKOFF_SECONDS) - 1)]
            failures += 1
            _log.warning(
                "watching %s failed (try %d), going on in %.1f s: %s", path, failures, delay, error
            )
            await asyncio.sleep(delay * random.uniform(0.5, 1.5))  # noqa: S311 -- jitter


def _step(
    known: dict[str, dict[str, Any]], kind: str, obj: dict[str, Any], version: str
) -> Change:
    """Remember *obj* by what is needed should it vanish unseen, and describe the step."""
    if kind == Kind.BOOKMARK:
        return Change(Kind.BOOKMARK, {}, version)
    uid = obj["metadata"]["uid"]
    if kind == Kind.DELETED:
        known.pop(uid, None)
    else:
        known[uid] = obj
    return Change(Kind(kind), obj, version)


def _difference(
    known: dict[str, dict[str, Any]], items: list[dict[str, Any]], version: str
) -> list[Change]:
    """What a fresh list says against what was known; *known* becomes the list."""
    fresh = {item["metadata"]["uid"]: item for item in items}
    gone = [
        Change(Kind.DELETED, obj, version, is_listed=True)
        for uid, obj in known.items()
        if uid not in fresh
    ]
    changed = [
        Change(Kind.MODIFIED if uid in known else Kind.ADDED, obj, version, is_listed=True)
        for uid, obj in fresh.items()
        if known.get(uid, {}).get("metadata", {}).get("resourceVersion")
        != obj["metadata"]["resourceVersion"]
    ]
    known.clear()
    known.update(fresh)
    return gone + changed
