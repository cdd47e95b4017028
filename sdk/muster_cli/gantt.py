"""A Gantt chart of a simulation, as SVG or PNG.

One row a job, coloured by its queue: filled while it runs, as high as its running replicas; pale
while it waits. Evictions and lost replicas are marked, changes of nodes and queues are lines.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MultipleLocator

from muster.errors import InvalidSpec
from muster.simulation.entries import duration_of
from muster.simulation.play import Play
from muster.simulation.scenario import JobEvent, NodeEvent, QueueEvent
from muster.simulation.timeline import Event, Kind

_COLOURS: Final = (
    "#3a6ea5",
    "#e08e36",
    "#4a9c6d",
    "#a8577e",
    "#7d6bb0",
    "#3f9fa8",
    "#b59a3b",
    "#8a6a52",
)
"""Of the queues, in their order; told apart by those who see fewer colours, too."""
_INK: Final = "#2f3437"
_PALE_INK: Final = "#8b9297"
_GRID: Final = "#e6e9eb"
_ALARM: Final = "#c8372d"
_BAR: Final = 0.66
_STEPS: Final = (
    1,
    2,
    5,
    10,
    15,
    30,
    60,
    120,
    300,
    600,
    900,
    1800,
    3600,
    7200,
    10800,
    21600,
    43200,
)
_DAY: Final = 86_400
_MOST_ROWS: Final = 400
_STYLE: Final[Any] = {
    "font.family": "sans-serif",
    "font.size": 9,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "xtick.color": _PALE_INK,
    "ytick.color": _INK,
    "svg.fonttype": "none",
    "svg.hashsalt": "muster",
}


@dataclass(frozen=True, slots=True)
class Span:
    """A job between two events."""

    start: float
    end: float
    replicas: int
    """That run; 0 while it waits."""


def write(play: Play, file: Path) -> None:
    """Write the chart to *file*, in the format that its name ends in."""
    with rc_context(_STYLE):
        figure = chart(play)
        # Without a date, the same outcome gives the same file.
        metadata = {"Date": None} if file.suffix == ".svg" else {"Software": None}
        try:
            figure.savefig(file, dpi=160, metadata=metadata, facecolor="white")
        except OSError as error:
            raise InvalidSpec(str(file), f"cannot be written: {error.strerror}") from error


def chart(play: Play) -> Figure:
    """The picture of one outcome."""
    jobs = play.scenario.jobs[:_MOST_ROWS]
    rows = max(1, len(jobs))
    figure = Figure(figsize=(11, 1.9 + 0.34 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    end = max(play.end, *(event.at for event in play.timeline), 1.0) if play.timeline else 1.0
    colours = _colours(play)
    row_of = {job.gang.key: row for row, job in enumerate(jobs)}
    events = _by_job(play.timeline)
    for job in jobs:
        key = job.gang.key
        colour = colours[job.gang.queue]
        for span in spans(events.get(key, ()), end):
            _draw(axes, row_of[key], span, job.gang.replicas, colour)
        _mark(axes, row_of[key], events.get(key, ()))
    _draw_changes(axes, play, end)
    _furnish(axes, [job.gang.key for job in jobs], end)
    _title(axes, play, len(jobs))
    _legend(figure, play, colours)
    return figure


def spans(events: Iterable[Event], end: float) -> list[Span]:
    """What a job did from its submission to its own end, or that of the simulation."""
    found: list[Span] = []
    since, replicas = 0.0, -1
    for event in events:
        if replicas >= 0 and event.at > since:
            found.append(Span(since, event.at, replicas))
        since, replicas = event.at, event.replicas
        if event.kind in (Kind.FINISHED, Kind.FAILED):
            replicas = -1
    if replicas >= 0 and end > since:
        found.append(Span(since, end, replicas))
    return _joined(found)


def _joined(found: Sequence[Span]) -> list[Span]:
    """Spans that look the same are one."""
    joined: list[Span] = []
    for span in found:
        if joined and joined[-1].replicas == span.replicas and joined[-1].end == span.start:
            joined[-1] = Span(joined[-1].start, span.end, span.replicas)
        else:
            joined.append(span)
    return joined


def _by_job(timeline: Iterable[Event]) -> Mapping[str, Sequence[Event]]:
    found: dict[str, list[Event]] = {}
    for event in timeline:
        found.setdefault(event.job, []).append(event)
    return found


def _colours(play: Play) -> Mapping[str, str]:
    queues = dict.fromkeys(job.gang.queue for job in play.scenario.jobs)
    return {queue: _COLOURS[n % len(_COLOURS)] for n, queue in enumerate(queues)}


def _draw(axes: Axes, row: int, span: Span, replicas: int, colour: str) -> None:
    width = span.end - span.start
    if not span.replicas:
        axes.barh(row, width, left=span.start, height=0.16, color=colour, alpha=0.28, lw=0)
        return
    # The whole gang as a shadow, so that a job that runs with less is seen to.
    axes.barh(row, width, left=span.start, height=_BAR, color=colour, alpha=0.18, lw=0)
    height = _BAR * span.replicas / replicas
    bottom = row + _BAR / 2 - height
    axes.barh(
        bottom,
        width,
        left=span.start,
        height=height,
        align="edge",
        color=colour,
        edgecolor="white",
        linewidth=0.6,
    )


def _mark(axes: Axes, row: int, events: Iterable[Event]) -> None:
    for event in events:
        if event.kind in (Kind.EVICTED, Kind.REQUEUED):
            axes.plot(event.at, row, "X", color=_ALARM, ms=8, mec="white", mew=0.9, zorder=5)
        elif event.kind is Kind.REPLICA_LOST:
            axes.plot(event.at, row, "o", color=_ALARM, ms=5, mec="white", mew=0.8, zorder=5)
        elif event.kind is Kind.PREEMPTING:
            axes.plot(event.at, row, "v", color=_INK, ms=5, mec="white", mew=0.8, zorder=5)


def _draw_changes(axes: Axes, play: Play, end: float) -> None:
    labels: dict[float, list[str]] = {}
    for event in play.scenario.events:
        if event.at > end:
            continue
        match event:
            case NodeEvent():
                words, colour = f"{event.node} {event.becomes}", _ALARM
            case QueueEvent():
                words, colour = f"queue {event.queue} changes", _INK
            case JobEvent():
                deed = "suspended" if event.is_suspended else "resumed"
                words, colour = f"{event.job} {deed}", _INK
        axes.axvline(event.at, color=colour, lw=0.9, ls=(0, (4, 3)), alpha=0.7, zorder=0)
        labels.setdefault(event.at, []).append(words)
    for at, lines in labels.items():
        axes.annotate(
            "\n".join(lines),
            (at, 1),
            xycoords=("data", "axes fraction"),
            xytext=(0, 4),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=7.5,
            color=_PALE_INK,
        )


def _furnish(axes: Axes, names: Sequence[str], end: float) -> None:
    axes.set_xlim(0, end * 1.005)
    axes.set_ylim(max(1, len(names)) - 0.4, -0.6)
    axes.set_yticks(range(len(names)), labels=names)
    axes.tick_params(axis="both", length=0)
    axes.xaxis.set_major_locator(MultipleLocator(_step(end)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda at, _: duration_of(round(at, 3))))
    axes.grid(axis="x", color=_GRID, lw=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(_GRID)


def _step(end: float) -> float:
    """A distance between ticks that people count in, about eight of them."""
    wanted = end / 8
    days = -(-wanted // _DAY) * _DAY
    return next((step for step in _STEPS if step >= wanted), days)


def _title(axes: Axes, play: Play, shown: int) -> None:
    evictions = sum(job.evictions for job in play.simulation.jobs.values())
    total = len(play.scenario.jobs)
    parts = [
        f"the first {shown} of {total} jobs" if shown < total else "",
        f"{evictions} eviction{'' if evictions == 1 else 's'}",
        f"utilization {play.utilization:.0%}",
    ]
    has_labels = bool(play.scenario.events)
    axes.set_title(
        play.scenario.name,
        loc="left",
        fontsize=13,
        fontweight="bold",
        pad=34 if has_labels else 22,
    )
    axes.annotate(
        "  ·  ".join(part for part in parts if part),
        (0, 1),
        xycoords="axes fraction",
        xytext=(0, 20 if has_labels else 7),
        textcoords="offset points",
        fontsize=9,
        color=_PALE_INK,
    )


def _legend(figure: Figure, play: Play, colours: Mapping[str, str]) -> None:
    handles: list[Patch | Line2D] = []
    if len(colours) > 1:
        handles += [Patch(color=colour, label=queue) for queue, colour in colours.items()]
    neutral = _PALE_INK if len(colours) > 1 else next(iter(colours.values()), _PALE_INK)
    handles.append(Line2D([], [], color=neutral, lw=7, solid_capstyle="butt", label="running"))
    handles.append(
        Line2D([], [], color=neutral, lw=2.2, alpha=0.4, solid_capstyle="butt", label="waiting")
    )
    kinds = {event.kind for event in play.timeline}
    for kind, marker, colour, label in (
        (Kind.EVICTED, "X", _ALARM, "evicted"),
        (Kind.REQUEUED, "X", _ALARM, "requeued"),
        (Kind.REPLICA_LOST, "o", _ALARM, "replica lost"),
        (Kind.PREEMPTING, "v", _INK, "asked to leave"),
    ):
        if kind in kinds:
            handles.append(
                Line2D([], [], marker=marker, color=colour, ls="", mec="white", ms=7, label=label)
            )
    figure.legend(
        handles=handles,
        loc="outside lower left",
        ncols=8,
        frameon=False,
        fontsize=8.5,
        handlelength=1.4,
        columnspacing=1.6,
    )
