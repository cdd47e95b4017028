"""A job, watched until it has ended: a live page on a terminal, plain lines elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Protocol, Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from muster.errors import NotFound, Unavailable
from muster.job_status import Phase
from muster.money import usd
from muster_cli import output, text

Json = dict[str, Any]

ENDED: Final = frozenset(str(phase) for phase in Phase if phase.is_final)
_SECONDS_BETWEEN: Final = 0.5
_MAX_FAILURES: Final = 60
"""Half a minute without the API: it may be starting anew."""


class Reader(Protocol):
    """Reads a job and its epochs, as `muster_cli.api.Api` does."""

    def job(self, namespace: str, name: str) -> Json:
        """The job."""

    def epochs(self, namespace: str, name: str) -> Json:
        """Its epochs."""


@dataclass(frozen=True, slots=True)
class State:
    """A job at one moment."""

    job: Json
    epochs: tuple[Json, ...] = ()

    @property
    def phase(self) -> str:
        """The phase of the job."""
        return str(self.job.get("phase") or "Pending")

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will happen."""
        return self.phase in ENDED

    @property
    def finished_epochs(self) -> tuple[Json, ...]:
        """The epochs that are complete."""
        return tuple(e for e in self.epochs if e.get("finished"))


class Display(AbstractContextManager["Display"], Protocol):
    """Shows the states of a job, one after the other."""

    def show(self, state: State) -> None:
        """Show *state* in place of, or after, the ones before."""

    def say(self, message: str) -> None:
        """Say *message* without disturbing what is shown."""


def states(
    reader: Reader,
    namespace: str,
    name: str,
    *,
    uid: str | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[State]:
    """Yield what becomes of the job, up to and with its end.

    With *uid* that job is meant: until the API knows it, it is pending, whatever became of an
    earlier one of its name. An API that is away for a moment is waited for, since jobs go on
    without it.
    """
    failures = 0
    while True:
        try:
            state = _read(reader, namespace, name, uid)
        except Unavailable:
            failures += 1
            if failures > _MAX_FAILURES:
                raise
        else:
            failures = 0
            yield state
            if state.has_ended:
                return
        pause(_SECONDS_BETWEEN)


def _read(reader: Reader, namespace: str, name: str, uid: str | None) -> State:
    try:
        job = reader.job(namespace, name)
        if uid in {None, job.get("uid")}:
            return State(job, tuple(reader.epochs(namespace, name).get("items") or ()))
    except NotFound:
        if uid is None:
            raise
    return State({"namespace": namespace, "name": name, "uid": uid})


def display(console: Console, *, epochs: int | None = None) -> Display:
    """The display that suits *console*. *epochs*: how many there will be, where that is known."""
    return LivePage(console, epochs) if console.is_terminal else Lines(console)


@dataclass
class Lines:
    """One line for each thing that happens, for logs and pipes."""

    console: Console
    _told: set[tuple[object, ...]] = field(default_factory=set)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None

    def show(self, state: State) -> None:
        """Print what is new in *state*."""
        job = state.job
        self._once(("phase", job.get("attempt"), state.phase), headline(state))
        checkpoint = job.get("checkpoint") or {}
        if verified := checkpoint.get("verified"):
            self._once(
                ("checkpoint", verified),
                f"checkpoint {verified} verified, step {checkpoint.get('step')}",
            )
        for epoch in state.finished_epochs:
            self._once(("epoch", epoch["epoch"]), epoch_line(epoch))

    def say(self, message: str) -> None:
        """Print *message*."""
        self.console.print(Text(message))

    def _once(self, key: tuple[object, ...], line: str) -> None:
        if key not in self._told:
            self._told.add(key)
            self.console.print(Text(line))


@dataclass
class LivePage:
    """A small page that changes in place."""

    console: Console
    epochs: int | None = None
    _live: Live | None = None

    def __enter__(self) -> Self:
        self._live = Live(console=self.console, refresh_per_second=4)
        self._live.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, trace)
            self._live = None

    def show(self, state: State) -> None:
        """Draw *state*."""
        if self._live is not None:
            self._live.update(self.page(state))

    def say(self, message: str) -> None:
        """Print *message* above the page."""
        self.console.print(Text(message))

    def page(self, state: State) -> Group:
        """The page for *state*."""
        job = state.job
        rows = Table.grid(padding=(0, 2))
        attempt = f", attempt {job['attempt']}" if job.get("attempt") else ""
        rows.add_row(
            Text("job", style="dim"),
            f"{job.get('namespace')}/{job.get('name')}",
            output.phase(job) + Text(attempt),
        )
        rows.add_row(
            Text("gang", style="dim"),
            text.gang(job),
            Text(str(job.get("message") or ""), style="dim"),
        )
        done = len(state.finished_epochs)
        of = f"{done} of {self.epochs}" if self.epochs else str(done)
        bar = ProgressBar(total=self.epochs, completed=done, width=40) if self.epochs else Text("")
        rows.add_row(Text("epochs", style="dim"), of, bar)
        rows.add_row(Text("latest", style="dim"), *_latest(state))
        rows.add_row(
            Text("cost", style="dim"),
            usd(job.get("cost_micro_usd")),
            Text("so far", style="dim"),
        )
        return Group(rows)


def headline(state: State) -> str:
    """The state of a job in one line."""
    job = state.job
    line = f"{job.get('name')}: {state.phase}"
    if job.get("attempt"):
        line += f", attempt {job['attempt']}, {text.gang(job)}"
    said = ": ".join(str(job[key]) for key in ("reason", "message") if job.get(key))
    return f"{line} ({said})" if said else line


def epoch_line(epoch: Json) -> str:
    """A finished epoch in one line."""
    parts = [
        f"epoch {epoch['epoch']}: {text.seconds(epoch.get('seconds'))}",
        f"{epoch.get('gpu_seconds', 0):.1f} GPU-seconds",
        usd(epoch.get("micro_usd")),
    ]
    return ", ".join(parts + [f"{k} {v:.4g}" for k, v in _numbers(epoch)])


def _latest(state: State) -> tuple[str, Text]:
    finished = state.finished_epochs
    if not finished:
        return "–", Text("")
    metrics = ", ".join(f"{key} {value:.4g}" for key, value in _numbers(finished[-1]))
    return f"epoch {finished[-1]['epoch']}", Text(metrics)


def _numbers(epoch: Json) -> list[tuple[str, float]]:
    """The metrics of an epoch that are plain numbers; NaN and infinities come as strings."""
    metrics = epoch.get("metrics") or {}
    return [
        (key, float(value)) for key, value in metrics.items() if isinstance(value, int | float)
    ]
