"""Times as whole milliseconds since the epoch, and as RFC 3339 texts."""

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


def ms_at(moment: datetime) -> int:
    """Milliseconds since the epoch, rounded down. Raises `ValueError` where there is no zone."""
    if moment.tzinfo is None:
        raise ValueError(f"{moment} has no time zone")
    # By differences: a float of seconds is off by a millisecond now and then.
    return (moment - _EPOCH) // _MILLISECOND


def ms_of(text: str) -> int:
    """Milliseconds since the epoch of an RFC 3339 text. Raises `ValueError`."""
    return ms_at(datetime.fromisoformat(text))


def text_of(milliseconds: int) -> str:
    """The RFC 3339 text in UTC, with milliseconds where there are any."""
    moment = _EPOCH + milliseconds * _MILLISECOND
    precision = "milliseconds" if milliseconds % 1000 else "seconds"
    return moment.isoformat(timespec=precision).replace("+00:00", "Z")
