"""The end of a pod that somebody else decided: why, and how long it may take."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from muster_local.nodes.admission import Refusal


@dataclass(slots=True)
class Stop:
    """A request to end a pod, which may become more urgent, never less."""

    grace_seconds: float
    verdict: Refusal | None = None
    """What the pod's status says; `None`: only what its containers say."""
    is_silent: bool = False
    """Nothing is written: the node is dead, or the pod no longer exists."""
    _deadline: float = field(init=False)
    _timeouts: list[asyncio.Timeout] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self._deadline = asyncio.get_running_loop().time() + self.grace_seconds

    @property
    def has_grace(self) -> bool:
        """Whether there is any time to end politely."""
        return self.grace_seconds > 0

    def join(self, other: "Stop") -> None:
        """Become as urgent, and as silent, as *other* if that is more so."""
        self.is_silent |= other.is_silent
        self.tighten(other.grace_seconds)

    def tighten(self, grace_seconds: float) -> None:
        """Allow at most that much from now on."""
        self._deadline = min(
            self._deadline, asyncio.get_running_loop().time() + max(grace_seconds, 0.0)
        )
        for timeout in self._timeouts:
            timeout.reschedule(self._deadline)

    @asynccontextmanager
    async def limit(self) -> AsyncIterator[None]:
        """Raise `TimeoutError` when the grace ends within, also when it is shortened meanwhile."""
        async with asyncio.timeout_at(self._deadline) as timeout:
            self._timeouts.append(timeout)
            try:
                yield
            finally:
                self._timeouts.remove(timeout)
