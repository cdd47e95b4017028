"""Whose turn it is.

Within a queue: higher priority first, then earlier submission, then name. Between queues: the one
whose head was submitted first, then the one whose head comes first by name; looked at again after
every job.
"""

from collections.abc import Iterator
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple

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
    heads = [_Head(*_claim(first), number, first) for number, first in _firsts(lanes)]
    heapify(heads)
    while heads:
        head = heads[0]
        yield head.pending
        following = next(lanes[head.lane], None)
        if following is None:
            heappop(heads)
        else:
            heapreplace(heads, _Head(*_claim(following), head.lane, following))


class _Head(NamedTuple):
    submitted: float
    name: tuple[str | int, ...]
    lane: int
    """Two heads of one name and time sort by queue; gangs themselves are never compared."""
    pending: Pending


def _claim(head: Pending) -> tuple[float, tuple[str | int, ...]]:
    _, submitted, name, _ = head.turn
    return submitted, name


def _firsts(lanes: list[Iterator[Pending]]) -> Iterator[tuple[int, Pending]]:
    for number, lane in enumerate(lanes):
        first = next(lane, None)
        if first is not None:
            yield number, first
