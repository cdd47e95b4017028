"""A client that dies after its k-th write, as a process does that is killed between two of them.

Run as a script it is a real operator process, and the death a real SIGKILL.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from muster_kube import Kube
from muster_operator.run import run

Raw = dict[str, Any]


class MortalKube(Kube):
    """Counts the writes in one namespace; no other is sent after death.

    Events are not counted: they tell what is already written. Nor is what the operator does for
    the jobs that other tests left behind.
    """

    last: int | None = None
    """The write after which the client is dead; `None` lives for ever."""

    @classmethod
    async def living_until(
        cls, kubeconfig: Path, namespace: str, last: int | None, on_death: Callable[[], None]
    ) -> Self:
        """A client that dies after write *last*; its answer is never seen."""
        kube = await cls.connect(kubeconfig, connections=128)
        kube.counted = f"/namespaces/{namespace}/"
        kube.last = last
        kube.on_death = on_death
        kube.writes = []
        kube.turn = asyncio.Lock()
        return kube

    counted: str
    on_death: Callable[[], None]
    writes: list[str]
    turn: asyncio.Lock

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        **rest: Any,
    ) -> Raw:
        """As `Kube`, until death."""

        async def send() -> Raw:
            return await super(MortalKube, self).request(
                method, path, query=query, body=body, **rest
            )

        is_write = method != "GET" and "dryRun" not in (query or {}) and "/events" not in path
        if not is_write or self.counted not in path:
            return await send()
        # One after the other, so that the state at death is that after exactly *last* writes.
        async with self.turn:
            if self.last is not None and len(self.writes) >= self.last:
                await asyncio.Event().wait()
            self.writes.append(f"{method} {path}")
            answer = await send()
            if self.last is not None and len(self.writes) >= self.last:
                self.on_death()
                await asyncio.Event().wait()
            return answer


async def _main(kubeconfig: Path, namespace: str, last: int) -> None:
    from operators import operator_settings  # noqa: PLC0415 -- only a script needs it

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    kube = await MortalKube.living_until(kubeconfig, namespace, last, die)
    await run(operator_settings(kubeconfig), stop=asyncio.Event(), kube=kube)


if __name__ == "__main__":
    asyncio.run(_main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
