"""`muster simulate`."""

from pathlib import Path
from typing import Annotated

import typer

from muster.errors import InvalidSpec
from muster.simulation.entries import seconds_of
from muster.simulation.outcome import outcome_of
from muster.simulation.play import Play, play
from muster.simulation.reading import scenario_of
from muster_cli import options, output, yaml_file
from muster_cli.errors import Failed
from muster_cli.simulation_page import draw
from muster_cli.yaml_file import YamlFile

_FOR_PEOPLE = (options.Format.TABLE, options.Format.WIDE)
_PICTURES = (".svg", ".png")


def simulate(
    file: Annotated[
        str, typer.Argument(help="Scenario in YAML; - is standard input.", show_default=False)
    ],
    check: Annotated[
        bool,
        typer.Option("--check", help="Print each expectation that fails, and exit 1 if one does."),
    ] = False,
    until: Annotated[
        str | None,
        typer.Option("--until", help="End there, as 90s, 5m or 1h30m; else as the file says."),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", help="Write a Gantt chart to this .svg or .png file."),
    ] = None,
    output_format: options.Output = options.Format.TABLE,
) -> None:
    """Play a scenario through the scheduler in simulated time, and print what came of it.

    FILE describes a cluster, queues, jobs, events, and what must be true of the outcome. The same
    core decides as in the operator; nothing is started anywhere.

    Example: muster simulate tests/scenarios/03-reservation-with-backfill.yaml --check
    """
    if plot is not None and plot.suffix not in _PICTURES:
        raise InvalidSpec("--plot", f"must end in {' or '.join(_PICTURES)}, is {plot}")
    end = None if until is None else seconds_of(until, "--until")
    source = yaml_file.read(file)
    try:
        played = play(scenario_of(source.value), until=end)
    except InvalidSpec as error:
        raise source.located(error) from error
    if plot is not None:
        from muster_cli.gantt import write  # noqa: PLC0415 -- takes a second to import

        write(played, plot)
        output.note(f"{plot} written")
    failures = _failures(played, source) if check else ()
    _print(played, output_format, failures if check else None)
    if played.skipped and check:
        output.warn(f"{played.skipped} expectations of later times were not looked at")
    if failures:
        raise Failed(f"{file}: {len(failures)} of what must hold does not")
    if check:
        output.note(f"{file}: all of {_looked_at(played)} expectations hold")
    else:
        for violation in played.violations:
            output.warn(f"a fault of the scheduler, please report it: {violation}")


def _print(played: Play, output_format: options.Format, failures: tuple[str, ...] | None) -> None:
    """Print the outcome; with *failures*, people get those alone, one a line."""
    answer = dict(outcome_of(played))
    if failures is not None:
        answer["failures"] = list(failures)
    if failures is None or output_format not in _FOR_PEOPLE:
        output.emit(
            answer, output_format, lambda console: draw(console, answer, played, output_format)
        )
    elif failures:
        console = output.stdout()
        for failure in failures:
            console.print(failure, markup=False, soft_wrap=True)


def _failures(played: Play, source: YamlFile) -> tuple[str, ...]:
    """What does not hold, each with its line in the file."""
    expectations = (
        str(source.located(InvalidSpec(each.path, each.message))) for each in played.shortfalls
    )
    always = (f"{source.source}: must always hold: {each}" for each in played.violations)
    return (*expectations, *always)


def _looked_at(played: Play) -> int:
    return len(played.scenario.expect) - played.skipped
