"""The names of checkpoints, parts and rounds in a store, matched as a whole.

A name that only resembles one (`step-100.backup`, `foo-step-100`, `step-0x9`) belongs to somebody
else and is never listed, loaded or deleted (case T6).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

_WHOLE: Final = r"(0|[1-9][0-9]{0,14})"
_DIRECTORY: Final = rf"step-{_WHOLE}/attempt-{_WHOLE}-round-{_WHOLE}"
_MANIFEST: Final = re.compile(rf"{_DIRECTORY}/manifest\.json")
_PART: Final = re.compile(rf"{_DIRECTORY}/([a-z0-9][a-z0-9.-]{{0,99}})")
_ROUND: Final = re.compile(rf"rounds/attempt-{_WHOLE}-round-{_WHOLE}\.json")
_RANK: Final = re.compile(rf"part-{_WHOLE}\.[a-z]+")
_PART_NAME: Final = re.compile(r"[a-z0-9][a-z0-9.-]{0,99}")


@dataclass(frozen=True, slots=True, order=True)
class Round:
    """One membership of the gang; a later one is greater and fences all before it."""

    attempt: int
    round: int

    @property
    def document(self) -> str:
        """The object that says what this round resumes from."""
        return f"rounds/attempt-{self.attempt}-round-{self.round}.json"

    def __str__(self) -> str:
        return f"attempt {self.attempt}, round {self.round}"


@dataclass(frozen=True, slots=True, order=True)
class Location:
    """Where one round keeps its checkpoint of one step."""

    step: int
    round: Round

    @property
    def id(self) -> str:
        """The checkpoint's name towards people: `step-100`."""
        return f"step-{self.step}"

    @property
    def directory(self) -> str:
        """The prefix of its parts."""
        return f"{self.id}/attempt-{self.round.attempt}-round-{self.round.round}"

    @property
    def manifest(self) -> str:
        """The object that commits it."""
        return f"{self.directory}/manifest.json"

    def part(self, name: str) -> str:
        """The object that holds the part *name*."""
        return f"{self.directory}/{name}"


def location_of(name: str) -> Location | None:
    """The checkpoint whose manifest is called *name*, if it is one."""
    return _location(_MANIFEST.fullmatch(name))


def location_of_part(name: str) -> Location | None:
    """The checkpoint in whose directory the object *name* lies, if there is one."""
    return _location(_PART.fullmatch(name))


def round_of(name: str) -> Round | None:
    """The round whose start the object *name* records, if it is one."""
    found = _ROUND.fullmatch(name)
    return Round(int(found[1]), int(found[2])) if found else None


def newest_round(names: Iterable[str]) -> Round | None:
    """The latest round that has begun among these objects; earlier ones' processes must end."""
    return max((known for name in names if (known := round_of(name))), default=None)


def rank_of(part_name: str) -> int | None:
    """The rank that wrote a part of this name; None for one that is no single rank's."""
    found = _RANK.fullmatch(part_name)
    return int(found[1]) if found else None


def is_part_name(name: str) -> bool:
    """Whether a part may be called so; nothing that leaves the checkpoint's directory may."""
    return _PART_NAME.fullmatch(name) is not None and name != "manifest.json"


def _location(found: re.Match[str] | None) -> Location | None:
    if found is None:
        return None
    return Location(int(found[1]), Round(int(found[2]), int(found[3])))
