"""etcd, the API server and the controllers: the smallest thing that is a real Kubernetes API.

Usable alone: tests and benchmarks start one in a directory of their own and stop it again; `muster
local up` puts nodes and the platform on top of the same class.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

from muster.errors import Unavailable
from muster_local import binaries, certificates, recipes
from muster_local.access import certificate_kubeconfig, write_kubeconfig
from muster_local.component import Component, stop
from muster_local.launch import Launch, Recipe

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
        known: Mapping[str, Component] | None = None,
        on_start: Callable[[Component], None] = lambda component: None,
    ) -> None:
        """*known* are components of an earlier run; a tethered one dies with our thread."""
        self.directory = directory.absolute()
        self._name = name
        self._with_scheduler = with_scheduler
        self._is_tethered = is_tethered
        self._on_start = on_start
        self.components: dict[str, Component] = dict(known or {})
        self._on_their_way: list[Launch] = []

    @property
    def url(self) -> str:
        """Where the API server answers. Raises `Unavailable` before `start`."""
        component = self.components.get(recipes.API_SERVER)
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

    def start(self) -> None:
        """Start what does not run, and come back when the API server answers.

        The controllers come up meanwhile: `settle` waits for them. Raises `Failed`, with nothing
        left running that was started here, or `binaries.Missing`.
        """
        programs = binaries.find_all(self._programs())
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        certificates.ensure_certificates(self.directory / "pki")
        try:
            self._ensure(recipes.ETCD, recipes.etcd(programs[recipes.ETCD], self.directory))
            self._settle_launches()
            self._ensure(
                recipes.API_SERVER,
                recipes.api_server(programs[recipes.API_SERVER], self.directory),
            )
            self._settle_launches()
            self._write_kubeconfigs()
            self._ensure(
                recipes.CONTROLLERS,
                recipes.controllers(programs[recipes.CONTROLLERS], self.directory),
            )
            if self._with_scheduler:
                self._ensure(
                    recipes.SCHEDULER,
                    recipes.scheduler(programs[recipes.SCHEDULER], self.directory),
                )
        except BaseException:
            # A Ctrl-C too must not leave half a control plane behind.
            self.stop()
            raise

    def settle(self) -> None:
        """Wait until everything that `start` started is ready. Raises `Failed`."""
        try:
            self._settle_launches()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End everything, the store last."""
        stop(reversed(self.components.values()))
        self.components.clear()
        self._on_their_way.clear()

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

    def _programs(self) -> list[str]:
        names = [recipes.ETCD, recipes.API_SERVER, recipes.CONTROLLERS]
        return [*names, recipes.SCHEDULER] if self._with_scheduler else names

    def _ensure(self, name: str, recipe: Recipe) -> None:
        before = self.components.get(name)
        if before is not None and before.is_alive():
            return
        port = urlsplit(before.url).port if before is not None and before.url else None
        launch = Launch(
            recipe,
            self.directory,
            port=port,
            is_tethered=self._is_tethered,
            on_start=self._started,
        )
        self._on_their_way.append(launch)

    def _started(self, component: Component) -> None:
        self.components[component.name] = component
        self._on_start(component)

    def _settle_launches(self) -> None:
        while self._on_their_way:
            self._on_their_way[0].wait()
            del self._on_their_way[0]

    def _write_kubeconfigs(self) -> None:
        pki = self.directory / "pki"
        for client in _KUBECONFIGS:
            content = certificate_kubeconfig(pki, client, self.url, self._name)
            write_kubeconfig(self.kubeconfig_of(client), content)
