"""The container's view of the file system, built in a mount namespace of its own.

The machine's files as they are, and over them the volumes. A mount point that does not exist, such
as `/var/run/secrets/kubernetes.io/serviceaccount`, must not be made on the machine itself. Its
nearest existing directory is *shadowed*: replaced, in this namespace only, by an empty directory
of the run in which every entry of the real one is mounted, and in which the missing ones can be
made. For a missing top-level directory, that is the root itself.
"""

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from muster_local.nodes.launcher import system
from muster_local.nodes.launcher.launch import Mount


def enter_namespaces(hostname: str) -> None:
    """Get private mounts and a host name, as we are or in a user namespace. Raises `OSError`."""
    user, group = os.geteuid(), os.getegid()
    wanted = system.NEW_MOUNTS | system.NEW_NAMES
    try:
        system.unshare(wanted)
    except PermissionError:
        system.unshare(system.NEW_USER | wanted)
        # The kernel asks for the first line before an ordinary user may map a group.
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    system.make_private()
    if hostname:
        system.set_hostname(hostname)


class View:
    """Mounts volumes, and makes their mount points without touching the machine's files.

    Only for a process that entered its own namespaces.
    """

    def __init__(self, shadows: Path) -> None:
        self._shadows = shadows
        self._made = 0
        self._is_ours: dict[str, bool] = {"": False}
        """Whether new entries may be made below a path; the longest path that matches counts."""

    def mount_all(self, mounts: Sequence[Mount]) -> None:
        """Mount all, outer targets before inner ones. Raises `OSError`."""
        ordered = sorted(mounts, key=lambda mount: (mount.target.count("/"), mount.target))
        # Held open, since a mount may hide the source of a later one.
        sources = [os.open(mount.source, os.O_PATH | os.O_CLOEXEC) for mount in ordered]
        if any(_nearest(mount.target) == "/" for mount in ordered):
            self._shadow_root()
        for mount, source in zip(ordered, sources, strict=True):
            is_directory = stat.S_ISDIR(os.fstat(source).st_mode)
            target = self._mount_point(mount.target, is_directory=is_directory)
            system.bind(f"/proc/self/fd/{source}", target)
            if mount.read_only:
                system.bind_read_only(target)
            self._is_ours[target] = not mount.read_only
            os.close(source)

    def make_directory(self, path: str) -> None:
        """Let there be a directory at *path*, as for a mount point."""
        self._mount_point(path, is_directory=True)

    def _mount_point(self, target: str, *, is_directory: bool) -> str:
        """The real path of *target*, made if need be."""
        if not os.path.lexists(target):
            nearest = _nearest(target)
            if not self._may_make_in(nearest):
                system.bind(self._copy_of(nearest), nearest)
            made = Path(target)
            if is_directory:
                made.mkdir(parents=True, exist_ok=True)
            else:
                made.parent.mkdir(parents=True, exist_ok=True)
                made.touch()
        return os.path.realpath(target)

    def _may_make_in(self, directory: str) -> bool:
        """Whether *directory* is a shadow or a volume, rather than one of the machine's own."""
        place = directory.rstrip("/")
        while place not in self._is_ours:
            place = place.rpartition("/")[0]
        return self._is_ours[place]

    def _shadow_root(self) -> None:
        os.chroot(self._copy_of("/"))
        os.chdir("/")

    def _copy_of(self, directory: str) -> str:
        """A directory of the run that shows what *directory* shows, and takes new entries."""
        copy = self._shadows / str(self._made)
        self._made += 1
        copy.mkdir(parents=True)
        self._is_ours[directory.rstrip("/")] = True
        for entry in sorted(os.scandir(directory), key=lambda entry: entry.name):
            _show(entry, copy / entry.name)
            self._is_ours[entry.path] = False
        copy.chmod(stat.S_IMODE(Path(directory).stat().st_mode))
        return str(copy)


def _show(entry: "os.DirEntry[str]", place: Path) -> None:
    """Let *place* show the same as *entry*; one that vanished meanwhile is left out."""
    try:
        if entry.is_symlink():
            place.symlink_to(Path(entry.path).readlink())
            return
        if entry.is_dir():
            place.mkdir()
        else:
            place.touch()
        system.bind(entry.path, str(place))
    except FileNotFoundError:
        if place.is_dir():
            place.rmdir()
        else:
            place.unlink(missing_ok=True)


def _nearest(target: str) -> str:
    """The real path of the nearest directory on the way to *target* that exists.

    `/` only where the first step is missing, so that nothing but the root could be shadowed.
    """
    place = Path(target)
    while not os.path.lexists(place):
        place = place.parent
    return os.path.realpath(place)
