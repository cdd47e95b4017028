"""How explanations, dry runs, queues, nodes and plans look to people."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import zip_longest
from typing import Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from muster_cli import text
from muster_cli.options import Format
from muster_cli.output import Column, Json, table
from muster_cli.output import text as plain
from muster_cli.pages import amounts

_CAN_CHANGE: Final = frozenset({"suspend", "queue", "priority"})
"""Fields of a job that may change once it exists."""
_COLOURS: Final = ("cyan", "magenta", "blue", "yellow", "green", "bright_cyan", "bright_magenta")
_HELD, _FREE, _LOST, _BAD = "■", "□", "▫", "×"
LEGEND: Final = f"{_HELD} held  {_FREE} free  {_LOST} free, of no use to who waits  {_BAD} broken"


def _number(value: object) -> str:
    """A number as short as it reads well."""
    if value is None:
        return "–"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _branch(queue: Json) -> Text:
    """The name of a queue, in its place in the tree."""
    depth = int(queue.get("depth") or 0)
    name = Text("   " * (depth - 1) + "└─ " if depth else "")
    name.append(str(queue.get("name")))
    if queue.get("paused"):
        name.append(" (paused)", style="yellow")
    return name


QUEUE_COLUMNS: Final = (
    Column("QUEUE", _branch),
    Column("GUARANTEED", lambda q: amounts(q.get("guaranteed")), is_number=True),
    Column("LIMIT", lambda q: amounts(q.get("limit")), is_number=True),
    Column("USAGE", lambda q: amounts(q.get("usage")), is_number=True),
    Column("SHARE", lambda q: _number(q.get("share")), is_number=True),
    Column("PENDING", plain("pending_gpus"), is_number=True),
    Column("BORROWED", plain("borrowed"), is_number=True),
    Column("WEIGHT", lambda q: _number(q.get("weight")), is_wide=True, is_number=True),
    Column("ORDER", plain("order"), is_wide=True),
    Column("BY MODEL", lambda q: amounts(q.get("usage_by_model") or None), is_wide=True),
    Column("DECAYED", lambda q: _number(q.get("decayed_usage")), is_wide=True, is_number=True),
)


def explanation(console: Console, found: Json) -> None:
    """Why a job waits, and what would start it."""
    console.print(Text(f"{found['namespace']}/{found['job']}: {found['code']}", style="bold"))
    facts = (
        ("Why", found.get("message")),
        ("Position", found.get("queue_position")),
        ("Started" if _is_over(found) else "Starts", _start(found)),
        ("Evicts", ", ".join(found.get("evicts") or ())),
    )
    console.print(_grid(facts))
    if found.get("source") == "status":
        console.print(
            Text("From the job's status: the scheduler could not be asked.", style="yellow")
        )
    changes = found.get("changes") or ()
    if changes:
        console.print(Text("\nWould start it now, each alone:", style="bold"))
    for change in changes:
        console.print(Text(f"  {change['change']}", style="green"))
        if change.get("evicts"):
            console.print(Text(f"    evicts {', '.join(change['evicts'])}", style="yellow"))
        for edit in change.get("edits") or ():
            console.print(Text(f"    {_how(edit)}", style="dim"))
    if found.get("changes_complete") is False and found.get("source") != "status":
        console.print(Text("There was no time to try all changes.", style="yellow"))


def _how(edit: Json) -> str:
    """How to make one change."""
    patch = json.dumps({"spec": edit["spec"]}, separators=(",", ":"))
    if edit["kind"] == "Queue":
        return f"kubectl patch mq {edit['name']} --type merge -p '{patch}'"
    namespace, _, name = edit["name"].partition("/")
    if set(edit["spec"]) <= _CAN_CHANGE:
        return f"kubectl patch tj {name} -n {namespace} --type merge -p '{patch}'"
    return f"submit it again with {patch[8:-1]}"


def _is_over(found: Json) -> bool:
    """Whether its start is behind us."""
    now = datetime.now(UTC).isoformat()
    return (text.between(found.get("predicted_start"), now) or 0.0) > 0


def _start(found: Json) -> str:
    at = found.get("predicted_start")
    if at is None:
        because = found.get("unknown_because")
        return f"unknown: {because}" if because else "unknown"
    seconds = text.between(datetime.now(UTC).isoformat(), str(at)) or 0.0
    when = f"{at} (in {text.seconds(seconds)})" if seconds > 0 else str(at)
    return f"{when}, when {found['waits_for']} ends" if found.get("waits_for") else when


def dry_run(console: Console, found: Json) -> None:
    """What a job would do."""
    verdict, code = found["verdict"], found.get("code")
    colour = {"starts": "green", "waits": "yellow"}.get(verdict, "red")
    heading = f"{found['namespace']}/{found['job']}: {verdict}" + (f", {code}" if code else "")
    console.print(Text(heading, style=f"bold {colour}"))
    facts = (
        ("Why" if code else "Where", found.get("message")),
        ("Position", found.get("queue_position")),
        ("Starts", _start(found)),
        ("Nodes", ", ".join(_counted(found.get("placement") or ()))),
    )
    console.print(_grid(facts))
    victims, delayed = found.get("victims") or (), found.get("delayed") or ()
    if victims:
        columns = (
            Column("MAKES ROOM", plain("job")),
            Column("REPLICAS", plain("replicas", missing="all"), is_number=True),
            Column("RIGHT", plain("right")),
            Column("LOST GPU-SECONDS", plain("lost_gpu_seconds"), is_number=True),
            Column("COST", plain("cost"), is_number=True),
        )
        console.print()
        console.print(table(columns, victims))
    if delayed:
        moves = (
            Column("DELAYED", plain("job")),
            Column("FROM", plain("from")),
            Column("TO", plain("to", missing="unknown")),
        )
        console.print()
        console.print(table(moves, delayed))


def _counted(nodes: Sequence[str]) -> Iterator[str]:
    """Nodes in rank order, equal neighbours once: `n1 x8`."""
    start = 0
    for place in range(1, len(nodes) + 1):
        if place == len(nodes) or nodes[place] != nodes[start]:
            times = place - start
            yield nodes[start] + (f" x{times}" if times > 1 else "")
            start = place


def nodes(console: Console, found: Json, output: Format = Format.TABLE) -> None:
    """The nodes under their domains, a mark for each GPU."""
    items, levels = found["items"], found.get("levels") or ()
    styles = _styles(items)
    drawn = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold")
    headings = ("NODE", "GPUS", "FREE", "HELD BY")
    wide = ("MODEL", "CAPACITY", "STATE") if output is Format.WIDE else ()
    for heading in (*headings, *wide):
        drawn.add_column(heading, no_wrap=True, justify="right" if heading == "FREE" else "left")
    path: list[str | None] = []
    for item in items:
        here = [item["domains"].get(level) for level in levels]
        for depth, (level, domain) in enumerate(zip(levels, here, strict=True)):
            if path[: depth + 1] != here[: depth + 1]:
                inside = [
                    each
                    for each in items
                    if [each["domains"].get(name) for name in levels[: depth + 1]]
                    == here[: depth + 1]
                ]
                drawn.add_row(*_domain_row(depth, level, domain, inside), style="bold")
                path = here[: depth + 1]
        drawn.add_row(*_node_row(item, len(levels), styles, is_wide=bool(wide)))
    console.print(drawn)
    lost = found.get("fragmented_gpus") or 0
    summary = f"\n{found.get('free_gpus')} of {found.get('gpus')} GPUs are free"
    summary += f", {lost} of them of no use to any job that waits" if lost else ""
    console.print(Text(summary))
    console.print(Text(LEGEND, style="dim"))


def _domain_row(
    depth: int, level: str, domain: str | None, inside: Sequence[Json]
) -> tuple[str, str, str]:
    name = f"{level} {domain}" if domain is not None else f"no {level}"
    gpus, free = (sum(each[key] for each in inside) for key in ("gpus", "free"))
    return "  " * depth + name, str(gpus), str(free)


def _node_row(
    item: Json, depth: int, styles: Mapping[str, str], *, is_wide: bool
) -> list[str | Text]:
    picture, names = Text(), Text()
    for job, gpus in item["held_by"].items():
        picture.append(_HELD * gpus, style=styles[job])
        names.append(", " if names else "").append(f"{job} {gpus}", style=styles[job])
    lost = item.get("fragmented") or 0
    picture.append(_FREE * (item["free"] - lost)).append(_LOST * lost, style="red")
    picture.append(_BAD * (item.get("bad_gpus") or 0), style="bold red")
    state = item.get("state") or "up"
    name = Text("  " * depth + item["name"])
    if state != "up":
        name.append(f" ({state})", style="red")
    row: list[str | Text] = [name, picture, str(item["free"]), names]
    kinds = ("gpu_model", "capacity_type", "state")
    return row + [plain(key)(item) for key in kinds] if is_wide else row


def _styles(items: Iterable[Json]) -> Mapping[str, str]:
    """A colour for each job."""
    jobs = dict.fromkeys(job for item in items for job in item["held_by"])
    return {job: _COLOURS[number % len(_COLOURS)] for number, job in enumerate(jobs)}


def plan(console: Console, answer: Json) -> None:
    """A plan, and whether it is the one that was recorded."""
    columns = (
        Column("DECISION", plain("is")),
        Column("JOB", plain("gang")),
        Column("WHAT", lambda decision: ", ".join(_details(decision))),
    )
    console.print(table(columns, answer["plan"].get("decisions") or ()))
    verdict = {
        True: "The plan is the recorded one, byte for byte.",
        False: "The plan differs from the recorded one.",
        None: "A snapshot has no recorded plan to compare with.",
    }[answer["same"]]
    console.print(Text(f"\n{verdict}", style="red" if answer["same"] is False else "green"))


def _details(decision: Json) -> Iterator[str]:
    """What a decision says beside its kind and job."""
    for key, value in decision.items():
        if key in {"is", "gang"} or value in (None, "", []):
            continue
        if key in {"why", "message", "reason"}:
            yield str(value)
        elif key == "nodes":
            yield " ".join(_counted(value))
        elif key == "victims":
            yield "victims " + " ".join(str(victim["gang"]) for victim in value)
        elif key == "position":
            yield f"position {value}"
        else:
            yield f"{key} {json.dumps(value)}"


def first_difference(answer: Json) -> str:
    """Where two plans part, in one line."""
    now, before = (answer[key].get("decisions") or [] for key in ("plan", "recorded"))
    for number, (one, other) in enumerate(zip_longest(now, before), start=1):
        if one != other:
            said = ["nothing" if each is None else _one_line(each) for each in (other, one)]
            return f"decision {number} was {said[0]}, and is {said[1]} now"
    return "the plan wakes at another time than it did"


def _one_line(decision: Mapping[str, Any]) -> str:
    return f"{decision.get('is')} {decision.get('gang')} ({', '.join(_details(decision))})"


def _grid(facts: Iterable[tuple[str, object]]) -> Table:
    rows = Table.grid(padding=(0, 3, 0, 0))
    for name, value in facts:
        if value not in (None, ""):
            rows.add_row(Text(name, style="dim"), Text(str(value)))
    return rows
