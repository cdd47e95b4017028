"""The order in which programs are looked for."""

from collections.abc import Iterable
from pathlib import Path

from muster.errors import Unavailable
from muster_local.binaries.present import cached_path, installed
from muster_local.versions import project_of


class Missing(Unavailable):
    """A program is not there, and no way to get it worked."""


def find(component: str) -> Path:
    """The program *component*, fetched or built first where it must be. Raises `Missing`."""
    return find_all([component])[component]


def find_all(components: Iterable[str]) -> dict[str, Path]:
    """Each of *components*, as `find` gives it."""
    return {component: _find(component) for component in components}


def _find(component: str) -> Path:
    project = project_of(component)
    path, refused = installed(project, component)
    if path is not None:
        return path
    cached = cached_path(project, component)
    if cached.is_file():
        return cached
    raise Missing(f"{component} {project.version}: " + "; ".join(refused))
