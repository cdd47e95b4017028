"""The order in which programs are looked for."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from muster.errors import MusterError, Unavailable
from muster_local.binaries.build import build
from muster_local.binaries.download import download
from muster_local.binaries.place import placing
from muster_local.binaries.present import cached_path, installed
from muster_local.progress import Tell, quiet
from muster_local.versions import Project, project_of

Way = Callable[[Project, str, Path, Tell], None]
"""Puts a program at a path, or raises a `MusterError` that says why it can't."""


class Missing(Unavailable):
    """A program is not there, and no way to get it worked."""


@dataclass(frozen=True, slots=True)
class Ways:
    """How a program that is not on this machine is got; tests give their own."""

    fetch: Way = download
    make: Way = build


def find(component: str, tell: Tell = quiet, *, ways: Ways | None = None) -> Path:
    """The program *component*, fetched or built first where it must be.

    Raises `Missing`, which names every way that was tried and why it failed, and `NotFound` for
    a program that is not pinned.
    """
    return find_all([component], tell, ways=ways)[component]


def find_all(
    components: Iterable[str], tell: Tell = quiet, *, ways: Ways | None = None
) -> dict[str, Path]:
    """Each of *components*, as `find` gives it."""
    ways = ways or Ways()
    broken: dict[str, str] = {}
    return {each: _find(project_of(each), each, tell, ways, broken) for each in components}


def _find(
    project: Project, component: str, tell: Tell, ways: Ways, broken: dict[str, str]
) -> Path:
    """*broken* remembers the downloads that failed: nobody waits for one project twice."""
    path, refused = installed(project, component)
    if path is not None:
        return path
    cached = cached_path(project, component)
    if cached.is_file():
        return cached
    tried = [f"installed: {'; '.join(refused)}", f"cached: no {cached}"]
    with placing(cached, tell) as draft:
        if draft is None:
            return cached
        for name, way in (("downloaded", ways.fetch), ("built", ways.make)):
            why = broken.get(f"{name} {project.name}")
            if why is None:
                try:
                    way(project, component, draft, tell)
                except MusterError as error:
                    why = str(error)
                else:
                    draft.chmod(0o755)
                    draft.replace(cached)
                    return cached
            if name == "downloaded":
                broken[f"{name} {project.name}"] = why
            tried.append(f"{name}: {why}")
    raise Missing(f"there is no {component} {project.version}. " + ". ".join(tried) + _mend())


def _mend() -> str:
    return ". Name a directory that holds it in KUBEBUILDER_ASSETS, or let this machine download"
