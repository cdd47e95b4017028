"""What commands print: tables for people, JSON and YAML for programs.

Data goes to standard output; progress, warnings and errors go to standard error, so that
`-o json` can always be piped.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from muster_cli.options import Format

Json = Mapping[str, Any]

PHASE_STYLES: Mapping[str, str] = {
    "Pending": "yellow",
    "Starting": "cyan",
    "Running": "green",
    "Restarting": "magenta",
    "Preempting": "magenta",
    "Suspended": "yellow",
    "Succeeded": "bold green",
    "Failed": "bold red",
    "Cancelled": "dim",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its heading and how a cell comes from an item."""

    heading: str
    cell: Callable[[Json], str | Text]
    is_wide: bool = False
    """Only shown by `-o wide`."""
    is_number: bool = False


def stdout() -> Console:
    """Where data goes. Not a terminal: no colours, and rows as long as they are."""
    if sys.stdout.isatty():
        return Console(highlight=False)
    # A pipe has no width: nothing is cut or wrapped.
    return Console(highlight=False, width=10_000, no_color=True)


def stderr() -> Console:
    """Where progress, warnings and errors go."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def warn(message: str) -> None:
    """Say on standard error what the reader should know about what was printed."""
    stderr().print(Text(f"warning: {message}", style="yellow"))


def note(message: str) -> None:
    """Say on standard error what was done."""
    stderr().print(Text(message))


def emit(answer: Json, output: Format, page: Callable[[Console], None]) -> None:
    """Print *answer* as *output* says; *page* draws it for people."""
    if output is Format.JSON:
        sys.stdout.write(orjson.dumps(answer, option=orjson.OPT_INDENT_2).decode() + "\n")
    elif output is Format.YAML:
        sys.stdout.write(as_yaml(answer))
    else:
        page(stdout())


def as_yaml(answer: Any) -> str:
    """*answer* as YAML, keys in their own order."""
    import yaml  # noqa: PLC0415 -- not needed by most commands, and slow to import

    return str(yaml.safe_dump(answer, sort_keys=False, allow_unicode=True))


def table(
    columns: Sequence[Column], items: Iterable[Json], output: Format = Format.TABLE
) -> Table:
    """A plain table in the manner of kubectl."""
    shown = [c for c in columns if output is Format.WIDE or not c.is_wide]
    drawn = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    for column in shown:
        drawn.add_column(
            column.heading, justify="right" if column.is_number else "left", no_wrap=True
        )
    for item in items:
        drawn.add_row(*(column.cell(item) for column in shown))
    return drawn


def phase(item: Json) -> Text:
    """The phase of a job in its colour."""
    name = str(item.get("phase") or "Pending")
    return Text(name, style=PHASE_STYLES.get(name, ""))


def text(key: str, *, missing: str = "–") -> Callable[[Json], str]:
    """A cell that shows the value at *key* as it is."""

    def cell(item: Json) -> str:
        value = item.get(key)
        return missing if value is None or value == "" else str(value)

    return cell
