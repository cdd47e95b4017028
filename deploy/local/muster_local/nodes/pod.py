"""The containers of one pod, in the order in which Kubernetes runs them."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from muster.errors import MusterError
from muster_local.nodes.admission import without_effect
from muster_local.nodes.container import Container, Rules
from muster_local.nodes.contents import Contents
from muster_local.nodes.context import Context
from muster_local.nodes.launcher.launch import Launch
from muster_local.nodes.order import Setting, order_of
from muster_local.nodes.sources import Missing
from muster_local.nodes.status import ContainerView, Terminated
from muster_local.nodes.stopping import Stop
from muster_local.nodes.storage import Record

_log = logging.getLogger(__name__)

Raw = Mapping[str, Any]

_RETRY_SECONDS: Final = (0.25, 0.5, 1.0, 2.0, 5.0, 10.0)


class PodRun:
    """A pod that was admitted. `live` runs it to its end, `end` ends what still runs."""

    def __init__(
        self,
        pod: Raw,
        record: Record,
        context: Context,
        *,
        allocatable: Mapping[str, str],
        on_change: Callable[[], None],
    ) -> None:
        self._pod = pod
        self._record = record
        self._context = context
        self._allocatable = allocatable
        self._on_change = on_change
        self._files = context.storage.pod(pod["metadata"]["uid"])
        self._contents = Contents(context.kube, pod, self._files, allocatable)
        self._prepared = asyncio.Event()
        self._hosts = context.hosts.join(pod)
        spec = pod["spec"]
        self._inits = self._containers(spec.get("initContainers") or (), is_init=True)
        self._mains = self._containers(spec["containers"], is_init=False)

    @property
    def views(self) -> tuple[ContainerView, ...]:
        """What each container does now."""
        return tuple(container.view for container in (*self._inits, *self._mains))

    async def live(self) -> None:
        """Run everything; returns when nothing will be started any more."""
        if not any(container.has_runs for container in (*self._inits, *self._mains)):
            self._announce()
        async with asyncio.TaskGroup() as group:
            aside = [group.create_task(self._supply())]
            if await self._initialize(group, aside):
                await asyncio.gather(*(container.keep() for container in self._mains))
            for task in aside:
                task.cancel()

    async def end(self, stop: Stop) -> None:
        """End what still runs."""
        everyone = (*self._inits, *self._mains)
        await asyncio.gather(*(container.terminate(stop) for container in everyone))

    def leave(self) -> None:
        """Let others forget the pod's names."""
        self._context.hosts.leave(self._pod)

    async def order(self, container: Raw, run: Path) -> Launch:
        """What to launch for *container*; waits for the volumes. Raises a `MusterError`."""
        await self._prepared.wait()
        context = self._context
        setting = Setting(
            context.platform,
            context.programs,
            self._allocatable,
            self._contents.sources,
            self._contents.places,
            self._hosts,
            context.hosts.names(self._pod),
            self._record.grant,
            has_namespaces=not context.refused_because,
        )
        work = self._files.work(container["name"])
        try:
            launch = order_of(self._pod, container, run, work, setting)
        except Missing:
            await self._contents.refresh_sources()
            raise
        return launch if launch.mounts else _in_existing_directory(launch, work)

    def changed(self) -> None:
        """A container's view changed."""
        self._on_change()

    def tell(self, reason: str, message: str, *, is_warning: bool = False) -> None:
        """Say something to the pod's users."""
        self._context.events.tell(self._pod, reason, message, is_warning=is_warning)

    def _announce(self) -> None:
        """Say on the pod what is different here from what it asks for."""
        images = ", ".join(dict.fromkeys(view.image for view in self.views))
        self.tell(
            "ImageIgnored",
            f"this node runs processes: {images} is not pulled, commands run in the Python "
            f"environment {self._context.programs}",
        )
        if fields := without_effect(self._pod):
            self.tell("FieldsWithoutEffect", f"not carried out here: {', '.join(fields)}")
        if self._context.refused_because:
            self.tell(
                "PathsSubstituted",
                f"mount namespaces are refused ({self._context.refused_because}): mount paths "
                "and names of the job's pods are replaced in env, command and args; a path "
                "written into a script is not found",
            )

    async def _initialize(self, group: asyncio.TaskGroup, aside: list[asyncio.Task[None]]) -> bool:
        """Run the init containers; whether the others may start."""
        for container in self._inits:
            if container.is_sidecar:
                aside.append(group.create_task(container.keep()))
                await container.running()
                continue
            await container.keep()
            ended = container.view.state
            if not (isinstance(ended, Terminated) and ended.exit_code == 0):
                return False
        return True

    async def _supply(self) -> None:
        """Prepare the volumes, for as long as that takes, and keep their tokens fresh."""
        failures = 0
        while True:
            try:
                await self._contents.prepare()
                break
            except (MusterError, OSError) as error:
                if failures % len(_RETRY_SECONDS) == 0:
                    self.tell("FailedMount", str(error), is_warning=True)
                    self._on_change()
                await asyncio.sleep(_RETRY_SECONDS[min(failures, len(_RETRY_SECONDS) - 1)])
                failures += 1
        self._prepared.set()
        await self._contents.keep_tokens()

    def _containers(self, specs: Any, *, is_init: bool) -> tuple[Container, ...]:
        pause = self._context.settings.restart_seconds
        return tuple(
            Container(
                spec,
                Rules.of(self._pod, spec, is_init=is_init, pause_seconds=pause),
                self._files,
                self,
                is_init=is_init,
            )
            for spec in specs
        )


def _in_existing_directory(launch: Launch, work: Path) -> Launch:
    """*launch*, in *work* where its directory is missing: it must not be made on the machine."""
    if Path(launch.working_directory).is_dir():
        return launch
    return replace(launch, working_directory=str(work))
