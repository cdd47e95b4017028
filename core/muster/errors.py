"""The one tree of errors.

    MusterError
    ├── InvalidSpec      what somebody wrote is wrong; carries the path of the field
    ├── NotFound         it does not exist
    ├── Forbidden        it exists, but not for you
    ├── Unauthorized     we do not know who you are
    ├── Conflict         somebody was faster, or it is in the wrong state for this
    └── Unavailable      something that is needed does not answer

They are mapped in named places only: `muster_api.errors` to HTTP, `muster_cli.errors` to exit
codes. A message names the field or thing, says what is wrong and how to mend it, in one line.
"""


class MusterError(Exception):
    """An expected failure whose message a person may read as it is."""


class InvalidSpec(MusterError):
    """A value that cannot be accepted. `path` is the field as in YAML: `spec.replicas`."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}" if path else problem)
        self.path = path
        self.problem = problem


class NotFound(MusterError):
    """The thing named does not exist."""


class Unauthorized(MusterError):
    """No valid credentials were given."""


class Forbidden(MusterError):
    """The caller is known, and may not do this."""


class Conflict(MusterError):
    """The state of the thing does not allow this now."""


class Unavailable(MusterError):
    """A service that is needed cannot be reached."""
