"""Times as seconds since the epoch, and as the RFC 3339 texts of a status."""

from datetime import UTC, datetime


def seconds_of(text: str | None) -> float | None:
    """The time in an RFC 3339 *text*, in seconds since the epoch."""
    return None if not text else datetime.fromisoformat(text).timestamp()


def text_of(seconds: float | None) -> str | None:
    """The RFC 3339 text of a time, in UTC with milliseconds."""
    if seconds is None:
        return None
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def whole_ms(seconds: float) -> float:
    """The time that is left when *seconds* has been written and read, rounded down."""
    return int(seconds * 1000) / 1000
