"""The `muster bench` commands."""

import json
import sys
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from muster.parse.quantity import seconds_of
from muster_local.bench.shape import Shape
from muster_local.commands import Format, Output
from muster_local.progress import progress

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    help="Measure the platform on a cluster of its own, in ratios within one run.",
)


@app.callback()
def _group() -> None:
    """Measure the platform on a cluster of its own, in ratios within one run."""


@app.command()
def cluster(
    nodes: Annotated[int, typer.Option(help="Fake nodes of 8 GPUs each.")] = 500,
    gangs: Annotated[int, typer.Option(help="Jobs, all submitted at once.")] = 500,
    gang_size: Annotated[int, typer.Option(help="Replicas of each job.")] = 8,
    gpus_per_pod: Annotated[int, typer.Option(help="GPUs of each replica.")] = 1,
    required: Annotated[
        str | None, typer.Option(help="Topology level that each gang must lie within.")
    ] = None,
    duration: Annotated[
        str, typer.Option(help="How long each pod runs, such as 5s; 0s: to the end.")
    ] = "0s",
    output: Output = Format.TABLE,
) -> None:
    """Gangs through the operator on fake nodes, beside bare creation of the same pods.

    Example: muster bench cluster --nodes 500 --gangs 500 --gang-size 8 -o json
    """
    from muster_local.bench.cluster import run  # noqa: PLC0415 -- brings the Kubernetes client

    seconds = seconds_of(duration, "--duration")
    shape = Shape(nodes, gangs, gang_size, gpus_per_pod, required, seconds)
    with progress() as tell:
        figures = run(shape, tell)
    if output is Format.JSON:
        sys.stdout.write(json.dumps(asdict(figures), indent=2) + "\n")
        return
    table = Table("figure", "value", box=None)
    for name, value in asdict(figures).items():
        table.add_row(name, str(value))
    Console(highlight=False).print(table)
