"""etcd, the API server and the controllers: the smallest thing that is a real Kubernetes API.

Usable alone: tests and benchmarks start one in a directory of their own and stop it again; `muster
local up` puts nodes and the platform on top of the same class.
"""

import logging
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from muster.errors import Unavailable
from muster_local import binaries, certificates, recipes
from muster_local.access import certificate_kubeconfig, write_kubeconfig
from muster_local.crew import Crew
from muster_local.launch import Failed
from muster_local.progress import Tell, quiet

_log = logging.getLogger(__name__)

_KUBECONFIGS: Final = (
    certificates.BOOTSTRAP,
    certificates.CONTROLLERS,
    certificates.SCHEDULER,
    certificates.NODES,
    certificates.KWOK,
)


class ControlPlane:
    """A Kubernetes API in a directory. `start` it, use `bootstrap_kubeconfig`, `stop` it.

    As a context manager it does both. What still runs from before is kept, so that starting twice
    is harmless; what a killed one left in the directory is used again.
    """

    def __init__(
        self,
        directory: Path,
        *,
        name: str = "default",
        with_scheduler: bool = False,
        is_tethered: bool = False,
        node_grace_seconds: int = recipes.NODE_GRACE_SECONDS,
        crew: Crew | None = None,
    ) -> None:
        """A tethered control plane dies with our thread. *crew* holds what ran before, if any.

        A node that was silent for *node_grace_seconds* counts as lost.
        """
        self.directory = directory.absolute()
        self._name = name
        self._with_scheduler = with_scheduler
        self._node_grace_seconds = node_grace_seconds
        self._crew = crew or Crew(self.directory, is_tethered=is_tethered)

    @property
    def url(self) -> str:
        """Where the API server answers. Raises `Unavailable` before `start`."""
        component = self._crew.component(recipes.API_SERVER)
        if component is None or component.url is None:
            raise Unavailable("the API server was not started")
        return component.url

    @property
    def bootstrap_kubeconfig(self) -> Path:
        """A kubeconfig that may do everything, by certificate."""
        return self.kubeconfig_of(certificates.BOOTSTRAP)

    def kubeconfig_of(self, client: certificates.Client) -> Path:
        """The kubeconfig of a client that has a certificate."""
        return self.directory / "pki" / f"{client.file}.kubeconfig"

    def start(self, tell: Tell = quiet) -> None:
        """Start what does not run, and come back when the API server answers.

        The controllers come up meanwhile: `settle` waits for them. Raises `Failed`, with what was
        started here ended again, or `binaries.Missing`.
        """
        # What runs needs no program; its file may be gone by now.
        missing = [name for name in self._names() if not self._crew.is_running(name)]
        programs = {name: Path(name) for name in self._names()}
        programs |= binaries.find_all(missing, tell)
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        certificates.ensure_certificates(self.directory / "pki")
        try:
            self._start_store(programs[recipes.ETCD], tell)
            self._start_server(programs[recipes.API_SERVER], tell)
            self._start_clients(programs)
        except BaseException:
            # A Ctrl-C too must not leave half a control plane behind.
            self._crew.take_back()
            raise

    def settle(self, tell: Tell = quiet) -> None:
        """Wait until everything that `start` started is ready. Raises `Failed`."""
        try:
            self._crew.settle(tell)
        except BaseException:
            self._crew.take_back()
            raise

    def stop(self) -> None:
        """End everything, the store last."""
        self._crew.end()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _names(self) -> list[str]:
        names = [recipes.ETCD, recipes.API_SERVER, recipes.CONTROLLERS]
        return [*names, recipes.SCHEDULER] if self._with_scheduler else names

    def _start_clients(self, programs: Mapping[str, Path]) -> None:
        """Start what speaks to the API server."""
        controllers = recipes.controllers(
            programs[recipes.CONTROLLERS],
            self.directory,
            node_grace_seconds=self._node_grace_seconds,
        )
        self._crew.ensure(recipes.CONTROLLERS, controllers)
        if self._with_scheduler:
            scheduler = recipes.scheduler(programs[recipes.SCHEDULER], self.directory)
            self._crew.ensure(recipes.SCHEDULER, scheduler)

    def _start_store(self, program: Path, tell: Tell) -> None:
        """Start etcd; if it ends at once with what it has, without it.

        It writes without fsync, so that a power cut may have spoilt its data.
        """
        data, aside = self.directory / "etcd", self.directory / "etcd-unreadable"
        has_data = data.exists()
        try:
            self._crew.ensure(recipes.ETCD, recipes.etcd(program, self.directory))
            self._crew.settle(tell)
        except Failed as error:
            if not (has_data and error.has_ended):
                raise
            _log.warning("the cluster starts empty; its data is kept in %s: %s", aside, error)
            shutil.rmtree(aside, ignore_errors=True)
            data.rename(aside)
            self._crew.ensure(recipes.ETCD, recipes.etcd(program, self.directory))
            self._crew.settle(tell)

    def _start_server(self, program: Path, tell: Tell) -> None:
        before = self._crew.component(recipes.API_SERVER)
        self._crew.ensure(recipes.API_SERVER, recipes.api_server(program, self.directory))
        self._crew.settle(tell)
        if before is not None and before.url != self.url:
            # It had to move: whatever speaks to it holds the old address.
            self._crew.end_all_but((recipes.ETCD, recipes.API_SERVER))
        pki = self.directory / "pki"
        for client in _KUBECONFIGS:
            content = certificate_kubeconfig(pki, client, self.url, self._name)
            write_kubeconfig(self.kubeconfig_of(client), content)
