"""Where things are below the process's directory.

pods/UID/pod.json                      what a restarted process must know about the pod
pods/UID/volumes/NAME/                 emptyDir, and what the API fills
pods/UID/work/CONTAINER/               working directory where the pod names none
pods/UID/containers/CONTAINER/N/       the files of its run N (`launcher.launch`)
hosts/NAMESPACE/SUBDOMAIN              hosts files
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from muster_local.nodes.devices import Grant
from muster_local.nodes.launcher.launch import write_json

Raw = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Record:
    """What must be known about a pod after a restart, besides its runs."""

    node: str
    namespace: str
    name: str
    started_at: float
    grant: Grant = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PodFiles:
    """The files of one pod."""

    directory: Path

    @property
    def volumes(self) -> Path:
        """Holds a directory for each volume."""
        return self.directory / "volumes"

    def work(self, container: str) -> Path:
        """A working directory of the container's own, made if need be."""
        place = self.directory / "work" / container
        place.mkdir(parents=True, exist_ok=True)
        return place

    def runs(self, container: str) -> list[Path]:
        """The directories of its runs, oldest first."""
        place = self.directory / "containers" / container
        if not place.exists():
            return []
        return sorted(place.iterdir(), key=lambda run: int(run.name))

    def new_run(self, container: str, *, kept: int = 2) -> Path:
        """A directory for the next run; those of all but the newest *kept* runs go."""
        runs = self.runs(container)
        number = int(runs[-1].name) + 1 if runs else 0
        for old in runs[: max(0, len(runs) + 1 - kept)]:
            shutil.rmtree(old, ignore_errors=True)
        place = self.directory / "containers" / container / str(number)
        place.mkdir(parents=True)
        return place

    def write(self, record: Record) -> None:
        """Keep *record*."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_json(self.directory / "pod.json", asdict(record))

    def read(self) -> Record | None:
        """The record, if the pod was admitted here."""
        try:
            return Record(**json.loads((self.directory / "pod.json").read_bytes()))
        except FileNotFoundError:
            return None

    def remove(self) -> None:
        """Delete everything. Its mounts are in namespaces of its processes, never here."""
        shutil.rmtree(self.directory, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Storage:
    """The directory of the process."""

    directory: Path

    @property
    def hosts(self) -> Path:
        """Holds the hosts files."""
        return self.directory / "hosts"

    def pod(self, uid: str) -> PodFiles:
        """The files of the pod *uid*, whether or not there are any."""
        return PodFiles(self.directory / "pods" / uid)

    def pods(self) -> Iterator[tuple[str, PodFiles]]:
        """All pods with files, by uid."""
        root = self.directory / "pods"
        if root.exists():
            for place in sorted(root.iterdir()):
                yield place.name, PodFiles(place)
