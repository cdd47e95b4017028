"""Quantiles of what was measured, by nearest rank, so that each is a value that occurred."""

import math
from collections.abc import Sequence


def quantile(ascending: Sequence[float], part: float) -> float:
    """The value that at least *part* of the values do not exceed; 0 where there are none."""
    if not ascending:
        return 0.0
    return ascending[min(len(ascending), max(1, math.ceil(part * len(ascending)))) - 1]


def mean(values: Sequence[float]) -> float:
    """The mean; 0 where there are no values."""
    return sum(values) / len(values) if values else 0.0
