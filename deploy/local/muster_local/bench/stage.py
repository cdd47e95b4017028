"""A local cluster for one benchmark: control plane, KWOK nodes, and the operator alone."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from muster_local import lifecycle, platform, recipes
from muster_local.bench.shape import Shape
from muster_local.component import Component, stop
from muster_local.launch import Launch
from muster_local.progress import Tell
from muster_local.shape import Options
from muster_local.state import Cluster, names

_PREFIX: Final = "bench-"
_GPUS_PER_NODE: Final = 8


@dataclass(frozen=True, slots=True)
class Stage:
    """What a benchmark runs on."""

    cluster: Cluster
    operator: Component

    @property
    def kubeconfig(self) -> Path:
        """May do everything."""
        return self.cluster.kubeconfig

    @property
    def store_pids(self) -> list[int]:
        """The processes of the API server and of etcd."""
        names = {recipes.API_SERVER, recipes.ETCD}
        return [each.pid for each in self.cluster.components if each.name in names]

    def stop_operator(self) -> None:
        """End the operator, so that what follows is measured without it."""
        stop([self.operator])


@contextmanager
def set_up(shape: Shape, tell: Tell) -> Iterator[Stage]:
    """A cluster of this process for as long as the context lasts; leftovers of others go first."""
    _remove_leftovers(tell)
    name = f"{_PREFIX}{os.getpid()}"
    options = Options(name, nodes=0, gpus=_GPUS_PER_NODE, kwok_nodes=shape.nodes, no_platform=True)
    cluster = lifecycle.up(options, tell)
    try:
        tell("starting the operator")
        recipe = platform.operator(cluster.directory, api_url="", has_scheduler=False)
        # Dies with us, however we end.
        operator = Launch(recipe, cluster.directory, is_tethered=True).wait()
        try:
            yield Stage(cluster, operator)
        finally:
            stop([operator])
    finally:
        lifecycle.down(name, tell)


def _remove_leftovers(tell: Tell) -> None:
    """Remove the clusters of benchmarks that were killed."""
    for name in names():
        pid = name.removeprefix(_PREFIX)
        if pid != name and pid.isdigit() and not psutil.pid_exists(int(pid)):
            lifecycle.down(name, tell)
