"""The port at which the replicas of one attempt meet."""

from collections.abc import Set as AbstractSet
from zlib import crc32

from muster_operator.settings import Settings


def free_port(settings: Settings, uid: str, attempt: int, taken: AbstractSet[int]) -> int:
    """A port of the range that no other gang has, as long as there are enough of them.

    A store binds all addresses of its node, and on one machine all nodes share them. Attempts of
    one job get different ports, so that a straggler of the last one meets nobody.
    """
    first = crc32(f"{uid}/{attempt}".encode()) % settings.port_count
    for step in range(settings.port_count):
        port = settings.port_first + (first + step) % settings.port_count
        if port not in taken:
            return port
    return settings.port_first + first
