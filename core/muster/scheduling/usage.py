"""Decayed usage: what a queue held, the longer ago the less it counts.

With a half-life H the usage of a queue is the integral of the GPUs that it held, weighted by
2^(-age/H), times ln2/H, so that a constant use converges to itself. It is kept as a value at a
time and brought forward exactly while what is held does not change: nothing is sampled or rounded.
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

from muster.scheduling.quota import Held

_Key = TypeVar("_Key", bound=Hashable)


def decayed(value: float, held: float, seconds: float, half_life: float) -> float:
    """Usage in GPUs after *seconds* in which *held* GPUs were held, from *value* on."""
    kept: float = 2.0 ** (-seconds / half_life)
    return value * kept + held * (1.0 - kept)


class Usage:
    """The decayed usage of every queue, those below it included, in all and by GPU model."""

    def __init__(self) -> None:
        self.total: dict[str, float] = {}
        self.by_model: dict[tuple[str, str], float] = {}
        self.at = 0.0

    def load(
        self,
        total: Iterable[tuple[str, float]],
        by_model: Iterable[tuple[tuple[str, str], float]],
        at: float,
    ) -> None:
        """Go on from values that were written down at a time, in seconds."""
        self.total, self.by_model, self.at = dict(total), dict(by_model), at

    def advance(self, held: Held, now: float, half_life: float) -> None:
        """Bring all values to *now*, if they are older; *held* is what was held since then."""
        seconds = now - self.at
        if seconds <= 0:
            return
        self.total = _advanced(self.total, held.total, seconds, half_life)
        self.by_model = _advanced(self.by_model, held.by_model, seconds, half_life)
        self.at = now


def _advanced(
    values: Mapping[_Key, float], held: Mapping[_Key, int], seconds: float, half_life: float
) -> dict[_Key, float]:
    keys = values.keys() | held.keys()
    # In any order: each value stands alone.
    return {
        key: decayed(values.get(key, 0.0), held.get(key, 0), seconds, half_life) for key in keys
    }
