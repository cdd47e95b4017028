"""One container of a pod through all of its runs: start, restart with a growing pause, stop.

What it does at any moment is in `view`; each change of it is told to the pod's worker.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol

from muster.errors import MusterError
from muster_local.nodes.instance import Instance, prepare
from muster_local.nodes.launcher.launch import Exit, Launch
from muster_local.nodes.messages import message_of
from muster_local.nodes.status import ContainerView, Running, Terminated, Waiting
from muster_local.nodes.stopping import Stop
from muster_local.nodes.storage import PodFiles

_log = logging.getLogger(__name__)

Raw = Mapping[str, Any]

_UNKILLABLE_SECONDS: Final = 10.0
"""How long a launcher may take to kill everything before we do without it."""
_LONGEST_PAUSE: Final = 30
"""Times the first pause; with the kubelet's 10 s that is its five minutes."""


class Host(Protocol):
    """What a container asks of its pod."""

    async def order(self, container: Raw, run: Path) -> Launch:
        """What to launch. Raises a `MusterError` when that cannot be known yet."""
        ...

    def changed(self) -> None:
        """The container's view is another one."""
        ...

    def tell(self, reason: str, message: str, *, is_warning: bool = False) -> None:
        """Say something to the pod's users."""
        ...


@dataclass(frozen=True, slots=True)
class Rules:
    """When a container runs again."""

    restarts_after_success: bool
    restarts_after_failure: bool
    pause_seconds: float

    @classmethod
    def of(cls, pod: Raw, container: Raw, *, is_init: bool, pause_seconds: float) -> "Rules":
        """The rules that the pod's restart policy and the container's own make."""
        policy = container.get("restartPolicy") or pod["spec"].get("restartPolicy") or "Always"
        is_step = is_init and container.get("restartPolicy") != "Always"
        return cls(
            restarts_after_success=policy == "Always" and not is_step,
            restarts_after_failure=policy != "Never",
            pause_seconds=pause_seconds,
        )

    def restarts_after(self, code: int) -> bool:
        """Whether it runs again after ending with *code*."""
        return self.restarts_after_failure if code else self.restarts_after_success

    def pause_before(self, restart: int) -> float:
        """Seconds to wait before the restart of that number; the first comes at once."""
        if restart <= 1:
            return 0.0
        return self.pause_seconds * min(1 << min(restart - 2, 10), _LONGEST_PAUSE)


class Container:
    """Runs one container as often as its rules say."""

    def __init__(
        self, spec: Raw, rules: Rules, files: PodFiles, host: Host, *, is_init: bool
    ) -> None:
        self.spec = spec
        self.name: str = spec["name"]
        self.is_sidecar = is_init and spec.get("restartPolicy") == "Always"
        self.view = ContainerView(
            self.name,
            spec.get("image") or "",
            Waiting(),
            is_init=is_init,
            is_sidecar=self.is_sidecar,
        )
        self._rules = rules
        self._files = files
        self._host = host
        self._instance: Instance | None = None
        self._running = asyncio.Event()
        self._find()

    @property
    def has_runs(self) -> bool:
        """Whether it was ever started."""
        return self._instance is not None or self.view.restarts > 0

    async def keep(self) -> None:
        """Run it until it need not run again."""
        while True:
            ended = self.view.state if isinstance(self.view.state, Terminated) else None
            if ended is None:
                instance = self._instance or await self._begin()
                await self._observe(instance)
                ended = self._note(await instance.wait())
            if not self._rules.restarts_after(ended.exit_code):
                return
            await self._pause(ended)

    async def running(self) -> None:
        """Wait until it has been started."""
        await self._running.wait()

    async def terminate(self, stop: Stop) -> None:
        """End the run that there is, if any: politely first, and within the grace."""
        instance = self._instance
        if instance is None or isinstance(self.view.state, Terminated):
            return
        await instance.ready()
        if not instance.has_ended and stop.has_grace:
            self._host.tell("Killing", f"Stopping container {self.name}")
            instance.stop()
        try:
            async with stop.limit():
                how = await instance.wait()
        except TimeoutError:
            instance.kill()
            how = await _end_of(instance)
        self._note(how)

    def _find(self) -> None:
        """Go on from the runs that an earlier node process left."""
        runs = self._files.runs(self.name)
        if not runs:
            return
        self._instance = Instance.find(runs[-1])
        if self._instance is not None:
            self.view = replace(self.view, restarts=int(runs[-1].name))

    async def _begin(self) -> Instance:
        """Start the next run, as soon as everything that it refers to is there."""
        failures = 0
        run = self._files.new_run(self.name)
        while True:
            try:
                launch = await self._host.order(self.spec, run)
                break
            except MusterError as error:
                failures += 1
                self._show(Waiting("CreateContainerConfigError", str(error)))
                if failures == 1:
                    self._host.tell("Failed", f"Error: {error}", is_warning=True)
                await asyncio.sleep(min(0.125 * 2**failures, 30.0))
        prepare(run)
        self._instance = Instance.spawn(run, launch)
        self.view = replace(self.view, restarts=int(run.name))
        await self._instance.ready()
        if self._instance.started_at:
            self._host.tell("Started", f"Started container {self.name}")
        return self._instance

    async def _observe(self, instance: Instance) -> None:
        await instance.ready()
        if instance.started_at:
            self._running.set()
            self._show(Running(instance.started_at, _run_name(instance)))

    def _note(self, how: Exit) -> Terminated:
        """Show how the run ended."""
        instance = self._instance
        assert instance is not None, "only what was started ends"
        message = how.error or message_of(instance.run, has_failed=how.code != 0)
        ended = Terminated(
            how.code,
            how.signal,
            _reason(how),
            message,
            how.started_at,
            how.finished_at or time.time(),
            _run_name(instance),
        )
        _log.info("container ended run=%s code=%d", ended.run, how.code)
        self._show(ended)
        return ended

    async def _pause(self, ended: Terminated) -> None:
        """Wait for the time of the next restart."""
        restart = self.view.restarts + 1
        seconds = self._rules.pause_before(restart)
        reason = "CrashLoopBackOff" if seconds else "ContainerCreating"
        message = f"back-off {seconds:.0f}s restarting failed container={self.name}"
        self._instance = None
        self.view = replace(
            self.view,
            state=Waiting(reason, message if seconds else ""),
            last=ended,
            restarts=restart,
        )
        if seconds:
            self._host.changed()
            self._host.tell("BackOff", message, is_warning=True)
            await asyncio.sleep(max(0.0, ended.finished_at + seconds - time.time()))

    def _show(self, state: Waiting | Running | Terminated) -> None:
        self.view = replace(self.view, state=state)
        self._host.changed()


async def _end_of(instance: Instance) -> Exit:
    """The end of an instance that was killed; made sure of."""
    try:
        async with asyncio.timeout(_UNKILLABLE_SECONDS):
            return await instance.wait()
    except TimeoutError:
        _log.error("the launcher of %s does not kill; killing it", instance.run)
        instance.destroy()
        return await instance.wait()


def _reason(how: Exit) -> str:
    if how.error:
        return "StartError" if not how.started_at else "ContainerStatusUnknown"
    return "Error" if how.code else "Completed"


def _run_name(instance: Instance) -> str:
    """Short and unique: the pod's uid, the container, the number of the run."""
    container = instance.run.parent
    return f"{container.parent.parent.name}/{container.name}/{instance.run.name}"
