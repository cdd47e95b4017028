"""`up` and `down`: a named cluster from nothing, from what a crash left, or from what runs.

`up` brings a cluster to what was asked for, whatever it finds: processes that live are kept, those
that died are started again on the data they left, tokens are renewed. A call that fails or is
interrupted takes back what it started. All of it blocks; call it outside of an event loop.
"""

import shutil

from muster.errors import InvalidSpec, MusterError
from muster_local.component import stop
from muster_local.interrupts import uninterrupted
from muster_local.nodes import leftovers
from muster_local.nodes.table import set_down
from muster_local.progress import Tell, quiet
from muster_local.shape import Options, Shape, shape_of
from muster_local.state import Cluster, directory_of, load, locked, require


def up(options: Options, tell: Tell = quiet) -> Cluster:
    """Start the cluster that *options* describe, or complete it; it is ready when this comes back.

    Raises `InvalidSpec` for options that cannot be, `binaries.Missing`, `Failed` with the end of
    the log of what did not come up, and `Unavailable` for what took too long.
    """
    directory = directory_of(options.name)
    # What cannot be is refused before anything is made.
    _shape(options, load(options.name))
    with locked(directory, tell):
        before = load(options.name)
        cluster = Cluster(
            name=options.name,
            directory=directory,
            shape=_shape(options, before),
            components=before.components if before else (),
        )
        # Brings the Kubernetes client, whose import takes longer than `down` or `logs`.
        from muster_local import assembly  # noqa: PLC0415

        try:
            return assembly.assemble(cluster, before.shape if before else None, tell)
        except BaseException as error:
            # The logs of a new cluster that failed are kept: the message names one.
            has_logs = isinstance(error, MusterError) and (directory / "logs").exists()
            if before is None and not has_logs:
                remove(load(options.name) or cluster)
            raise


def down(name: str, tell: Tell = quiet) -> None:
    """End the cluster *name* and remove all that was its own. Raises `NotFound`."""
    cluster = require(name)
    with locked(cluster.directory, tell):
        tell(f"ending the local cluster {name}")
        # Another command may have changed it before we had the lock.
        remove(load(name) or cluster)


def add_nodes(name: str, count: int, tell: Tell = quiet) -> Cluster:
    """Add *count* process nodes to a cluster. Raises `InvalidSpec` and `NotFound`."""
    cluster = require(name)
    if count < 1:
        raise InvalidSpec("N", f"must be at least 1, is {count}")
    return up(Options(name, nodes=cluster.shape.nodes + count, no_platform=True), tell)


def kill_node(name: str, node: str) -> None:
    """Let a process node die with all its pods, as if its power failed. Raises `NotFound`."""
    set_down(require(name).directory / "nodes", node)


def remove(cluster: Cluster) -> None:
    """End every process of *cluster* and remove its directory."""
    with uninterrupted():
        stop(reversed(cluster.components))
        leftovers.end_all(cluster.directory / "nodes")
        shutil.rmtree(cluster.directory, ignore_errors=True)


def _shape(options: Options, before: Cluster | None) -> Shape:
    return shape_of(options, before.shape if before else None)
