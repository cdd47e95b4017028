"""Amounts as people read them. JSON carries the plain numbers; only tables and pages use this."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any


def seconds(value: float | None) -> str:
    """A duration with at most two units: `4.2s`, `3m12s`, `2h5m`, `3d4h`."""
    if value is None:
        return "–"
    if value < 60:
        return f"{value:.1f}s" if value < 10 else f"{value:.0f}s"
    whole = round(value)
    for unit, size, next_unit, next_size in (
        ("d", 86400, "h", 3600),
        ("h", 3600, "m", 60),
        ("m", 60, "s", 1),
    ):
        if whole >= size:
            rest = whole % size // next_size
            return f"{whole // size}{unit}" + (f"{rest}{next_unit}" if rest else "")
    raise AssertionError(f"no unit for {value}")


def instant(text: str | None) -> datetime | None:
    """The time in an RFC 3339 string."""
    return datetime.fromisoformat(text) if text else None


def between(start: str | None, end: str | None) -> float | None:
    """The seconds from *start* to *end*, both RFC 3339."""
    first, last = instant(start), instant(end)
    return None if first is None or last is None else (last - first).total_seconds()


def age(start: str | None, now: datetime) -> str:
    """How long ago *start* was."""
    begun = instant(start)
    return "–" if begun is None else seconds(max(0.0, (now - begun).total_seconds()))


def size(count: int | None) -> str:
    """Bytes with a binary unit: `1.5 MiB`."""
    if count is None:
        return "–"
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def gang(job: Mapping[str, Any]) -> str:
    """How large the gang of *job* is: what it asks for, and what an elastic one runs with."""
    asked = f"{_count(job.get('replicas'), 'replica')}, {_count(job.get('gpus'), 'GPU')}"
    held = len((job.get("placement") or {}).get("nodes") or ())
    return f"{asked}; runs with {held}" if held and held != job.get("replicas") else asked


def _count(amount: object, what: str) -> str:
    return f"{amount or 0} {what}" + ("" if amount == 1 else "s")
