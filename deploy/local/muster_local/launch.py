"""A component on its way up: started, watched until it is ready, moved if its port was taken."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from muster.errors import Unavailable
from muster_local.component import Command, Component, last_lines, start, stop
from muster_local.interrupts import uninterrupted
from muster_local.ports import free_ports, is_free

_READY_SECONDS: Final = 60.0
_OLD_SECONDS: Final = 20.0
"""For one that ran before: it has nothing to start."""
_POLL_SECONDS: Final = 0.1
_TRIES: Final = 5
_PORT_TAKEN: Final = "address already in use"


class Failed(Unavailable):
    """A component did not come up."""

    def __init__(self, component: Component, *, has_ended: bool = True) -> None:
        lines = last_lines(component.log)
        said = lines[-1] if lines else "it said nothing"
        super().__init__(f"{component.name} did not come up ({component.log}): {said}")
        self.log_lines = lines
        """The end of its log."""
        self.has_ended = has_ended
        """Whether it ended by itself, rather than taking too long."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to start a component, and how to see that it is ready."""

    command: Callable[[int], Command]
    """Takes the port; those that need none get 0."""
    is_ready: Callable[[Component], bool]
    has_port: bool = True
    port: int | None = None
    """The port to take while it is free, because others were told of it."""


class Launch:
    """Starts a component at once, unless it runs; `wait` gives it when it is ready."""

    def __init__(
        self,
        recipe: Recipe,
        directory: Path,
        *,
        before: Component | None = None,
        is_tethered: bool = False,
        on_start: Callable[[Component], None] = lambda component: None,
    ) -> None:
        """*before* is what there was of it: kept while it lives, and after that its port.

        *on_start* is told of each try.
        """
        self._recipe = recipe
        self._directory = directory
        self._is_tethered = is_tethered
        self._on_start = on_start
        self._log_start = 0
        self._is_old = before is not None and before.is_alive()
        port = _port_of(before) or recipe.port
        self.component = before if before and self._is_old else self._start(port)

    def wait(
        self, *, seconds: float = _READY_SECONDS, old_seconds: float = _OLD_SECONDS
    ) -> Component:
        """The component, ready. Raises `Failed` when it dies or takes too long, with it ended.

        One that ran before and does not answer within *old_seconds* is started again.
        """
        has_ended = False
        for _ in range(_TRIES):
            if self._becomes_ready(old_seconds if self._is_old else seconds):
                return self.component
            has_ended = not self.component.is_alive()
            stop([self.component])
            if self._is_old:
                self._is_old = False
                self.component = self._start(_port_of(self.component))
            elif self._lost_its_port():
                self.component = self._start(None)
            else:
                break
        raise Failed(self.component, has_ended=has_ended)

    def _start(self, port: int | None) -> Component:
        if not self._recipe.has_port:
            port = 0
        elif port is None or not is_free(port):
            port = free_ports(1)[0]
        command = self._recipe.command(port)
        log = self._directory / "logs" / f"{command.name}.log"
        self._log_start = log.stat().st_size if log.exists() else 0
        with uninterrupted():
            component = start(command, self._directory, is_tethered=self._is_tethered)
            self._on_start(component)
        return component

    def _becomes_ready(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self.component.is_alive():
            # Alive once more after the answer: somebody else may answer on a port that was taken.
            if self._recipe.is_ready(self.component) and self.component.is_alive():
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return False

    def _lost_its_port(self) -> bool:
        with self.component.log.open("rb") as log:
            log.seek(self._log_start)
            said = log.read().decode(errors="replace").lower()
        return self._recipe.has_port and _PORT_TAKEN in said


def _port_of(component: Component | None) -> int | None:
    return urlsplit(component.url).port if component is not None and component.url else None
