"""The clock of the processes; everything below them is given the time."""

import time


def now_ms() -> int:
    """The time, in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000
