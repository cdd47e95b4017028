"""The knobs of the algorithm, as one frozen value."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Policy:
    """How the scheduler decides where the policy leaves a choice."""

    max_explained: int = 1000
    """Pending gangs whose reason is worked out anew in one cycle; others keep theirs."""
