"""All processes below this one, and their end.

The launcher is a subreaper: whatever a container starts, double forks and new sessions included,
stays below it in the tree of processes. So there is nothing that could be missed.
"""

import os
import signal
from pathlib import Path

from muster_local.nodes.launcher.identity import stat_of


def descendants(root: int) -> set[int]:
    """The ids of all processes below *root*, at this moment."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (stat := stat_of(int(entry.name))):
            children.setdefault(int(stat[1]), []).append(int(entry.name))
    found: set[int] = set()
    front = [root]
    while front:
        for pid in children.get(front.pop(), ()):
            if pid not in found:
                found.add(pid)
                front.append(pid)
    return found


def kill_descendants(root: int) -> None:
    """Send SIGKILL to all of them; one that forks meanwhile is found by calling again."""
    for pid in descendants(root):
        try:
            os.kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue  # gone, or a setuid program, which is not ours to end


def reap() -> tuple[dict[int, int], bool]:
    """The wait statuses of children that have ended, and whether there are children left."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended, False
        if pid == 0:
            return ended, True
        ended[pid] = status
