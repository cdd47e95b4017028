"""A process that cannot be mistaken for another one.

As `muster_local.component.Identity`, but from /proc alone: a launcher has no psutil.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Identity:
    """A process id, with the clock ticks from boot to its start, and the boot."""

    pid: int
    started_ticks: int
    boot: str

    @classmethod
    def own(cls) -> "Identity":
        """This process."""
        found = cls.of(os.getpid())
        assert found is not None, "a process that asks is alive"
        return found

    @classmethod
    def of(cls, pid: int) -> "Identity | None":
        """The process that has *pid* now, unless it is gone or only waits to be reaped."""
        stat = stat_of(pid)
        if stat is None or stat[0] in "ZX":
            return None
        return cls(pid, int(stat[19]), _BOOT_ID.read_text().strip())

    def is_alive(self) -> bool:
        """Whether this very process still runs."""
        return Identity.of(self.pid) == self


def stat_of(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the state (field 3) on, or `None` when there is none."""
    try:
        raw = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name, in parentheses, may hold blanks and parentheses itself.
    return raw[raw.rindex(")") + 2 :].split()
