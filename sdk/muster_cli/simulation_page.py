"""How the outcome of a simulation looks on a terminal."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.text import Text

from muster.simulation.entries import duration_of
from muster.simulation.play import Play
from muster_cli import output
from muster_cli.options import Format
from muster_cli.output import Column, Json, text

_EVENT_STYLES: Mapping[str, str] = {
    "started": "green",
    "grown": "green",
    "replica-replaced": "green",
    "finished": "bold green",
    "evicted": "red",
    "requeued": "red",
    "replica-lost": "red",
    "failed": "bold red",
    "shrunk": "yellow",
    "preempting": "yellow",
    "suspended": "yellow",
}


def draw(console: Console, answer: Json, played: Play, output_format: Format) -> None:
    """Print jobs and sums; with `wide`, messages and the timeline too."""
    items = [{"name": name, **job} for name, job in answer["jobs"].items()]
    console.print(Text(played.scenario.name, style="bold"), Text(played.scenario.about))
    console.print()
    console.print(output.table(_columns(items), items, output_format))
    console.print()
    console.print(_sums(answer))
    if output_format is Format.WIDE and answer["timeline"]:
        console.print()
        console.print(output.table(_EVENTS, answer["timeline"]))


def _columns(items: Sequence[Json]) -> list[Column]:
    """Columns that would be empty or the same all over are left out."""
    columns = [Column("JOB", text("name"))]
    if len({item["queue"] for item in items}) > 1:
        columns.append(Column("QUEUE", text("queue")))
    columns += [
        Column("STATE", _state),
        Column("SUBMITTED", _time("submitted"), is_number=True),
        Column("STARTED", _started, is_number=True),
        Column("FINISHED", _time("finished"), is_number=True),
        Column("WAITED", _waited, is_number=True),
        Column("EVICTIONS", text("evictions"), is_number=True),
    ]
    if any(item["replicasLost"] for item in items):
        columns.append(Column("REPLICAS LOST", text("replicasLost"), is_number=True))
    columns.append(Column("NODES", _nodes))
    if any(item["reason"] for item in items):
        columns.append(Column("REASON", text("reason")))
        columns.append(Column("MESSAGE", text("message"), is_wide=True))
    return columns


def _sums(answer: Json) -> str:
    evictions = answer["evictions"]
    return (
        f"ended at {duration_of(answer['end'])}; {evictions} eviction"
        f"{'' if evictions == 1 else 's'}; utilization {answer['utilization']:.1%}"
    )


def _state(job: Json) -> Text:
    state = str(job["state"])
    return Text(state, style=output.PHASE_STYLES.get(state, ""))


def _time(key: str) -> Any:
    def cell(item: Json) -> str:
        return "–" if item[key] is None else duration_of(item[key])

    return cell


def _started(job: Json) -> str:
    starts = job["starts"]
    if not starts:
        return "–"
    more = f" +{len(starts) - 1}" if len(starts) > 1 else ""
    return duration_of(starts[0]) + more


def _waited(job: Json) -> str:
    """From the submission to the first start."""
    return duration_of(job["starts"][0] - job["submitted"]) if job["starts"] else "–"


def _nodes(item: Json) -> str:
    """`n1×2 n2`, in rank order."""
    held = [node for node in item["placement"] if node]
    counts = [(node, len(list(group))) for node, group in groupby(held)]
    return " ".join(f"{node}×{n}" if n > 1 else node for node, n in counts) or "–"


def _event(item: Json) -> Text:
    event = str(item["event"])
    by = f" for {item['by']}" if item.get("by") else ""
    return Text(event, style=_EVENT_STYLES.get(event, "")) + Text(by)


_EVENTS = (
    Column("AT", _time("at"), is_number=True),
    Column("JOB", text("job")),
    Column("EVENT", _event),
    Column("REPLICAS", text("replicas"), is_number=True),
    Column("NODES", _nodes),
)
