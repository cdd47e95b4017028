"""Whose turn it is.

Within a queue: higher priority first, then earlier submission, then name. Between queues: the one
whose head was submitted first, then the one whose head comes first by name; looked at again after
every job.
"""

from collections.abc import Iterator
from heapq import heapify, heappop, heapreplace
from itertools import islice

from muster.scheduling.snapshot import Gang, Pending, Snapshot, Turn
from muster.scheduling.tree import natural
from muster.scheduling.trial import Trial


def turn_of(gang: Gang) -> Turn:
    """What a queue is sorted by. The key breaks ties, so that the order is always the same."""
    return (-gang.priority, gang.submitted, natural(gang.key), gang.key)


def turns(snapshot: Snapshot, trial: Trial) -> Iterator[Pending]:
    """The pending gangs in the order in which they are tried.

    The order between queues may follow from what *trial* holds by then; whoever asks for the next
    gang has carried out what was decided on the last one.
    """
    lanes = [iter(lane) for lane in snapshot.pending.values()]
    heads = [
        _head(first, number) for number, lane in enumerate(lanes) for first in islice(lane, 1)
    ]
    heapify(heads)
    while len(heads) > 1:
        *_, number, pending = heads[0]
        yield pending
        following = next(lanes[number], None)
        if following is None:
            heappop(heads)
        else:
            heapreplace(heads, _head(following, number))
    for *_, number, pending in heads:
        yield pending
        yield from lanes[number]


_Head = tuple[float, tuple[str | int, ...], int, Pending]


def _head(pending: Pending, lane: int) -> _Head:
    # Heads of one name and time sort by queue; pending gangs themselves are never compared.
    turn = pending.turn
    return (turn[1], turn[2], lane, pending)
