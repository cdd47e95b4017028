"""Where the API is, and who asks.

1. `MUSTER_API_URL`, if set.
2. The API of a local cluster, where the current context is that of one, or where there is no
   kubeconfig at all.
3. Otherwise a port-forward to Service `muster-api` in `muster-system`.

`choose` decides; `muster_cli.session` acts on it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from muster.errors import InvalidSpec, Unavailable
from muster_cli import kubeconfig
from muster_cli.kubeconfig import Access


@dataclass(frozen=True, slots=True)
class Local:
    """A local cluster, as its state describes it."""

    name: str
    kubeconfig: Path
    server: str
    """The URL of its API server, by which a context is recognized as this cluster's."""
    api_url: str | None
    """The URL of its Muster API; None where it runs without the platform."""


def the_local_one(clusters: Sequence[Local]) -> Local:
    """The cluster meant where there is no kubeconfig: `default`, else the only one there is."""
    by_name = {cluster.name: cluster for cluster in clusters}
    if not by_name:
        raise Unavailable(
            "there is no kubeconfig and no local cluster; start one with `muster local up`, "
            "or set KUBECONFIG or MUSTER_API_URL"
        )
    if "default" in by_name:
        return by_name["default"]
    if len(by_name) > 1:
        raise InvalidSpec(
            "--kubeconfig",
            f"there are several local clusters ({', '.join(sorted(by_name))}); choose one with "
            "--kubeconfig $(muster local kubeconfig --name NAME)",
        )
    return next(iter(by_name.values()))


def api_url(url: str | None, access: Access | None, clusters: Sequence[Local]) -> str | None:
    """The URL of the API; None says that it has to be forwarded from the cluster.

    *url* is `MUSTER_API_URL`.
    """
    if url:
        return url.rstrip("/")
    if access is None:
        return None
    local = next((c for c in clusters if c.server == access.server), None)
    if local is None:
        return None
    if local.api_url is None:
        raise Unavailable(
            f"the local cluster {local.name} runs without the platform (--no-platform)"
        )
    return local.api_url


def local_clusters() -> tuple[Local, ...]:
    """The local clusters of this machine; none where their part of Muster is not installed."""
    try:
        from muster_local import state  # noqa: PLC0415 -- an extra that need not be there
    except ImportError:
        return ()
    found = []
    for name in state.names():
        cluster = state.load(name)
        if cluster is None or not cluster.kubeconfig.is_file():
            continue
        access = kubeconfig.read((cluster.kubeconfig,))
        if access is not None:
            found.append(Local(name, cluster.kubeconfig, access.server, cluster.api_url))
    return tuple(found)
