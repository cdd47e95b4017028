"""Which version of which program: `versions.toml` as values."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from muster.errors import NotFound


@dataclass(frozen=True, slots=True)
class Project:
    """A source of programs with one version."""

    name: str
    version: str
    """With its v: `v1.37.2`."""
    components: Mapping[str, str]
    """Program to Go package."""
    download: str
    checksum: str
    member: str | None
    """Path of the program in the downloaded archive; None where the download is the program."""
    go_version_flags: str | None
    """Go package whose `gitVersion` the linker sets: a plain build calls itself v0.0.0."""

    @property
    def minor(self) -> str:
        """The version without its patch: `v1.37`."""
        return self.version.rsplit(".", 1)[0]

    @property
    def folder(self) -> str:
        """Its directory in the cache."""
        return f"{self.name}-{self.version}"


@cache
def projects() -> tuple[Project, ...]:
    """All pinned projects."""
    table = tomllib.loads((Path(__file__).parent / "versions.toml").read_text(encoding="utf-8"))
    return tuple(
        Project(
            name=name,
            version=row["version"],
            components=row["components"],
            download=row["download"],
            checksum=row["checksum"],
            member=row.get("member"),
            go_version_flags=row.get("go_version_flags"),
        )
        for name, row in table.items()
    )


def project_of(component: str) -> Project:
    """The project that *component* belongs to."""
    for project in projects():
        if component in project.components:
            return project
    known = ", ".join(sorted(name for each in projects() for name in each.components))
    raise NotFound(f"no program {component!r} is pinned; there are {known}")
