"""A pod's volumes as directories of this machine, and what each container mounts of them.

Volumes that the API fills are written as the kubelet writes them: the files are links through
`..data`, which is replaced as a whole, so that a renewed token is never seen half.
"""

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from muster.errors import InvalidSpec
from muster_local.nodes.environment import expand
from muster_local.nodes.launcher.launch import Mount
from muster_local.nodes.projection import FILLED, File
from muster_local.nodes.sources import Missing

Raw = Mapping[str, Any]

_CURRENT: Final = "..data"
_HOST_CHECKS: Final[Mapping[str, Callable[[int], bool]]] = {
    "Directory": stat.S_ISDIR,
    "File": stat.S_ISREG,
    "Socket": stat.S_ISSOCK,
    "CharDevice": stat.S_ISCHR,
    "BlockDevice": stat.S_ISBLK,
}


def place_of(volume: Raw, directory: Path) -> Path:
    """Where *volume* is, made if it has to be. *directory* is for those of the pod's own.

    Raises `Missing` for a host path that is not there or of another kind: the pod waits for it.
    """
    if (host := volume.get("hostPath")) is not None:
        return _host_path(host)
    own = directory / str(volume["name"])
    if not own.exists():
        own.mkdir(parents=True)
        # Whoever runs in the pod may write, as in Kubernetes; nobody else gets to the pod's files.
        own.chmod(0o755 if is_filled(volume) else 0o777)
    return own


def is_filled(volume: Raw) -> bool:
    """Whether its files come from the API."""
    return any(volume.get(kind) is not None for kind in FILLED)


def fill(place: Path, files: Iterable[File]) -> None:
    """Let exactly *files* be in the volume at *place*, all of them from one moment on."""
    fresh = Path(tempfile.mkdtemp(prefix="..", dir=place))
    fresh.chmod(0o755)
    paths = []
    for file in files:
        target = fresh / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
        target.chmod(file.mode)
        paths.append(Path(file.path))
    current = place / _CURRENT
    old = place / current.readlink() if current.is_symlink() else None
    link = place / f"{_CURRENT}_tmp"
    link.unlink(missing_ok=True)
    link.symlink_to(fresh.name)
    link.replace(current)
    for top in dict.fromkeys(path.parts[0] for path in paths):
        if not (place / top).is_symlink():
            (place / top).symlink_to(Path(_CURRENT) / top)
    if old is not None:
        shutil.rmtree(old)


def mounts_of(
    container: Raw, volumes: Mapping[str, Raw], places: Mapping[str, Path], variables: Raw
) -> tuple[Mount, ...]:
    """What *container* mounts. Raises `InvalidSpec` for a sub-path outside its volume."""
    found = []
    for mount in container.get("volumeMounts") or ():
        volume, place = volumes[mount["name"]], places[mount["name"]]
        sub = mount.get("subPath") or expand(mount.get("subPathExpr") or "", variables)
        source = _below(place, sub) if sub else place
        read_only = bool(mount.get("readOnly")) or is_filled(volume)
        found.append(Mount(str(source), os.path.normpath(mount["mountPath"]), read_only))
    return tuple(found)


def _below(place: Path, sub: str) -> Path:
    """The sub-path *sub* of a volume, made where it is missing."""
    real = place.resolve()
    target = (real / sub).resolve()
    if not target.is_relative_to(real):
        raise InvalidSpec("subPath", f"{sub} leads out of its volume")
    if not target.exists():
        target.mkdir(parents=True)
    return target


def _host_path(host: Raw) -> Path:
    path, kind = Path(host["path"]), host.get("type") or ""
    if kind in ("", "DirectoryOrCreate") and not path.exists():
        # Container runtimes make the directory where the type leaves it open.
        path.mkdir(parents=True, mode=0o755)
    if kind == "FileOrCreate" and not path.exists():
        path.touch(mode=0o644)
    wanted = _HOST_CHECKS.get(kind.removesuffix("OrCreate"))
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise Missing(f"hostPath {path}: {error.strerror}") from error
    if wanted is not None and not wanted(mode):
        raise Missing(f"hostPath type check failed: {path} is not a {kind}")
    return path
