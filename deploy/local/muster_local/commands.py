"""`muster local`: the commands parse, hand over, and show; errors are the caller's to tell."""

import json
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Final

import typer
import yaml
from rich.console import Console
from rich.table import Table

from muster.errors import NotFound
from muster_local import lifecycle
from muster_local.launch import Failed
from muster_local.progress import progress
from muster_local.shape import Options
from muster_local.state import Cluster, require

app = typer.Typer(
    help="Run a whole cluster on this machine.",
    no_args_is_help=True,
    # Plain help, as all of `muster`: rich's takes as long to import as all the rest.
    rich_markup_mode=None,
    add_completion=False,
)
_FOLLOW_SECONDS: Final = 0.2


class Format(StrEnum):
    """How a result is printed."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"


Name = Annotated[str, typer.Option("--name", help="The cluster; several can run side by side.")]
Output = Annotated[Format, typer.Option("--output", "-o", help="How to print the result.")]


@app.command("up")
def up_command(
    name: Name = "default",
    nodes: Annotated[int | None, typer.Option(help="Nodes that run pods (4).")] = None,
    gpus: Annotated[int | None, typer.Option(help="Simulated GPUs of each node (8).")] = None,
    racks: Annotated[int | None, typer.Option(help="Racks that they stand in (2).")] = None,
    gpu_model: Annotated[str | None, typer.Option(help="What the GPUs are (H100).")] = None,
    kwok_nodes: Annotated[
        int | None, typer.Option(help="More nodes that only pretend to run pods (0).")
    ] = None,
    with_scheduler: Annotated[
        bool, typer.Option("--with-scheduler", help="Start kube-scheduler too.")
    ] = False,
    no_platform: Annotated[
        bool, typer.Option("--no-platform", help="Leave operator, API and recorder out.")
    ] = False,
) -> None:
    """Start a cluster, or complete the one that is there; renews its tokens.

    A cluster that exists keeps its shape where no option says otherwise.
    """
    options = Options(
        name=name,
        nodes=nodes,
        gpus=gpus,
        racks=racks,
        gpu_model=gpu_model,
        kwok_nodes=kwok_nodes,
        with_scheduler=with_scheduler,
        no_platform=no_platform,
    )
    with _telling_failures(), _ended_by_sigterm(), progress() as tell:
        cluster = lifecycle.up(options, tell)
    _console().print(_welcome(cluster), soft_wrap=True)


@app.command("down")
def down_command(name: Name = "default") -> None:
    """End a cluster and remove all of it: processes, ports and files."""
    with progress() as tell:
        lifecycle.down(name, tell)


@app.command("status")
def status_command(name: Name = "default", output: Output = Format.TABLE) -> None:
    """Show the processes and nodes of a cluster; exit 1 unless all of them are ready."""
    # Brings the Kubernetes client, whose import takes longer than `down` or `logs`.
    from muster_local import status  # noqa: PLC0415

    report = status.report(require(name))
    match output:
        case Format.JSON:
            typer.echo(json.dumps(report, indent=2))
        case Format.YAML:
            typer.echo(yaml.safe_dump(report, sort_keys=False), nl=False)
        case _:
            _print_tables(report)
    if not status.is_whole(report):
        raise typer.Exit(1)


@app.command("kubeconfig")
def kubeconfig_command(name: Name = "default") -> None:
    """Print the path of the kubeconfig of a cluster."""
    typer.echo(require(name).kubeconfig)


@app.command("logs")
def logs_command(
    component: Annotated[str, typer.Argument(help="As `status` names it, such as operator.")],
    name: Name = "default",
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what is written from now on.")
    ] = False,
) -> None:
    """Print the log of a component."""
    with _log_of(require(name), component).open("rb") as log:
        while True:
            while chunk := log.read(1 << 16):
                sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
            if not follow:
                return
            time.sleep(_FOLLOW_SECONDS)


@app.command("add-nodes")
def add_nodes_command(
    count: Annotated[int, typer.Argument(metavar="N", help="How many.")], name: Name = "default"
) -> None:
    """Add nodes to a cluster, like those it has."""
    with _telling_failures(), _ended_by_sigterm(), progress() as tell:
        lifecycle.add_nodes(name, count, tell)


@app.command("kill-node")
def kill_node_command(node: str, name: Name = "default") -> None:
    """Let a node die at once with all its pods, as if its power failed."""
    lifecycle.kill_node(name, node)


def _log_of(cluster: Cluster, component: str) -> Path:
    # By the files: a component that did not come up is the one whose log is wanted.
    logs = {file.stem: file for file in (cluster.directory / "logs").glob("*.log")}
    if component not in logs:
        there = ", ".join(sorted(logs)) or "none"
        raise NotFound(f"{cluster.name} has no log of {component}; there are {there}")
    return logs[component]


@contextmanager
def _telling_failures() -> Iterator[None]:
    """Show the end of a component's log before its failure is told."""
    try:
        yield
    except Failed as error:
        for line in error.log_lines:
            typer.echo(line, err=True)
        raise


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM unwind as Ctrl-C does, so that it too takes back what was started."""

    def end(number: int, _: FrameType | None) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _welcome(cluster: Cluster) -> str:
    option = "" if cluster.name == "default" else f" --name {cluster.name}"
    return (
        f"The local cluster {cluster.name} is up. Use it with\n"
        f"  export KUBECONFIG=$(muster local kubeconfig{option})"
    )


def _print_tables(report: dict[str, Any]) -> None:
    components = Table("COMPONENT", "KIND", "PID", "URL", "READY", box=None, pad_edge=False)
    for each in report["components"]:
        components.add_row(
            each["name"], each["kind"], str(each["pid"]), each["url"] or "", _word(each)
        )
    nodes = Table("NODE", "KIND", "GPUS", "BLOCK", "RACK", "READY", box=None, pad_edge=False)
    for each in report["nodes"]:
        domains = each["domains"]
        nodes.add_row(
            each["name"],
            each["kind"],
            str(each["gpus"]),
            domains.get("block", ""),
            domains.get("rack", ""),
            _word(each),
        )
    console = _console()
    console.print(f"{report['name']}  {report['kubeconfig']}", soft_wrap=True)
    console.print(components)
    console.print(nodes)


def _word(row: dict[str, Any]) -> str:
    return "yes" if row["ready"] else "no"


def _console() -> Console:
    return Console(highlight=False)
