"""Who leaves so that a gang can start: the set that costs least, topology included.

A set is ranked by the work that is lost, then by the jobs that it disturbs, the GPUs that it
frees, the priorities, the latest starts and the names. Where there are few sets all of them are
looked at, so that the choice is the best there is; where there are many, `gathering` comes close.
"""

from collections.abc import Sequence
from itertools import product

from muster.scheduling.gathering import Scheme, gathered, scheme_of
from muster.scheduling.ground import Ground, all_of
from muster.scheduling.quota import Quotas
from muster.scheduling.rights import Claims, Option
from muster.scheduling.room import Field
from muster.scheduling.tree import natural

_ALL_LOOKED_AT = 1024
"""Sets of victims up to which the choice is exact."""

Choices = Sequence[Sequence[Option]]
"""The options of each holder, the lesser ones first, of which one may be taken."""


def cheapest(
    choices: Choices, claims: Claims, ground: Ground, quotas: Quotas, most: Field
) -> Scheme | None:
    """The cheapest allowed set; `None` if no set that was looked at makes room. *most* is the room
    that any set could make, at most.
    """
    everything = all_of(choices)
    if not ground.keeps_limits(everything) or not ground.fits(everything):
        return None
    number = 1
    for options in choices:
        number *= len(options) + 1
    if number <= _ALL_LOOKED_AT:
        return _best_of_all(choices, claims, ground)
    schemes = gathered(choices, claims, ground, quotas, most)
    return min(schemes, key=lambda scheme: rank_of(scheme.options), default=None)


def rank_of(options: Sequence[Option]) -> tuple[object, ...]:
    """What sets of victims are compared by; lower is better."""
    holders = [option.holder for option in options]
    return (
        sum(option.price for option in options),
        len(holders),
        sum(option.all_gpus for option in options),
        sorted((holder.gang.priority for holder in holders), reverse=True),
        sorted(-holder.started for holder in holders),
        sorted((natural(holder.key), holder.key) for holder in holders),
    )


def _best_of_all(choices: Choices, claims: Claims, ground: Ground) -> Scheme | None:
    sets = [
        tuple(option for option in combination if option is not None)
        for combination in product(*[(None, *options) for options in choices])
    ]
    for options in sorted(sets, key=rank_of):
        if not ground.keeps_limits(options):
            continue
        rights = claims.of(options)
        scheme = None if rights is None else scheme_of(options, rights, ground)
        if scheme is not None:
            return scheme
    return None
