"""A Gantt chart of a simulation, as SVG or PNG.

One row a job, coloured by its queue: filled while it runs, as high as its running replicas; pale
while it waits. Evictions and lost replicas are marked, changes of nodes and queues are lines.
Below that, the GPUs that each queue holds, and how many there are.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.markers import CARETRIGHTBASE
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator, MultipleLocator

from muster.errors import InvalidSpec
from muster.simulation.entries import duration_of
from muster.simulation.play import Play
from muster.simulation.scenario import JobEvent, NodeEvent, QueueEvent, ScenarioEvent
from muster.simulation.timeline import Event, Kind
from muster_cli.gantt_spans import Span, by_job, held_gpus, spans, up_gpus

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
_LETTER: Final = 0.0075
"""About the width of a letter of a label, as part of the width of the chart."""
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
    height = 0.34 * max(2, len(jobs))
    figure = Figure(
        figsize=(11, height + 3.0), layout=ConstrainedLayoutEngine(w_pad=0.14, h_pad=0.1, hspace=0)
    )
    FigureCanvasAgg(figure)
    axes, below = figure.subplots(2, 1, sharex=True, height_ratios=(height, 0.9))
    end = max([play.end, *(event.at for event in play.timeline)]) or 1.0
    colours = _colours(play)
    events = by_job(play.timeline)
    for row, job in enumerate(jobs):
        key, colour = job.gang.key, colours[job.gang.queue]
        for span in spans(events.get(key, ()), end):
            _draw(axes, row, span, job.gang.replicas, colour)
            if span.end == end and span.replicas:
                # It goes on: the end of the simulation is not its own.
                axes.plot(end, row, marker=CARETRIGHTBASE, color=colour, ms=9, clip_on=False)
        _mark(axes, row, events.get(key, ()))
    lines = _draw_changes(axes, play, end)
    _furnish(axes, [job.gang.key for job in jobs])
    _draw_usage(below, play, colours, end)
    _title(axes, play, len(jobs), lines)
    _legend(figure, play, colours)
    return figure


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


def _draw_changes(axes: Axes, play: Play, end: float) -> int:
    """Draw what was changed from outside; how many lines of words that took."""
    words_at: dict[float, list[str]] = {}
    for event in play.scenario.events:
        if event.at > end:
            continue
        colour = _ALARM if isinstance(event, NodeEvent) else _INK
        axes.axvline(event.at, color=colour, lw=0.9, ls=(0, (4, 3)), alpha=0.7, zorder=0.8)
        words_at.setdefault(event.at, []).append(_words(event))
    ends: list[float] = []
    for at, words in sorted(words_at.items()):
        label = ", ".join(words)
        width = len(label) * _LETTER * end
        is_late = at + width > end
        left = at - width if is_late else at
        line = next((n for n, taken in enumerate(ends) if taken < left), len(ends))
        ends[line : line + 1] = [left + width]
        axes.annotate(
            label,
            (at, 1),
            xycoords=("data", "axes fraction"),
            xytext=(2 if is_late else -2, 3 + 11 * line),
            textcoords="offset points",
            ha="right" if is_late else "left",
            va="bottom",
            fontsize=7.5,
            color=_PALE_INK,
        )
    return len(ends)


def _words(event: ScenarioEvent) -> str:
    match event:
        case NodeEvent():
            return f"{event.node} {event.becomes}"
        case QueueEvent():
            fields = dict(event.fields)
            is_paused = fields.pop("is_paused", None)
            words = [] if is_paused is None else ["paused" if is_paused else "resumed"]
            words += [name.replace("_", " ") for name in fields if not name.endswith("_by_model")]
            return f"queue {event.queue}: {', '.join(words)}"
        case JobEvent():
            return f"{event.job} {'suspended' if event.is_suspended else 'resumed'}"


def _draw_usage(axes: Axes, play: Play, colours: Mapping[str, str], end: float) -> None:
    """The GPUs that each queue holds, one upon the other, and those of nodes that are up."""
    times, held = held_gpus(play, end)
    bottom = [0.0] * len(times)
    for queue, colour in colours.items():
        top = [low + gpus for low, gpus in zip(bottom, held[queue], strict=True)]
        axes.fill_between(times, bottom, top, step="post", color=colour, alpha=0.75, lw=0)
        bottom = top
    at, gpus = up_gpus(play, end)
    axes.step(at, gpus, where="post", color=_PALE_INK, lw=1.1)
    axes.set_ylim(0, max([*gpus, *bottom, 1]) * 1.12)
    axes.set_xlim(0, end)
    axes.yaxis.set_major_locator(MaxNLocator(3, integer=True))
    axes.set_ylabel("GPUs", fontsize=8.5, color=_PALE_INK)
    axes.xaxis.set_major_locator(MultipleLocator(_step(end)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda time, _: duration_of(round(time, 3))))
    _clear(axes)
    axes.tick_params(axis="y", labelsize=8, labelcolor=_PALE_INK)


def _furnish(axes: Axes, names: Sequence[str]) -> None:
    axes.set_ylim(max(1, len(names)) - 0.4, -0.6)
    axes.set_yticks(range(len(names)), labels=names)
    _clear(axes)
    axes.tick_params(axis="x", labelbottom=False)


def _clear(axes: Axes) -> None:
    axes.tick_params(axis="both", length=0)
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


def _title(axes: Axes, play: Play, shown: int, lines: int) -> None:
    evictions = sum(job.evictions for job in play.simulation.jobs.values())
    total = len(play.scenario.jobs)
    parts = [
        f"the first {shown} of {total} jobs" if shown < total else "",
        f"{evictions} eviction{'' if evictions == 1 else 's'}",
        f"utilization {play.utilization:.0%}",
    ]
    axes.set_title(
        play.scenario.name,
        loc="left",
        fontsize=13,
        fontweight="bold",
        pad=22 + 11 * lines,
    )
    axes.annotate(
        "  ·  ".join(part for part in parts if part),
        (0, 1),
        xycoords="axes fraction",
        xytext=(0, 7 + 11 * lines),
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
    if _is_ever_short(play):
        handles.append(Patch(color=neutral, alpha=0.18, label="replicas that it lacks"))
    handles.append(Line2D([], [], color=_PALE_INK, lw=1.1, label="GPUs that are up"))
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


def _is_ever_short(play: Play) -> bool:
    """Whether some job runs with fewer replicas than it would take."""
    replicas = {job.gang.key: job.gang.replicas for job in play.scenario.jobs}
    return any(0 < event.replicas < replicas[event.job] for event in play.timeline)
