"""A component on its way up: started, watched until it is ready, moved if its port was taken."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from muster.errors import Unavailable
from muster_local.component import Command, Component, last_lines, start, stop
from muster_local.interrupts import uninterrupted
from muster_local.ports import free_ports, is_free

_READY_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.03
_TRIES: Final = 5
_PORT_TAKEN: Final = "address already in use"


class Failed(Unavailable):
    """A component did not come up."""

    def __init__(self, component: Component) -> None:
        lines = last_lines(component.log)
        said = lines[-1] if lines else "it said nothing"
        super().__init__(f"{component.name} did not come up ({component.log}): {said}")
        self.log_lines = lines
        """The end of its log."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to start a component, and how to see that it is ready."""

    command: Callable[[int], Command]
    """Takes the port; those that need none get 0."""
    is_ready: Callable[[Component], bool]
    has_port: bool = True


class Launch:
    """Starts a component at once; `wait` gives it when it is ready."""

    def __init__(
        self,
        recipe: Recipe,
        directory: Path,
        *,
        port: int | None = None,
        is_tethered: bool = False,
        on_start: Callable[[Component], None] = lambda component: None,
    ) -> None:
        """*port* is the one it had before, and keeps if it can; *on_start* is told each try."""
        self._recipe = recipe
        self._directory = directory
        self._is_tethered = is_tethered
        self._on_start = on_start
        self._log_start = 0
        self.component = self._start(port if port and is_free(port) else None)

    def wait(self, *, seconds: float = _READY_SECONDS) -> Component:
        """The component, ready. Raises `Failed` when it dies or takes too long, with it ended."""
        for _ in range(_TRIES):
            if self._becomes_ready(seconds):
                return self.component
            stop([self.component])
            if not self._lost_its_port():
                break
            self.component = self._start(None)
        raise Failed(self.component)

    def _start(self, port: int | None) -> Component:
        if port is None:
            port = free_ports(1)[0] if self._recipe.has_port else 0
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
