"""What the platform tells a training process through its environment."""

from collections.abc import Mapping
from dataclasses import dataclass

from muster import wire
from muster.errors import InvalidSpec


@dataclass(frozen=True, slots=True)
class Settings:
    """Read once by `init()`. Everything is empty or zero outside a job."""

    namespace: str = ""
    job: str = ""
    job_uid: str = ""
    attempt: int = 0
    round: int = 0
    replica: int = 0
    """The replica, and so the pod, that this process is part of."""
    api_url: str = ""
    token_file: str = wire.TOKEN_PATH
    """Holds the token with which to report; read anew for each request, since it is rotated."""
    checkpoint_uri: str = ""
    termination_log: str = wire.TERMINATION_LOG_PATH
    """Where the line goes that the pod's status shows after a failure."""
    rank: int = 0
    """This process among all of the gang, as torchrun says; without torchrun, the replica."""
    world_size: int = 1

    @property
    def is_in_job(self) -> bool:
        """Whether Muster started this process."""
        return bool(self.job)


def settings_of(environ: Mapping[str, str]) -> Settings:
    """The settings in *environ*, or `InvalidSpec` with the variable that is wrong."""
    replica = _whole(environ, wire.ENV_REPLICA, 0)
    return Settings(
        namespace=environ.get(wire.ENV_NAMESPACE, ""),
        job=environ.get(wire.ENV_JOB, ""),
        job_uid=environ.get(wire.ENV_JOB_UID, ""),
        attempt=_whole(environ, wire.ENV_ATTEMPT, 0),
        round=_whole(environ, wire.ENV_ROUND, 0),
        replica=replica,
        api_url=environ.get(wire.ENV_API_URL, "").rstrip("/"),
        token_file=environ.get(wire.ENV_TOKEN_FILE) or wire.TOKEN_PATH,
        checkpoint_uri=environ.get(wire.ENV_CHECKPOINT_URI, ""),
        termination_log=environ.get(wire.ENV_TERMINATION_LOG) or wire.TERMINATION_LOG_PATH,
        rank=_whole(environ, "RANK", replica),
        world_size=_world_size(environ),
    )


def _world_size(environ: Mapping[str, str]) -> int:
    """As torchrun says; without it, the replicas, of which an elastic gang has `least:most`."""
    if environ.get("WORLD_SIZE"):
        return _whole(environ, "WORLD_SIZE", 1)
    name = wire.ENV_PET_NNODES
    return _whole({name: environ.get(name, "").partition(":")[0]}, name, 1)


def _whole(environ: Mapping[str, str], name: str, default: int) -> int:
    text = environ.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit()):
        raise InvalidSpec(name, f"must be a whole number, is {text!r}")
    return int(text)
