"""The `muster bench` commands."""

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer
import yaml
from rich.console import Console
from rich.table import Table

from muster.errors import InvalidSpec
from muster.parse.quantity import seconds_of
from muster.scheduling.snapshot import Order
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


_WEEK: Final = 7 * 86_400.0


class Limits(StrEnum):
    """What the scheduler is told of how long jobs run."""

    DECLARED = "declared"
    NONE = "none"


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
    _print(asdict(figures), output)


@app.command()
def schedule(
    shape: Annotated[
        str | None, typer.Option(help="Only this shape; all of them if not given.")
    ] = None,
    output: Output = Format.TABLE,
) -> None:
    """How long the scheduler takes to decide, in memory and in one thread, and how that grows.

    Example: muster bench schedule --shape preferred-512 -o json
    """
    from muster_local.bench.scheduling.run import run  # noqa: PLC0415 -- only for this
    from muster_local.bench.scheduling.shapes import SHAPES  # noqa: PLC0415

    if shape is not None and shape not in SHAPES:
        raise InvalidSpec("--shape", f"there is no {shape}; there are {', '.join(SHAPES)}")
    with progress() as tell:
        figures = run(SHAPES if shape is None else [shape], tell)
    _print(figures, output)


@app.command()
def trace(
    file: Annotated[
        Path,
        typer.Argument(
            help="Trace as csv or csv.gz: job_id, submit_s, duration_s, num_gpus, tenant."
        ),
    ],
    *,
    nodes: Annotated[int, typer.Option(help="Nodes of the cluster.")] = 64,
    gpus: Annotated[int, typer.Option(help="GPUs of each node.")] = 8,
    order: Annotated[Order, typer.Option(help="Who goes first in a queue.")] = Order.FIFO,
    restart_cost: Annotated[
        str, typer.Option(help="What each restart of an evicted job takes it.")
    ] = "30s",
    tenants: Annotated[
        Path | None,
        typer.Option(
            help="Nodes of each tenant (csv): each gets a queue with a guarantee in proportion, "
            "may borrow, and is compared with itself alone on that quota."
        ),
    ] = None,
    limits: Annotated[
        Limits | None,
        typer.Option(
            help="Whether jobs declare how long they run. Not given: none with attained-service, "
            "which is for jobs of which nobody knows, else declared."
        ),
    ] = None,
    cut: Annotated[
        str | None,
        typer.Option(
            help="Cut longer durations at this, such as 7d; 0s: at nothing. Not given: 7d with "
            "--tenants, as in the published figures, else nothing."
        ),
    ] = None,
    output: Output = Format.TABLE,
) -> None:
    """Replay what really ran on somebody's cluster through the scheduler, in simulated time.

    Example: muster bench trace muri-3.csv.gz --nodes 8 --order shortest-remaining -o json
    """
    from muster_local.bench.traces.replay import Setting, run  # noqa: PLC0415 -- only for this

    if limits is None:
        limits = Limits.NONE if order is Order.ATTAINED_SERVICE else Limits.DECLARED
    most = (_WEEK if tenants else 0.0) if cut is None else float(seconds_of(cut, "--cut"))
    setting = Setting(
        nodes,
        gpus,
        order,
        restart_cost=float(seconds_of(restart_cost, "--restart-cost")),
        has_limits=limits is Limits.DECLARED,
        cut=most or None,
    )
    with progress() as tell:
        figures = run(file, tenants, setting, tell)
    _print(asdict(figures), output)


def _print(figures: Mapping[str, Any], output: Format) -> None:
    """Figures as JSON, or as a table; a list of rows becomes a table of its own below it."""
    if output is Format.JSON:
        sys.stdout.write(json.dumps(figures, indent=2) + "\n")
        return
    if output is Format.YAML:
        # By way of JSON, which has no tuples.
        plain = json.loads(json.dumps(figures))
        sys.stdout.write(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True))
        return
    console = Console(highlight=False)
    lists = {name: rows for name, rows in figures.items() if isinstance(rows, list | tuple)}
    single = {name: value for name, value in figures.items() if name not in lists}
    if single:
        table = Table("figure", "value", box=None)
        for name, value in single.items():
            table.add_row(name, str(value))
        console.print(table)
    for rows in lists.values():
        columns = list(dict.fromkeys(name for row in rows for name in row))
        table = Table(*columns, box=None)
        for row in rows:
            table.add_row(*(str(row.get(name, "")) for name in columns))
        console.print(table)
