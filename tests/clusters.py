"""The API server that the tests of a session share, and what they ask of it."""

import asyncio
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from eventually import eventually
from muster import wire
from muster_kube import NAMESPACES, ApiNotFound, Kube
from muster_local import access, apply, policies, resources
from muster_local.control_plane import ControlPlane

T = TypeVar("T")


class RunningCluster:
    """A real API server with our CRDs, roles and policies; no nodes, and no platform."""

    def __init__(self, control_plane: ControlPlane) -> None:
        self.control_plane = control_plane
        self.directory = control_plane.directory
        self.url = control_plane.url
        self.bootstrap_kubeconfig = control_plane.bootstrap_kubeconfig
        """May do everything, by certificate."""
        self.kubeconfig = self.bootstrap_kubeconfig
        """The user's: a token of `muster-admin`."""

    def kubeconfig_of(self, account: str, namespace: str = wire.SYSTEM_NAMESPACE) -> Path:
        """A kubeconfig with a token of a service account."""
        path = self.directory / "accounts" / f"{namespace}-{account}.kubeconfig"
        user = {"token": self.token_of(account, namespace)}
        content = access.token_kubeconfig(
            self.directory / "pki", self.url, "default", account, user
        )
        access.write_kubeconfig(path, content)
        return path

    def token_of(self, account: str, namespace: str = wire.SYSTEM_NAMESPACE) -> str:
        """A token of a service account for the API server."""

        async def ask() -> str:
            async with await Kube.connect(self.bootstrap_kubeconfig) as kube:
                return await access.token_of(kube, account, namespace=namespace)

        return blocking(ask())

    def create_namespace(self, labels: dict[str, str] | None = None) -> str:
        """A new namespace in which pods can be created."""
        return blocking(self._create_namespace(labels or {}))

    def delete_namespace(self, name: str) -> None:
        """Start to delete a namespace; nobody waits for the end of it."""

        async def delete() -> None:
            async with await Kube.connect(self.bootstrap_kubeconfig) as kube:
                await kube.delete(NAMESPACES.path(name=name))

        blocking(delete())

    async def _create_namespace(self, labels: dict[str, str]) -> str:
        async with await Kube.connect(self.bootstrap_kubeconfig) as kube:
            metadata = {"generateName": "test-", "labels": labels}
            created = await kube.create(
                NAMESPACES.path(),
                {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata},
            )
            name = str(created["metadata"]["name"])

            async def has_account() -> bool:
                try:
                    await kube.get(f"/api/v1/namespaces/{name}/serviceaccounts/default")
                except ApiNotFound:
                    return False
                return True

            # Pods without it are refused; a controller makes it, a moment later.
            await eventually(has_account)
            return name


@contextmanager
def running_cluster(directory: Path) -> Iterator[RunningCluster]:
    """A cluster in *directory* for as long as the context lasts, and never longer than we live."""
    with ControlPlane(directory, is_tethered=True) as control_plane:
        cluster = RunningCluster(control_plane)
        blocking(_apply(cluster))
        control_plane.settle()
        yield cluster


def blocking(work: Coroutine[Any, Any, T]) -> T:
    """The result of *work*, whether or not a loop runs in this thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


async def _apply(cluster: RunningCluster) -> None:
    manifests = apply.manifests_in(resources.chart())
    async with await Kube.connect(cluster.bootstrap_kubeconfig) as kube:
        await apply.apply(kube, manifests)
        await apply.until(lambda: policies.are_in_force(kube), "the admission policies")
    cluster.kubeconfig = await asyncio.to_thread(cluster.kubeconfig_of, access.ADMIN)
