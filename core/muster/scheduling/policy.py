"""The knobs of the algorithm, as one frozen value."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Policy:
    """How the scheduler decides where the policy leaves a choice. Times in seconds."""

    max_explained: int = 10_000
    """Different questions that are answered with a reason in one cycle, about 0.1 ms each.

    Gangs that ask a further one get no decision and keep the reason that they had. Equal jobs of
    a queue ask the same question.
    """
    reservation: bool = True
    """Hold capacity for the first gang that cannot start yet."""
    leaves_at_once: bool = False
    """Victims are gone in the instant in which they are chosen, as in a simulation without a
    notice period. Else a claim keeps what they free until they have left.
    """
    notice: float = 0.0
    """Between the request to checkpoint and the eviction."""
    usage_half_life: float = 0.0
    """After which held GPUs count half in shares; 0 counts only what is held now."""
    replace_failed_for: float = 60.0
    """How long a gang that lost nodes waits for replacements before it is requeued whole."""
    restart_time: float = 0.0
    """What a restart costs a victim besides the work since its last checkpoint."""
