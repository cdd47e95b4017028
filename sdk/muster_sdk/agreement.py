"""Deeds that all ranks do together, and fail together.

A rank that raised alone would leave the others waiting in a collective, so failures travel as
values and are raised everywhere.
"""

from collections.abc import Callable
from typing import TypeVar, cast

from muster.errors import MusterError
from muster_sdk.ranks import Ranks

T = TypeVar("T")


def first_decides(ranks: Ranks, decide: Callable[[], T], failure: type[MusterError]) -> T:
    """What rank 0 decides, for everybody; its error likewise, as *failure* if it is unexpected."""
    outcome = _outcome(decide, failure) if ranks.rank == 0 else None
    decided = ranks.from_first(outcome)
    if isinstance(decided, MusterError):
        raise decided
    return cast("T", decided)  # Rank 0 put it there; only elsewhere was it None before.


def all_do(ranks: Ranks, work: Callable[[], T], failure: type[MusterError]) -> list[T]:
    """Everybody's result, in order of rank; if any failed, the lowest rank's error everywhere."""
    outcomes = ranks.gather(_outcome(work, failure))
    done: list[T] = []
    for rank, outcome in enumerate(outcomes):
        if isinstance(outcome, MusterError):
            raise outcome if ranks.size == 1 else type(outcome)(f"rank {rank}: {outcome}")
        done.append(outcome)
    return done


def _outcome(work: Callable[[], T], failure: type[MusterError]) -> T | MusterError:
    try:
        return work()
    except MusterError as error:
        return error
    except Exception as error:  # Raised again on every rank: alone it would hang them.
        wrapped = failure(f"{type(error).__name__}: {error}")
        wrapped.__cause__ = error
        return wrapped
