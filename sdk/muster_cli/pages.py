"""How jobs, epochs and costs look to people: columns, and the page of one job."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from muster.cost import OF_AN_EPOCH
from muster.money import usd
from muster_cli import text
from muster_cli.output import Column, Json, phase, table
from muster_cli.output import text as plain

SIMULATED: Final = (
    "GPUs and prices are simulated on this cluster: the figures show the sums, not a bill."
)


def amounts(value: object) -> str:
    """GPUs in all, or per model."""
    if isinstance(value, Mapping):
        return ", ".join(f"{count} {model}" for model, count in sorted(value.items()))
    return "–" if value is None else str(value)


def line_name(line: Json, *, by_attempt: bool = False) -> str:
    """What a line of a bill is for: `epoch 3`, `epoch 3, interrupted`, `attempt 1, startup`.

    *by_attempt*: the lines of epochs are for attempts too.
    """
    is_of_an_epoch = line["class"] in OF_AN_EPOCH and not by_attempt
    named = f"{'epoch' if is_of_an_epoch else 'attempt'} {line['key']}"
    return named if is_of_an_epoch and line["class"] == "epoch" else f"{named}, {line['class']}"


def line_columns(*, by_attempt: bool = False) -> tuple[Column, ...]:
    """The columns of a bill."""
    return (
        Column("FOR", lambda line: line_name(line, by_attempt=by_attempt)),
        Column("GPU-SECONDS", _gpu_seconds, is_number=True),
        Column("COST", lambda line: usd(line.get("micro_usd")), is_number=True),
    )


def metrics(epoch: Json) -> str:
    """The metrics of an epoch in one cell."""
    said = []
    for key, value in (epoch.get("metrics") or {}).items():
        said.append(f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}")
    return ", ".join(said)


def _gpu_seconds(item: Mapping[str, Any]) -> str:
    value = item.get("gpu_seconds")
    return "–" if value is None else f"{value:,.1f}"


def job_columns(now: datetime, *, with_namespace: bool = False) -> tuple[Column, ...]:
    """The columns of a list of jobs."""
    own = (Column("NAMESPACE", plain("namespace")),) if with_namespace else ()
    return (
        *own,
        Column("NAME", plain("name")),
        Column("QUEUE", plain("queue")),
        Column("PHASE", phase),
        Column("REPLICAS", plain("replicas"), is_number=True),
        Column("GPUS", plain("gpus"), is_number=True),
        Column("EPOCH", lambda job: plain("epoch")(job.get("progress") or {}), is_number=True),
        Column("COST", lambda job: usd(job.get("cost_micro_usd")), is_number=True),
        Column("AGE", lambda job: text.age(job.get("submitted"), now), is_number=True),
        Column("REASON", plain("reason")),
        Column("ATTEMPT", plain("attempt"), is_wide=True, is_number=True),
        Column("ETA", lambda job: plain("eta")(job.get("progress") or {}), is_wide=True),
        Column("MESSAGE", plain("message"), is_wide=True),
    )


EPOCH_COLUMNS: Final = (
    Column("EPOCH", plain("epoch"), is_number=True),
    Column("ATTEMPT", lambda e: ", ".join(map(str, e.get("attempts") or ())), is_number=True),
    Column("SECONDS", lambda e: text.seconds(e.get("seconds")), is_number=True),
    Column("GPU-SECONDS", _gpu_seconds, is_number=True),
    Column("COST", lambda e: usd(e.get("micro_usd")), is_number=True),
    Column("METRICS", metrics),
)


def cost_page(console: Console, cost: Json, *, by_attempt: bool = False) -> None:
    """What a job cost, line by line, and in all."""
    drawn = table(line_columns(by_attempt=by_attempt), cost.get("lines") or ())
    drawn.add_section()
    drawn.add_row("total", _gpu_seconds(cost), usd(cost.get("total_micro_usd")), style="bold")
    console.print(drawn)
    remarks(console, cost)


def remarks(console: Console, cost: Json) -> None:
    """What one should know about the figures of *cost*."""
    if not cost.get("priced", True):
        console.print(
            Text(
                "Some GPUs have no price: the total is too low. `muster-prices` lists them.",
                style="yellow",
            )
        )
    if cost.get("simulated"):
        console.print(Text(SIMULATED, style="dim"))


def job_page(
    console: Console,
    job: Json,
    *,
    epochs: Sequence[Json],
    cost: Json,
    events: Iterable[Json] | None,
) -> None:
    """Everything about one job, the most asked first."""
    now = datetime.now(UTC)
    console.print(_summary(job, now))
    _section(console, "Placement", _placement(job))
    _section(console, "Attempts", _attempts(job, now))
    _section(console, "Epochs", table(EPOCH_COLUMNS, epochs) if epochs else None)
    _section(console, "Conditions", _conditions(job, now))
    if events is not None:
        _section(console, "Events", _events(events, now))
    remarks(console, cost)


def _summary(job: Json, now: datetime) -> Table:
    rows = Table.grid(padding=(0, 3, 0, 0))
    restarts = job.get("restarts") or {}
    checkpoint = job.get("checkpoint") or {}
    progress = job.get("progress") or {}
    facts: tuple[tuple[str, str | Text | None], ...] = (
        ("Name", f"{job.get('namespace')}/{job.get('name')}"),
        ("Phase", phase(job)),
        ("Reason", ": ".join(str(job[k]) for k in ("reason", "message") if job.get(k)) or None),
        ("Queue", plain("queue")(job)),
        ("User", job.get("user")),
        ("Gang", text.gang(job)),
        ("Submitted", _when(job.get("submitted"), now)),
        ("Started", _when(job.get("started"), now)),
        ("Finished", _when(job.get("finished"), now)),
        ("Progress", _progress(progress)),
        ("Checkpoint", _checkpoint(checkpoint)),
        (
            "Restarts",
            ", ".join(f"{count} {cause}" for cause, count in restarts.items() if count) or None,
        ),
        ("Cost", usd(job.get("cost_micro_usd"))),
    )
    for name, value in facts:
        if value is not None:
            rows.add_row(Text(name, style="dim"), value)
    return rows


def _progress(progress: Json) -> str | None:
    parts = [
        f"{key} {progress[key]}" for key in ("epoch", "step") if progress.get(key) is not None
    ]
    if progress.get("eta"):
        parts.append(f"done about {progress['eta']}")
    return ", ".join(parts) or None


def _checkpoint(checkpoint: Json) -> str | None:
    if not checkpoint.get("latest") and not checkpoint.get("verified"):
        return None
    verified, latest = (checkpoint.get(key) or "–" for key in ("verified", "latest"))
    return f"verified {verified}, latest {latest}, step {checkpoint.get('step')}"


def _placement(job: Json) -> RenderableType | None:
    placement = job.get("placement") or {}
    nodes = placement.get("nodes") or ()
    if not nodes:
        return None
    drawn = table(
        (Column("REPLICA", plain("replica"), is_number=True), Column("NODE", plain("node"))),
        ({"replica": index, "node": node} for index, node in enumerate(nodes)),
    )
    why = Text(str(placement.get("why") or ""), style="dim")
    return Group(why, drawn) if why else drawn


def _attempts(job: Json, now: datetime) -> Table | None:
    attempts = job.get("attempts") or ()
    columns = (
        Column("ATTEMPT", plain("attempt"), is_number=True),
        Column("DECIDED", lambda a: text.age(a.get("decided_at"), now) + " ago"),
        Column("START-UP", lambda a: _span(a, "decided_at", "running_at"), is_number=True),
        Column("RAN", lambda a: _span(a, "running_at", "ended_at"), is_number=True),
        Column("OUTCOME", plain("outcome")),
        Column("CAUSE", plain("cause")),
        Column("MESSAGE", plain("message", missing="")),
    )
    return table(columns, attempts) if attempts else None


def _conditions(job: Json, now: datetime) -> Table | None:
    conditions = job.get("conditions") or ()
    columns = (
        Column("TYPE", plain("type")),
        Column("STATUS", plain("status")),
        Column(
            "SINCE",
            lambda c: text.age(c.get("last_transition_time"), now),
            is_number=True,
        ),
        Column("REASON", plain("reason")),
        Column("MESSAGE", plain("message", missing="")),
    )
    return table(columns, conditions) if conditions else None


def _events(events: Iterable[Json], now: datetime) -> Table | None:
    rows = sorted(events, key=lambda e: (_event_time(e), e["metadata"]["name"]))
    columns = (
        Column("AGE", lambda e: text.age(_event_time(e), now), is_number=True),
        Column("TYPE", plain("type")),
        Column("REASON", plain("reason")),
        Column("MESSAGE", lambda e: str(e.get("message") or e.get("note") or "")),
    )
    return table(columns, rows) if rows else None


def _event_time(event: Mapping[str, Any]) -> str:
    last = (event.get("series") or {}).get("lastObservedTime") or event.get("lastTimestamp")
    return str(last or event.get("eventTime") or event["metadata"]["creationTimestamp"])


def _section(console: Console, heading: str, body: RenderableType | None) -> None:
    if body is not None:
        console.print()
        console.print(Text(heading, style="bold underline"))
        console.print(body)


def _span(attempt: Json, start: str, end: str) -> str:
    return text.seconds(text.between(attempt.get(start), attempt.get(end)))


def _when(moment: object, now: datetime) -> str | None:
    if not moment:
        return None
    return f"{moment} ({text.age(str(moment), now)} ago)"
