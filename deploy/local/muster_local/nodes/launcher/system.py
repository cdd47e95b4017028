"""The system calls that Python 3.11 does not have. All of them raise `OSError`."""

import ctypes
import os
from typing import Final

NEW_MOUNTS: Final = 0x00020000
NEW_NAMES: Final = 0x04000000
NEW_USER: Final = 0x10000000

READ_ONLY: Final = 1
_REMOUNT: Final = 32
_BIND: Final = 4096
_RECURSIVE: Final = 16384
_PRIVATE: Final = 1 << 18

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36

_libc: Final = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Give this process namespaces of its own."""
    _check(_libc.unshare(flags), "unshare")


def make_private() -> None:
    """Keep all mounts of this namespace from reaching any other."""
    _mount(None, "/", _RECURSIVE | _PRIVATE)


def bind(source: str, target: str) -> None:
    """Show *source*, with what is mounted below it, at *target*, which exists."""
    _mount(source, target, _BIND | _RECURSIVE)


def bind_read_only(target: str) -> None:
    """Forbid writes through the bind mount at *target*."""
    # In a user namespace the flags that the file system has already cannot be dropped.
    kept = os.statvfs(target).f_flag & (os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC)
    _mount(None, target, _REMOUNT | _BIND | READ_ONLY | kept)


def die_with_parent(number: int) -> None:
    """Have the kernel send us *number* when the parent ends. A change of identity undoes it."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0), "prctl")


def set_hostname(name: str) -> None:
    """Name the machine, within our namespace."""
    raw = os.fsencode(name)
    _check(_libc.sethostname(raw, ctypes.c_size_t(len(raw))), "sethostname")


def become_subreaper() -> None:
    """Become the parent of every descendant whose own parent ends."""
    _check(_libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl")


def _mount(source: str | None, target: str, flags: int) -> None:
    raw = None if source is None else os.fsencode(source)
    result = _libc.mount(raw, os.fsencode(target), None, ctypes.c_ulong(flags), None)
    _check(result, f"mount {source or ''} on {target}")


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
