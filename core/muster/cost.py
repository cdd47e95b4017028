"""What a job cost: GPU-milliseconds times dated prices, in whole micro-dollars.

Every replica holds its GPUs from the decision until its pod has ended. That time is cut at the
starts and ends of epochs and at price changes; each piece goes to one line, by its class:

    startup      attempt 1, until its first epoch starts
    restart      a later attempt, until its first epoch starts
    epoch        from the start of an epoch to the start of the next one, with the evaluation and
                 saving in between (of any attempt: lines merge by the epoch's number)
    interrupted  inside an epoch that a failure cut short; it still belongs to that epoch
    shutdown     after the last epoch of an attempt, until the GPUs are given back
    other        in a job that reports no epochs

Amounts stay exact fractions until the end and are rounded once, by largest remainder, so that the
lines add up to the total. GPU time without a price makes its line and the total unknown (None),
never 0. The clock is given: an open interval counts until `now_ms`.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import zip_longest
from typing import Final, TypeVar

from muster.money import spread

T = TypeVar("T")

MS_PER_HOUR: Final = 3_600_000
_EVER: Final = -(2**63)


class Class(StrEnum):
    """What GPUs were held for."""

    STARTUP = "startup"
    RESTART = "restart"
    EPOCH = "epoch"
    INTERRUPTED = "interrupted"
    SHUTDOWN = "shutdown"
    OTHER = "other"


_ORDER: Final = {kind: place for place, kind in enumerate(Class)}
OF_AN_EPOCH: Final = frozenset({Class.EPOCH, Class.INTERRUPTED})
"""The classes whose lines are keyed by epoch; all others are keyed by attempt."""


@dataclass(frozen=True, slots=True)
class Holding:
    """GPUs that one replica held in one attempt."""

    attempt: int
    replica: int
    gpus: int
    start_ms: int
    end_ms: int | None
    """None while they are still held."""
    gpu_model: str | None = None
    capacity_type: str | None = None
    is_simulated: bool = False


@dataclass(frozen=True, slots=True)
class EpochSpan:
    """One epoch, as far as one attempt got with it."""

    attempt: int
    epoch: int
    start_ms: int
    end_ms: int | None
    """None if its end was never reported: it goes on, or was cut short."""


@dataclass(frozen=True, slots=True, order=True)
class PriceRow:
    """What a GPU-hour costs from a moment on."""

    gpu_model: str
    capacity_type: str
    from_ms: int
    micro_usd_per_gpu_hour: int


@dataclass(frozen=True, slots=True)
class Line:
    """The GPU time of one class and key, and what it cost."""

    kind: Class
    key: int
    """The epoch for `epoch` and `interrupted` (in a bill by epoch), the attempt for the others."""
    gpu_ms: int
    micro_usd: int | None
    """None where part of the time has no price."""


@dataclass(frozen=True, slots=True)
class Bill:
    """All that a job cost. The lines add up to the totals exactly."""

    lines: tuple[Line, ...] = ()
    gpu_ms: int = 0
    micro_usd: int | None = 0
    """None where any GPU time has no price."""
    prices: tuple[PriceRow, ...] = ()
    """The rows that were used."""
    is_simulated: bool = False

    @property
    def is_priced(self) -> bool:
        """Whether every GPU-millisecond has a price."""
        return self.micro_usd is not None


Key = tuple[Class, int]
_Steps = Sequence[tuple[int, Key]]
"""What an attempt was doing, as (since when, what), in order; the first began before all time."""


def bill(
    holdings: Iterable[Holding],
    epochs: Iterable[EpochSpan],
    prices: Iterable[PriceRow],
    *,
    now_ms: int,
    failed_attempts: Iterable[int] = (),
    is_by_attempt: bool = False,
) -> Bill:
    """The bill of one job. An open epoch of one of *failed_attempts* counts as interrupted.

    With *is_by_attempt* all lines are keyed by attempt. The order of the arguments' items does
    not matter.
    """
    phases = _phases(epochs, frozenset(failed_attempts))
    if is_by_attempt:
        phases = {
            attempt: [(since, (kind, attempt)) for since, (kind, _) in steps]
            for attempt, steps in phases.items()
        }
    rows = _by_kind(prices)
    ledger = _Ledger()
    for holding in holdings:
        end_ms = now_ms if holding.end_ms is None else holding.end_ms
        for key, start, end in _cut(holding.start_ms, end_ms, _steps_of(holding.attempt, phases)):
            ledger.add(holding, key, start, end, rows)
    return ledger.close()


class _Ledger:
    """Sums by line while a bill is made; exact until it is closed."""

    def __init__(self) -> None:
        self._gpu_ms: defaultdict[Key, int] = defaultdict(int)
        self._amounts: defaultdict[Key, int] = defaultdict(int)
        self._first_ms: dict[Key, int] = {}
        self._unpriced: set[Key] = set()
        self._used: set[PriceRow] = set()
        self._is_simulated = False

    def add(
        self,
        holding: Holding,
        key: Key,
        start_ms: int,
        end_ms: int,
        rows: Mapping[tuple[str | None, str | None], Sequence[PriceRow]],
    ) -> None:
        """Put down that *holding* served *key* for a while."""
        self._gpu_ms[key] += holding.gpus * (end_ms - start_ms)
        self._first_ms[key] = min(start_ms, self._first_ms.get(key, start_ms))
        if not holding.gpus:
            return
        self._is_simulated |= holding.is_simulated
        of_kind = rows.get((holding.gpu_model, holding.capacity_type), ())
        first = of_kind[0].from_ms if of_kind else end_ms
        if start_ms < first:
            self._unpriced.add(key)
        for row, start, end in _cut(start_ms, end_ms, [(r.from_ms, r) for r in of_kind]):
            self._used.add(row)
            self._amounts[key] += holding.gpus * (end - start) * row.micro_usd_per_gpu_hour

    def close(self) -> Bill:
        """The bill: lines in the order in which they began."""
        keys = sorted(self._gpu_ms, key=lambda key: (self._first_ms[key], _ORDER[key[0]], key[1]))
        priced = [key for key in keys if key not in self._unpriced]
        amounts = spread([self._amounts[key] for key in priced], MS_PER_HOUR)
        money = dict(zip(priced, amounts, strict=True))
        return Bill(
            lines=tuple(Line(*key, self._gpu_ms[key], money.get(key)) for key in keys),
            gpu_ms=sum(self._gpu_ms.values()),
            micro_usd=None if self._unpriced else sum(amounts),
            prices=tuple(sorted(self._used)),
            is_simulated=self._is_simulated,
        )


def _cut(
    start_ms: int, end_ms: int, steps: Sequence[tuple[int, T]]
) -> Iterator[tuple[T, int, int]]:
    """The parts of an interval that fall on each step of a step function, empty ones left out."""
    bounds = [since for since, _ in steps[1:]] + [end_ms]
    for (since, what), until in zip(steps, bounds, strict=False):
        start, end = max(start_ms, since), min(end_ms, until)
        if start < end:
            yield what, start, end


def _by_kind(prices: Iterable[PriceRow]) -> dict[tuple[str | None, str | None], list[PriceRow]]:
    """Price rows by GPU model and capacity type, oldest first."""
    rows: dict[tuple[str | None, str | None], list[PriceRow]] = {}
    for row in sorted(prices):
        rows.setdefault((row.gpu_model, row.capacity_type), []).append(row)
    return rows


def _steps_of(attempt: int, phases: Mapping[int, _Steps]) -> _Steps:
    """What an attempt was doing; one without epochs, if others have some, never left its start."""
    return phases.get(attempt) or [
        (_EVER, (_start_of(attempt) if phases else Class.OTHER, attempt))
    ]


def _start_of(attempt: int) -> Class:
    return Class.STARTUP if attempt == 1 else Class.RESTART


def _place(span: EpochSpan) -> tuple[int, ...]:
    """Its place among the others. Total, so that the order in which they come is irrelevant."""
    end = (1, 0) if span.end_ms is None else (0, span.end_ms)
    return (span.attempt, span.start_ms, span.epoch, *end)


def _phases(epochs: Iterable[EpochSpan], failed: frozenset[int]) -> Mapping[int, _Steps]:
    """What each attempt that reported epochs was doing when."""
    spans: defaultdict[int, list[EpochSpan]] = defaultdict(list)
    for span in sorted(epochs, key=_place):
        spans[span.attempt].append(span)
    return {
        attempt: _steps(attempt, of_attempt, is_failed=attempt in failed)
        for attempt, of_attempt in spans.items()
    }


def _steps(attempt: int, spans: Sequence[EpochSpan], *, is_failed: bool) -> _Steps:
    """Start, epochs up to the start of the next one, and what comes after the last."""
    steps: list[tuple[int, Key]] = [(_EVER, (_start_of(attempt), attempt))]
    for span, after in zip_longest(spans, spans[1:]):
        is_cut_short = after is None and span.end_ms is None and is_failed
        steps.append(
            (span.start_ms, (Class.INTERRUPTED if is_cut_short else Class.EPOCH, span.epoch))
        )
        if after is None and span.end_ms is not None:
            steps.append((max(span.start_ms, span.end_ms), (Class.SHUTDOWN, attempt)))
    return steps
