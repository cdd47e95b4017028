"""What a shape took: one sample a decision, in wall time and in processor time."""

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from muster_local.bench.quantiles import quantile

_Result = TypeVar("_Result")


@dataclass(slots=True)
class Stopwatch:
    """Collects samples, in seconds."""

    samples: list[float] = field(default_factory=list)
    cpu: float = 0.0

    def time(self, deed: Callable[[], _Result]) -> _Result:
        """Do it, as one decision."""
        cpu, wall = time.process_time(), time.perf_counter()
        result = deed()
        self.samples.append(time.perf_counter() - wall)
        self.cpu += time.process_time() - cpu
        return result

    def settle(self) -> None:
        """Collect what the building of a scene left, so that no decision pays for it."""
        gc.collect()


@dataclass(frozen=True, slots=True)
class Measured:
    """One shape at one size."""

    decisions: int
    samples: tuple[float, ...]
    """Seconds of wall time, one a decision."""
    total: float
    """Seconds of wall time of all decisions."""
    cpu: float
    """Seconds of processor time of the same."""
    more: dict[str, Any] = field(default_factory=dict)
    """Figures that only this shape has."""

    def figures(self) -> dict[str, Any]:
        """As `muster bench schedule` prints it."""
        ascending = sorted(self.samples)
        return {
            "decisions": self.decisions,
            "mean_ms": _millis(self.total / self.decisions if self.decisions else 0.0),
            "p50_ms": _millis(quantile(ascending, 0.5)),
            "p99_ms": _millis(quantile(ascending, 0.99)),
            "total_s": round(self.total, 4),
            "cpu_s": round(self.cpu, 4),
            **self.more,
        }


def measured(watch: Stopwatch, **more: Any) -> Measured:
    """What the watch has collected."""
    samples = tuple(watch.samples)
    return Measured(len(samples), samples, sum(samples), watch.cpu, more)


def _millis(seconds: float) -> float:
    return round(seconds * 1_000, 4)
