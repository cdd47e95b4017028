"""Free ports on loopback."""

import socket
from contextlib import ExitStack

LOOPBACK = "127.0.0.1"


def free_ports(count: int) -> list[int]:
    """*count* different ports that nobody listens on now.

    Somebody may take one before we bind it, so whoever uses them must be ready to ask again.
    """
    with ExitStack() as held:
        sockets = [
            held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            for _ in range(count)
        ]
        for each in sockets:
            each.bind((LOOPBACK, 0))
        return [int(each.getsockname()[1]) for each in sockets]


def is_free(port: int) -> bool:
    """Whether *port* could be bound on loopback at this moment."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do it: a port whose old connections linger counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True
