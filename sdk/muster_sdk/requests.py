"""Checkpoints that the platform asks for: every rank learns at which step, without waiting.

Rank 0 hears of a directive in the answers to its reports. It names a step that no rank can have
passed, a little ahead, on the board that the processes share; the others look there at their own
steps. Ranks that train together are never more than a step apart, since each step needs them all,
so that all of them have looked before any comes to the step that was named.
"""

import math
import time
from collections.abc import Callable
from typing import Final, Protocol

from muster.claims import CHECKPOINT
from muster_sdk.ranks import Board
from muster_sdk.telling import Telling

_LOOK_SECONDS: Final = 0.005
"""Between two looks at the board, so that very short steps do not pay for them."""
_AHEAD_SECONDS: Final = 0.05
"""The named step is at least so far ahead: ten looks of the slowest to look."""
_AHEAD_STEPS: Final = 2


class Finder(Protocol):
    """Knows how the processes of the gang share a board."""

    @property
    def rank(self) -> int:
        """This process."""

    def board(self) -> Board | None:
        """The board; None for a process that is alone."""


class Requests:
    """Asked at every step."""

    def __init__(
        self, gang: Finder, telling: Telling, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._gang = gang
        self._telling = telling
        self._clock = clock
        self._answered = ""
        """The id of the directive that was taken up last."""
        self._count = 0
        self._target: int | None = None
        self._looked = -math.inf
        self._stepped = -math.inf
        self._step_seconds = 0.0

    def is_due(self, step: int) -> bool:
        """Whether all ranks save now, after *step*."""
        now = self._clock()
        if math.isfinite(self._stepped):
            self._step_seconds = 0.9 * self._step_seconds + 0.1 * (now - self._stepped)
        self._stepped = now
        if self._target is None:
            self._target = self._asked(step) if self._gang.rank == 0 else self._posted(now)
        if self._target is None or step < self._target:
            return False
        self._target = None
        self._count += 1
        return True

    def _asked(self, step: int) -> int | None:
        """On rank 0: the step at which to save, once the platform has asked."""
        directive = self._telling.directive
        if directive is None or str(directive.get("kind", "")).lower() != CHECKPOINT:
            return None
        name = str(directive.get("id", ""))
        if not name or name == self._answered:
            return None
        self._answered = name
        board = self._gang.board()
        if board is None:
            return step
        ahead = math.ceil(_AHEAD_SECONDS / max(self._step_seconds, 1e-6))
        target = step + max(_AHEAD_STEPS, min(ahead, 10_000))
        board.post(self._key, str(target))
        return target

    def _posted(self, now: float) -> int | None:
        """On the others: what rank 0 has posted."""
        if now - self._looked < _LOOK_SECONDS:
            return None
        self._looked = now
        board = self._gang.board()
        text = board.read(self._key) if board is not None else None
        return None if text is None else int(text)

    @property
    def _key(self) -> str:
        return f"muster/save/{self._count}"
