"""What a decision, once carried out, makes of the gangs that it is about.

From gang to gang, without a clock or a cluster: the contract between plans and whoever carries
them out, in one place.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from muster.scheduling.snapshot import NOWHERE, Displaced, Gang, Leaving, Run, Took

_UNKNOWN_RUN = Run(started=0.0)


def run_of(gang: Gang) -> Run:
    """Its run; one that nothing is known of began at the epoch."""
    return gang.run or _UNKNOWN_RUN


def started(
    gang: Gang,
    nodes: Sequence[str],
    now: float,
    *,
    behind: tuple[str, ...] = (),
    took: Took | None = None,
) -> Gang:
    """The gang as it runs from *now* on."""
    return replace(
        gang,
        placement=tuple(nodes),
        claim=(),
        is_returning=False,
        displaced=None,
        run=Run(started=now, behind=behind, took=took),
    )


def waiting(
    gang: Gang,
    *,
    attained: float,
    ran: float,
    is_returning: bool,
    displaced: Displaced | None = None,
) -> Gang:
    """The gang when all of it has left, and it waits to start again.

    *attained* is in GPU-seconds and *ran* in seconds, both over all of its runs.
    """
    return replace(
        gang,
        placement=None,
        run=None,
        claim=(),
        leaving=(),
        finished=(),
        attained=attained,
        ran=ran,
        is_returning=is_returning,
        displaced=displaced,
    )


def grown(gang: Gang, nodes: Sequence[str], *, behind: Collection[str] = ()) -> Gang:
    """The gang with further replicas behind its last rank."""
    run = run_of(gang)
    behind_now = tuple(sorted({*run.grown_behind, *behind}))
    return replace(
        gang,
        placement=(*(gang.placement or ()), *nodes),
        claim=(),
        run=replace(run, grown_behind=behind_now),
    )


def cut(gang: Gang, ranks: Collection[int]) -> Gang:
    """The gang without some ranks; those behind them move up."""
    placement = gang.placement or ()
    gone = frozenset(ranks)
    kept = [rank for rank in range(len(placement)) if rank not in gone]
    rank_now = {rank: number for number, rank in enumerate(kept)}
    leaving = []
    for each in gang.leaving:
        if each.ranks is not None:
            still = tuple(rank_now[rank] for rank in each.ranks if rank in rank_now)
            if not still:
                continue
            each = replace(each, ranks=still)  # noqa: PLW2901 -- the same decision, renumbered
        leaving.append(each)
    return _mended(
        replace(
            gang,
            placement=tuple(placement[rank] for rank in kept),
            finished=tuple(rank_now[rank] for rank in gang.finished if rank in rank_now),
            leaving=tuple(leaving),
        )
    )


def replaced(gang: Gang, ranks: Sequence[int], nodes: Sequence[str]) -> Gang:
    """The gang with lost ranks on other nodes."""
    return _mended(replace(_moved(gang, dict(zip(ranks, nodes, strict=True))), claim=()))


def lost(gang: Gang, ranks: Collection[int], now: float) -> Gang:
    """The gang after some of its ranks are gone, which is not its own doing."""
    run = run_of(gang)
    gone = _moved(gang, dict.fromkeys(ranks, NOWHERE))
    since = now if run.lost_at is None else run.lost_at
    leaving = []
    for each in gang.leaving:
        # Whoever is gone need not be asked any more; whole gangs still give up what is left.
        still = None if each.ranks is None else tuple(r for r in each.ranks if r not in ranks)
        if still is None or still:
            leaving.append(replace(each, ranks=still))
    return replace(gone, run=replace(run, lost_at=since), leaving=tuple(leaving))


def finished(gang: Gang, rank: int) -> Gang:
    """The gang after one of its ranks exited 0."""
    return replace(_moved(gang, {rank: NOWHERE}), finished=tuple(sorted((*gang.finished, rank))))


def asked(gang: Gang, leaving: Leaving) -> Gang:
    """The gang with one more decision that it has to make room."""
    return replace(gang, leaving=(*gang.leaving, leaving))


def released(gang: Gang, claimant: str) -> Gang:
    """The gang without what was decided against it for that claimant."""
    return replace(gang, leaving=tuple(each for each in gang.leaving if each.claimant != claimant))


def unsuspended(gang: Gang) -> Gang:
    """The gang without the decision that all of it leaves for nobody."""
    return replace(
        gang,
        leaving=tuple(e for e in gang.leaving if e.claimant or e.ranks is not None),
    )


def undrained(gang: Gang, ranks: Collection[int]) -> Gang:
    """The gang when these ranks need not leave their node any more."""
    leaving = []
    for each in gang.leaving:
        if each.claimant or each.ranks is None:
            leaving.append(each)
        elif still := tuple(rank for rank in each.ranks if rank not in ranks):
            leaving.append(replace(each, ranks=still))
    return replace(gang, leaving=tuple(leaving))


def _moved(gang: Gang, nodes: dict[int, str]) -> Gang:
    placement = tuple(nodes.get(rank, node) for rank, node in enumerate(gang.placement or ()))
    return replace(gang, placement=placement)


def _mended(gang: Gang) -> Gang:
    """The time since when it lacks replicas is over once it lacks none."""
    if gang.run is None or gang.run.lost_at is None or gang.lost:
        return gang
    return replace(gang, run=replace(gang.run, lost_at=None))
