"""The knobs of the algorithm, as one frozen value."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Policy:
    """How the scheduler decides where `scheduling.md` leaves a choice. The operator's settings carry the same names."""

    max_explained: int = 1000
    """Pending gangs whose reason is worked out anew in one cycle; the others keep the one they had."""
