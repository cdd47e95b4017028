"""What is known of a local cluster between two commands: `state.json` in its directory.

Written as a whole after every process that starts, so that whoever comes next finds all of them.
"""

import fcntl
import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from muster.errors import NotFound
from muster_local.access import write_secret
from muster_local.component import Component
from muster_local.places import home_directory
from muster_local.progress import Tell, quiet
from muster_local.shape import Shape, checked_name

_log = logging.getLogger(__name__)
_FILE: Final = "state.json"
API: Final = "api"
"""The name of the component that serves the REST API."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A local cluster as it was last written down; whether it runs, its components say."""

    name: str
    directory: Path
    shape: Shape
    components: tuple[Component, ...] = ()

    @property
    def kubeconfig(self) -> Path:
        """The user's kubeconfig."""
        return self.directory / "kubeconfig"

    @property
    def api_url(self) -> str | None:
        """Where the REST API answers; None without the platform."""
        component = self.component(API)
        return None if component is None else component.url

    def component(self, name: str) -> Component | None:
        """The component of that name."""
        return next((each for each in self.components if each.name == name), None)


def directory_of(name: str) -> Path:
    """Where the cluster *name* lives, or would. Raises `InvalidSpec` for what is no name."""
    return home_directory() / checked_name(name)


def names() -> list[str]:
    """The names of all local clusters of this user."""
    return sorted(file.parent.name for file in home_directory().glob(f"*/{_FILE}"))


def load(name: str) -> Cluster | None:
    """The cluster *name*; None if there is none."""
    directory = directory_of(name)
    file = directory / _FILE
    try:
        value = json.loads(file.read_bytes())
        return Cluster(
            name=name,
            directory=directory,
            shape=Shape.from_json(value["shape"]),
            components=tuple(Component.from_json(each) for each in value["components"]),
        )
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        # A power cut may leave an empty file; then none of its processes lives either.
        _log.warning("%s is not usable, starting from nothing: %s", file, error)
        return None


def require(name: str) -> Cluster:
    """The cluster *name*. Raises `NotFound`, which says what there is."""
    cluster = load(name)
    if cluster is None:
        there = ", ".join(names())
        hint = f"there are: {there}" if there else "there is none; `muster local up` starts one"
        raise NotFound(f"there is no local cluster {name}; {hint}")
    return cluster


def save(cluster: Cluster) -> None:
    """Write *cluster* down."""
    value = {
        "name": cluster.name,
        "shape": asdict(cluster.shape),
        "components": [each.as_json() for each in cluster.components],
    }
    write_secret(cluster.directory / _FILE, json.dumps(value, indent=2) + "\n")


@contextmanager
def locked(directory: Path, tell: Tell = quiet) -> Iterator[None]:
    """Keep other commands from changing the cluster in *directory*, which is made if need be.

    The directory itself is the lock, so that no file is left of it.
    """
    while True:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            _lock(descriptor, directory, tell)
            if _is_same(descriptor, directory):
                yield
                return
            # Whoever held it removed the directory: it is another one now, or none.
        finally:
            os.close(descriptor)


def _lock(descriptor: int, directory: Path, tell: Tell) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        tell(f"waiting for another command that changes the local cluster {directory.name}")
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def _is_same(descriptor: int, directory: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), directory.stat())
    except FileNotFoundError:
        return False
