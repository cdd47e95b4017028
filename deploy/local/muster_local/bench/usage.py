"""What processes cost: CPU seconds and peak memory, read from the kernel."""

from collections.abc import Iterable
from pathlib import Path

import psutil


def cpu_seconds(pids: Iterable[int]) -> float:
    """User and system time that the processes have used so far, together."""
    return sum(sum(psutil.Process(pid).cpu_times()[:2]) for pid in pids)


def peak_rss_mb(pid: int) -> float:
    """The most memory that a process ever held, in MiB (`VmHWM`)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return psutil.Process(pid).memory_info().rss / 2**20
