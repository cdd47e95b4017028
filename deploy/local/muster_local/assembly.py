"""The steps of `up`, in the order of need: control plane, roles and tokens, nodes, platform."""

import asyncio
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from muster_local import binaries, node_hosts, platform, recipes
from muster_local.component import Component
from muster_local.control_plane import ControlPlane
from muster_local.crew import Crew
from muster_local.furnish import (
    await_nodes,
    await_policies,
    create_kwok_nodes,
    furnish,
    names_of,
)
from muster_local.hardware import process_nodes
from muster_local.nodes.table import read_nodes, write_nodes
from muster_local.ports import LOOPBACK, free_ports
from muster_local.progress import Tell
from muster_local.shape import Shape
from muster_local.state import API, Cluster, save

_KWOK_GRACE_SECONDS: Final = 600


def assemble(cluster: Cluster, before: Shape | None, tell: Tell) -> Cluster:
    """Start what *cluster* lacks; *before* is what it was. Gives it back with its components.

    What it started is ended again on any failure, Ctrl-C among them.
    """
    assembly = _Assembly(cluster)
    try:
        assembly.start_control_plane(tell)
        assembly.start_nodes(tell)
        if cluster.shape.has_platform:
            assembly.start_platform(tell, is_changed=before != cluster.shape)
        assembly.settle(tell)
    except BaseException:
        assembly.take_back()
        raise
    return assembly.cluster


def _grace(shape: Shape) -> int:
    """Seconds of silence after which a node is lost: KWOK, when busy, forgets its heartbeats."""
    return _KWOK_GRACE_SECONDS if shape.kwok_nodes else recipes.NODE_GRACE_SECONDS


class _Assembly:
    """One call of `up`, with the cluster as it is at each moment."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._directory = cluster.directory
        self._crew = Crew(cluster.directory, known=cluster.components, on_change=self._write_down)
        self._control_plane = ControlPlane(
            cluster.directory,
            name=cluster.name,
            with_scheduler=cluster.shape.has_scheduler,
            node_grace_seconds=_grace(cluster.shape),
            crew=self._crew,
        )

    def start_control_plane(self, tell: Tell) -> None:
        """An API server that knows our kinds and gives out tokens."""
        if self.cluster.shape.kwok_nodes:
            # Whatever is missing is missed before anything starts.
            binaries.find(node_hosts.KWOK_NODES, tell)
        self._control_plane.start(tell)
        kubeconfig = self._control_plane.bootstrap_kubeconfig
        asyncio.run(furnish(kubeconfig, self._directory, self.cluster.name, tell))

    def start_nodes(self, tell: Tell) -> None:
        """The table of process nodes and who carries it out; KWOK and its nodes."""
        shape, table = self.cluster.shape, self._directory / "nodes"
        before = read_nodes(table)
        if len(before) < shape.nodes:
            write_nodes(table, process_nodes(self.cluster.name, shape, before))
        if shape.nodes:
            recipe = node_hosts.process_nodes(self._directory)
            self._crew.ensure(node_hosts.PROCESS_NODES, recipe)
        if shape.kwok_nodes:
            tell("creating KWOK nodes")
            kubeconfig = self._control_plane.bootstrap_kubeconfig
            asyncio.run(create_kwok_nodes(kubeconfig, self.cluster.name, shape))
            program = binaries.find(node_hosts.KWOK_NODES, tell)
            self._crew.ensure(node_hosts.KWOK_NODES, node_hosts.kwok(program, self._directory))

    def start_platform(self, tell: Tell, *, is_changed: bool) -> None:
        """API first, since the operator tells replicas where it is."""
        api = self._crew.component(API)
        port = self._operator_port()
        operator_url = f"http://{LOOPBACK}:{port}"
        self._crew.ensure(API, platform.api(self._directory, operator_url=operator_url))
        self._crew.settle(tell)
        self._crew.ensure(platform.RECORDER, platform.recorder(self._directory))
        if is_changed or self._crew.component(API) != api:
            # It was told of another API, or whether there is a scheduler, at its start.
            self._crew.end([platform.OPERATOR])
        self._crew.ensure(
            platform.OPERATOR,
            platform.operator(
                self._directory,
                api_url=self.cluster.api_url or "",
                has_scheduler=self.cluster.shape.has_scheduler,
                port=port,
            ),
        )

    def _operator_port(self) -> int:
        """The port that the API is told before the operator starts, which needs the API's."""
        known = self._crew.component(platform.OPERATOR)
        port = urlsplit(known.url).port if known is not None and known.url else None
        return port or free_ports(1)[0]

    def settle(self, tell: Tell) -> None:
        """Wait until a job can be submitted, and pods run on all nodes that were not killed."""
        self._crew.settle(tell)
        kubeconfig = self._control_plane.bootstrap_kubeconfig
        asyncio.run(await_policies(kubeconfig, tell))
        killed = frozenset(
            each.name for each in read_nodes(self._directory / "nodes") if each.down
        )
        names = names_of(self.cluster.shape, killed)
        hosts = [each for each in self.cluster.components if each.kind == node_hosts.KIND]
        asyncio.run(await_nodes(kubeconfig, names, hosts, tell))

    def take_back(self) -> None:
        """End what this call started."""
        self._crew.take_back()

    def _write_down(self, components: tuple[Component, ...]) -> None:
        self.cluster = replace(self.cluster, components=components)
        save(self.cluster)
