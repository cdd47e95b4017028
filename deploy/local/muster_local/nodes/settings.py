"""What the process is told at its start."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Tls:
    """How the log endpoint proves itself, and to whom it answers."""

    certificate: Path
    key: Path
    client_authority: Path
    """Who must have signed the client's certificate."""
    client_name: str
    """Common name that the client's certificate must carry: the API server's."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Read once, from the command line."""

    directory: Path
    """Holds `nodes.json`, and all that this process keeps."""
    kubeconfig: Path
    tls: Tls | None = None
    """`None`: no log endpoint."""
    port: int = 0
    """Of the log endpoint; 0 takes a free one."""
    restart_seconds: float = 10.0
    """The first pause before a restart; doubled each time, up to 30 times as long."""
    may_use_namespaces: bool = True
    """False substitutes paths and names even where mount namespaces are allowed."""
    lease_seconds: int = 40
    """How long a node counts as alive after a heartbeat; it beats four times as often."""
    shutdown_grace_seconds: float = 3.0
    """What processes get between SIGTERM and SIGKILL when this process or their node goes away."""
