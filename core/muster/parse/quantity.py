"""Kubernetes quantities and durations as whole numbers.

The rules are those of `k8s.io/apimachinery/pkg/api/resource`: exact decimal arithmetic, binary and
decimal suffixes, exponents, and rounding up, under the theory that whoever wants some of a
resource should get some. Negative amounts are refused, since nothing that is parsed here may be
negative.
"""

import re
from functools import lru_cache
from typing import Final

from muster.errors import InvalidSpec
from muster.parse.raw import shown

LARGEST: Final = 2**63 - 1
"""What Kubernetes counts as unlimited: amounts above it are taken for it."""

_QUANTITY: Final = re.compile(
    r"\+?(?P<whole>\d{0,40})(?:\.(?P<part>\d{0,40}))?"
    r"(?:(?P<suffix>[KMGTPE]i|[numkMGTPE]?)|[eE](?P<exponent>[+-]?\d{1,4}))",
    re.ASCII,
)
_BINARY: Final = {
    suffix + "i": 1024**power for power, suffix in enumerate(("K", "M", "G", "T", "P", "E"), 1)
}
_DECIMAL: Final = {
    "n": -9,
    "u": -6,
    "m": -3,
    "": 0,
    "k": 3,
    "M": 6,
    "G": 9,
    "T": 12,
    "P": 15,
    "E": 18,
}
_DURATION: Final = re.compile(
    r"(?:(?P<d>\d{1,9})d)?(?:(?P<h>\d{1,9})h)?(?:(?P<m>\d{1,9})m)?"
    r"(?:(?P<s>\d{1,12})s)?(?:(?P<ms>\d{1,12})ms)?",
    re.ASCII,
)
_UNIT_MILLIS: Final = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}


def millis(quantity: object, path: str = "") -> int:
    """The quantity in thousandths, rounded up: `1.5` is 1500. Raises `InvalidSpec`."""
    return _scaled(quantity, 3, path)


def whole(quantity: object, path: str = "") -> int:
    """The quantity in whole units, rounded up: devices, pods. Raises `InvalidSpec`."""
    return _scaled(quantity, 0, path)


def bytes_of(quantity: object, path: str = "") -> int:
    """The quantity in bytes, rounded up: `2Gi` is 2147483648. Raises `InvalidSpec`."""
    return _scaled(quantity, 0, path)


def seconds_of(duration: object, path: str = "") -> int:
    """A duration such as `1h30m`, `90s` or `500ms` in seconds, rounded up; a bare number is
    seconds. Raises `InvalidSpec`."""
    text = _text(duration)
    match = _DURATION.fullmatch(f"{text}s" if text.isdigit() else text)
    if match is None or not text:
        raise InvalidSpec(
            path, f"{shown(duration)} is no duration; write it as 1h30m, 90s or 500ms"
        )
    units = match.groupdict(default="0")
    thousandths = sum(int(units[unit]) * size for unit, size in _UNIT_MILLIS.items())
    return _ceiling(thousandths, 1000)


def _text(value: object) -> str:
    # YAML reads `cpu: 2` and `cpu: 0.5` as numbers; the API server takes their JSON text.
    if isinstance(value, str):
        return value
    return repr(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _scaled(quantity: object, digits: int, path: str) -> int:
    text = _text(quantity)
    amount = _amount(text, digits)
    if amount is not None:
        return amount
    if _amount(text.removeprefix("-"), digits) is not None:
        raise InvalidSpec(path, f"must not be negative, is {text}")
    raise InvalidSpec(path, f"{shown(quantity)} is no quantity; write it as 2, 500m, 1.5 or 16Gi")


@lru_cache(maxsize=8192)
def _amount(text: str, digits: int) -> int | None:
    """The amount times 10^digits, rounded up; `None` for what is no amount, or a negative one.

    Cached, since a cluster writes few different amounts.
    """
    match = _QUANTITY.fullmatch(text)
    if match is None or not (match["whole"] or match["part"]):
        return None
    part = match["part"] or ""
    mantissa = int((match["whole"] or "0") + part)
    power = digits - len(part)
    if match["exponent"] is not None:
        power += int(match["exponent"])
    elif match["suffix"] in _BINARY:
        mantissa *= _BINARY[match["suffix"]]
    else:
        power += _DECIMAL[match["suffix"]]
    # Beyond this power the result is settled, and 10^9999 need not be worked out.
    amount = mantissa * 10 ** min(power, 64) if power >= 0 else _ceiling(mantissa, 10**-power)
    return min(amount, LARGEST)


def _ceiling(numerator: int, denominator: int) -> int:
    return -(-numerator // denominator)
