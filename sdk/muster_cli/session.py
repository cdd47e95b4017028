"""What a command needs of the outside: the namespace, the API and the cluster, found once.

The clients are imported when they are asked for, so that `muster --help` and mistakes in the
options are answered at once.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from muster import wire
from muster_cli import discover, kubeconfig
from muster_cli.forward import SERVICE, forwarded
from muster_cli.kubeconfig import Access

if TYPE_CHECKING:
    from muster_cli.api import Api
    from muster_kube import Kube

IN_CLUSTER_URL: Final = f"http://{SERVICE}.{wire.SYSTEM_NAMESPACE}.svc"


@dataclass(frozen=True, slots=True)
class Session:
    """One cluster, one user, one namespace."""

    namespace: str
    url: str | None
    """Where the API is; None: behind a port-forward."""
    access: Access | None = None
    """What the kubeconfig says; None without one."""
    kubeconfigs: tuple[Path, ...] = ()
    """The files that `access` is from, in order of precedence."""
    context: str | None = None
    is_in_pod: bool = False
    """Whether we run inside the cluster, with a service account of our own."""

    @contextmanager
    def api(self) -> Iterator["Api"]:
        """The Muster API, with this user's token."""
        from muster_cli.api import Api  # noqa: PLC0415 -- see the module's docstring

        token = self._token()
        if self.url is not None:
            with Api(self.url, token) as api:
                yield api
            return
        with forwarded(self._kubectl_options()) as url, Api(url, token) as api:
            yield api

    @asynccontextmanager
    async def kube(self) -> AsyncIterator["Kube"]:
        """The API server, with this user's credentials."""
        from muster_kube import Kube  # noqa: PLC0415 -- see the module's docstring

        # The client would look for KUBECONFIG itself, as it was when it was imported.
        files = Path(os.pathsep.join(map(str, self.kubeconfigs))) if self.kubeconfigs else None
        async with await Kube.connect(files, context=self.context) as kube:
            yield kube

    def _token(self) -> str | None:
        if self.access is not None and not self.access.needs_client:
            return self.access.token
        if self.access is None and not self.is_in_pod:
            return None
        return asyncio.run(self._worked_out_token())

    async def _worked_out_token(self) -> str | None:
        async with self.kube() as kube:
            return await kube.token()

    def _kubectl_options(self) -> list[str]:
        one = len(self.kubeconfigs) == 1
        options = ["--kubeconfig", str(self.kubeconfigs[0])] if one else []
        return options + ([] if self.context is None else ["--context", self.context])


def connect(
    namespace: str | None = None, context: str | None = None, chosen: Path | None = None
) -> Session:
    """The session that the options *namespace*, *context* and *chosen* (a kubeconfig) ask for.

    Nothing is sent yet.
    """
    url = os.environ.get(wire.ENV_API_URL)
    files = kubeconfig.files(chosen, os.environ, Path.home())
    access = kubeconfig.read(files, context)
    if access is None and "KUBERNETES_SERVICE_HOST" in os.environ:
        return Session(namespace or "default", url or IN_CLUSTER_URL, is_in_pod=True)
    clusters = discover.local_clusters()
    if access is None and (clusters or not url):
        files = (discover.the_local_one(clusters).kubeconfig,)
        access = kubeconfig.read(files, context)
    return Session(
        namespace or (access.namespace if access else "default"),
        discover.api_url(url, access, clusters),
        access,
        files,
        context,
    )
