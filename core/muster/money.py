"""Whole amounts: dividing them so that the parts add up, and writing them for people."""

from collections.abc import Sequence
from typing import Final

_MICRO: Final = 1_000_000
_SECOND_PARTS: Final = 64
_MS_PER_SECOND: Final = 1000


def spread(amounts: Sequence[int], unit: int) -> list[int]:
    """*amounts* in whole units of *unit*, by largest remainder: they add up to their rounded sum.

    Of equal remainders the earlier one gets the unit.
    """
    whole = [amount // unit for amount in amounts]
    missing = (sum(amounts) + unit // 2) // unit - sum(whole)
    by_remainder = sorted(range(len(amounts)), key=lambda i: (-(amounts[i] % unit), i))
    for i in by_remainder[:missing]:
        whole[i] += 1
    return whole


def seconds(milliseconds: Sequence[int]) -> tuple[list[float], float]:
    """Each of *milliseconds* in seconds, and their total.

    Given in 64ths of a second, which binary floating point holds exactly: the numbers still add up
    to the total when somebody else adds them.
    """
    parts = spread([ms * _SECOND_PARTS for ms in milliseconds], _MS_PER_SECOND)
    return [part / _SECOND_PARTS for part in parts], sum(parts) / _SECOND_PARTS


def usd(micro_usd: int | None) -> str:
    """An amount for people: `$1,234.56`, with more digits below a dollar, `unpriced` for None."""
    if micro_usd is None:
        return "unpriced"
    digits = 2 if abs(micro_usd) >= _MICRO or micro_usd == 0 else 6
    unit = 10 ** (6 - digits)
    rounded = (abs(micro_usd) + unit // 2) // unit
    dollars, fraction = divmod(rounded, 10**digits)
    return f"{'-' if micro_usd < 0 else ''}${dollars:,}.{fraction:0{digits}d}"
