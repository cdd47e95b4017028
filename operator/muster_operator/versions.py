"""Which version of each object is known, so that news may arrive in any order, from anywhere."""

from collections.abc import Collection, Mapping
from typing import Any, Final

_MAX_GONE: Final = 20_000


class Versions:
    """The versions of one kind of objects. A deleted object never comes back: uids are unique.

    Resource versions of one kind may be compared as numbers (KEP-5504).
    """

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._gone: dict[str, None] = {}

    def take(self, raw: Mapping[str, Any]) -> bool:
        """Whether *raw* is news; from now on it is known."""
        metadata = raw["metadata"]
        uid, version = metadata["uid"], int(metadata["resourceVersion"])
        if uid in self._gone or self._known.get(uid, -1) >= version:
            return False
        self._known[uid] = version
        return True

    def drop(self, uid: str) -> bool:
        """Note that the object is gone for good; whether it was known."""
        self._gone[uid] = None
        if len(self._gone) > _MAX_GONE:
            del self._gone[next(iter(self._gone))]
        return self._known.pop(uid, None) is not None

    def missing_from(self, listed: Collection[str], version: int) -> list[str]:
        """Known objects that a list of *version* should have had and has not: they are gone."""
        return [
            uid for uid, known in self._known.items() if known <= version and uid not in listed
        ]
