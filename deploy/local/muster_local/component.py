"""One process of a cluster: started, recognised later by another process, and ended.

A component outlives whoever started it, so it is known by its process id together with the
moment it started: ids are used again, the pair is not.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import psutil

CONTROL_PLANE: Final = "control-plane"
"""The kind of etcd and of what makes a Kubernetes API of it."""
_GRACE_SECONDS: Final = 8.0
_POLL_SECONDS: Final = 0.02
_PR_SET_PDEATHSIG: Final = 1
_TOLERANCE_SECONDS: Final = 1.5
"""The kernel tells the moment of boot in whole seconds, and not always the same one."""
_LIBC: Final = ctypes.CDLL(None)
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Command:
    """What to start, and where a person finds out about it."""

    name: str
    """Unique in its cluster: `kube-apiserver`, `operator`."""
    kind: str
    """`control-plane`, `nodes` or `platform`."""
    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    """Added to our own environment."""
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Identity:
    """A process that cannot be mistaken for another one."""

    pid: int
    started: float
    """Seconds from boot to its start; the wall clock may be set, this stays."""
    boot: str
    """The boot in which that was; empty where the system does not say."""

    @classmethod
    def of(cls, pid: int) -> "Identity | None":
        """The identity of the process that has *pid* now, if there is one that still runs."""
        try:
            process = psutil.Process(pid)
            # A first thread that ended leaves a zombie at once, while others still hold the ports.
            if process.status() == psutil.STATUS_ZOMBIE and process.num_threads() <= 1:
                return None
            started = round(process.create_time() - psutil.boot_time(), 2)
        except psutil.NoSuchProcess:
            return None
        return cls(pid, started, _BOOT_ID.read_text().strip() if _BOOT_ID.exists() else "")

    def is_alive(self) -> bool:
        """Whether this very process still runs."""
        now = Identity.of(self.pid)
        return (
            now is not None
            and now.boot == self.boot
            and abs(now.started - self.started) < _TOLERANCE_SECONDS
        )


@dataclass(frozen=True, slots=True)
class Component:
    """A process that was started for a cluster."""

    name: str
    kind: str
    identity: Identity
    log: Path
    url: str | None = None

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.identity.pid

    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self.identity.is_alive()

    def as_json(self) -> dict[str, Any]:
        """What `from_json` needs."""
        return {
            "name": self.name,
            "kind": self.kind,
            "pid": self.identity.pid,
            "started": self.identity.started,
            "boot": self.identity.boot,
            "log": str(self.log),
            "url": self.url,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Component":
        """The component that `as_json` described."""
        identity = Identity(int(value["pid"]), float(value["started"]), str(value["boot"]))
        return cls(value["name"], value["kind"], identity, Path(value["log"]), value["url"])


def start(command: Command, directory: Path, *, is_tethered: bool = False) -> Component:
    """Start *command* with *directory* as its working directory and its output in `logs/`.

    It gets a session of its own, so that Ctrl-C in our terminal does not reach it. A tethered
    component is killed by the kernel when the thread that started it ends, however that happens.
    """
    _reap()
    logs = directory / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    log = logs / f"{command.name}.log"
    with log.open("ab") as output:
        child = subprocess.Popen(
            command.argv,
            cwd=directory,
            env={**_inherited(), **command.environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_tether if is_tethered else None,  # noqa: PLW1509 -- one system call
        )
    identity = Identity.of(child.pid) or Identity(child.pid, 0.0, "")
    _CHILDREN[identity] = child
    return Component(command.name, command.kind, identity, log, command.url)


def stop(components: Iterable[Component], *, grace_seconds: float = _GRACE_SECONDS) -> None:
    """End the components, in their order, each politely at first.

    Those of one kind that follow each other are ended together, save for the control plane, whose
    parts need each other to the last. Raises nothing when one is gone already.
    """
    for kind, group in groupby(components, key=lambda each: each.kind):
        if kind == CONTROL_PLANE:
            for component in group:
                _stop([component], grace_seconds)
        else:
            _stop(list(group), grace_seconds)


def _stop(components: list[Component], grace_seconds: float) -> None:
    for component in components:
        _signal(component, signal.SIGTERM)
    deadline = time.monotonic() + grace_seconds
    for component in components:
        if not _is_gone(component, deadline):
            _signal(component, signal.SIGKILL)
            _is_gone(component, time.monotonic() + grace_seconds)
        if child := _CHILDREN.pop(component.identity, None):
            # A process with many threads is a zombie a moment before it can be waited for.
            child.wait()


def last_lines(log: Path, count: int = 5) -> list[str]:
    """The last lines of a log, to show why a component failed."""
    try:
        with log.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 16384))
            return file.read().decode(errors="replace").splitlines()[-count:]
    except FileNotFoundError:
        return []


_CHILDREN: Final[dict[Identity, "subprocess.Popen[bytes]"]] = {}
"""Our own children, which would otherwise stay behind as zombies, and warn when collected."""


def _reap() -> None:
    """Forget those of our children that ended by themselves."""
    for each in [each for each, child in _CHILDREN.items() if child.poll() is not None]:
        del _CHILDREN[each]


def _inherited() -> dict[str, str]:
    """Our environment without settings meant for us: an unknown one stops a component's start."""
    keep = ("MUSTER_CACHE", "MUSTER_HOME")
    return {
        name: value
        for name, value in os.environ.items()
        if name in keep or not name.startswith("MUSTER_")
    }


def _signal(component: Component, number: signal.Signals) -> None:
    if component.is_alive():
        try:
            os.kill(component.pid, number)
        except ProcessLookupError:
            return


def _is_gone(component: Component, deadline: float) -> bool:
    """Whether *component* ends before *deadline*."""
    while component.is_alive():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def _tether() -> None:
    """Runs in the child, between fork and exec."""
    if sys.platform == "linux":
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
