"""What the SDK raises; each message is one line that a person can act on."""

from muster.errors import Conflict, MusterError


class StoreRefused(MusterError):
    """The checkpoint URI cannot be used: unknown, unwritable, or unable to create exclusively."""


class SaveFailed(MusterError):
    """A save was given up; its parts are removed and earlier checkpoints stand."""


class RestoreFailed(MusterError):
    """There is work to resume, and it cannot be resumed."""


class StaleRound(Conflict):
    """A later round of this job has begun, so this process must end and save nothing more."""
