"""The knobs of the algorithm, as one frozen value."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Policy:
    """How the scheduler decides where the policy leaves a choice."""

    max_explained: int = 10_000
    """Different questions that are answered with a reason in one cycle, about 0.1 ms each.

    Gangs that ask a further one get no decision and keep the reason that they had. Equal jobs of
    a queue ask the same question.
    """
