"""What a new API server is given: our kinds, roles and policies, tokens, and KWOK's nodes.

All of it may be done again on a cluster that has it.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from muster_kube import NODES, AlreadyExists, Kube
from muster_local import apply, policies, resources
from muster_local.access import ADMIN, token_kubeconfig, token_of, write_kubeconfig, write_secret
from muster_local.component import Component
from muster_local.hardware import kwok_name, kwok_node, node_name
from muster_local.launch import Failed
from muster_local.platform import ACCOUNTS, account_kubeconfig
from muster_local.progress import Tell
from muster_local.shape import Shape

_AT_ONCE: Final = 32
_NODES_SECONDS: Final = 90.0


async def furnish(kubeconfig: Path, directory: Path, name: str, tell: Tell) -> None:
    """Apply what the chart has for a local cluster, and write kubeconfigs with new tokens."""
    async with await Kube.connect(kubeconfig) as kube:
        tell("applying kinds, roles and policies")
        roles = apply.read(Path(__file__).parent / "manifests" / "roles.yaml")
        await apply.apply(kube, [*apply.manifests_in(resources.chart()), *roles])
        await _write_tokens(kube, directory, name)


async def await_policies(kubeconfig: Path, tell: Tell) -> None:
    """Wait until the API server acts on the policies that it has. Raises `Unavailable`."""
    async with await Kube.connect(kubeconfig) as kube:
        tell("waiting for the admission policies")
        await apply.until(lambda: policies.are_in_force(kube), "the admission policies")


async def create_kwok_nodes(kubeconfig: Path, name: str, shape: Shape) -> None:
    """Create the nodes that KWOK is to play and that are not there yet."""
    limit = asyncio.Semaphore(_AT_ONCE)
    async with await Kube.connect(kubeconfig, connections=_AT_ONCE) as kube:
        there = {node["metadata"]["name"] for node in (await kube.list(NODES.path()))[0]}

        async def create(index: int) -> None:
            async with limit:
                try:
                    await kube.create(NODES.path(), kwok_node(name, shape, index))
                except AlreadyExists:
                    return

        missing = [index for index in range(shape.kwok_nodes) if kwok_name(index) not in there]
        await asyncio.gather(*(create(index) for index in missing))


async def await_nodes(
    kubeconfig: Path, names: frozenset[str], hosts: Sequence[Component], tell: Tell
) -> None:
    """Wait until all nodes *names* are ready for pods.

    Raises `Failed` when one of the *hosts* that play them dies, and `Unavailable`.
    """
    async with await Kube.connect(kubeconfig) as kube:

        async def are_ready() -> bool:
            for host in hosts:
                if not host.is_alive():
                    raise Failed(host)
            nodes, _ = await kube.list(NODES.path())
            ready = {node["metadata"]["name"] for node in nodes if is_ready(node)}
            missing = names - ready
            tell(f"waiting for the nodes\n{len(names) - len(missing)} of {len(names)} are ready")
            return not missing

        # A list of all nodes costs the more the more there are.
        every = 0.1 + len(names) / 1000
        await apply.until(
            are_ready, "the nodes to be ready", seconds=_NODES_SECONDS, every_seconds=every
        )


def is_ready(node: dict[str, object]) -> bool:
    """Whether a Node reports that it is ready and no taint of the controllers keeps pods away."""
    status, spec = node.get("status"), node.get("spec")
    conditions = status.get("conditions") or () if isinstance(status, dict) else ()
    taints = spec.get("taints") or () if isinstance(spec, dict) else ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions) and (
        not any(each["key"].startswith("node.kubernetes.io/not-ready") for each in taints)
    )


def names_of(shape: Shape, down: frozenset[str] = frozenset()) -> frozenset[str]:
    """The names of all nodes of a cluster, without those that were killed."""
    mine = {node_name(index) for index in range(shape.nodes)}
    return frozenset(mine | {kwok_name(index) for index in range(shape.kwok_nodes)}) - down


async def _write_tokens(kube: Kube, directory: Path, name: str) -> None:
    pki = directory / "pki"
    accounts = (*ACCOUNTS.values(), ADMIN)
    tokens = await asyncio.gather(*(token_of(kube, account) for account in accounts))
    for account, token in zip(accounts, tokens, strict=True):
        if account == ADMIN:
            # The user's own holds the token itself: it may be copied elsewhere.
            user = {"token": token}
            path = directory / "kubeconfig"
        else:
            file = directory / "accounts" / f"{account}.token"
            write_secret(file, token)
            user = {"tokenFile": str(file)}
            path = account_kubeconfig(directory, account)
        write_kubeconfig(path, token_kubeconfig(pki, kube.server, name, account, user))
