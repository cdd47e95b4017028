"""What a training process reads from its environment."""

import pytest

from muster.errors import InvalidSpec
from muster_sdk.settings import Settings, settings_of

IN_JOB = {
    "MUSTER_NAMESPACE": "vision",
    "MUSTER_JOB": "digits",
    "MUSTER_JOB_UID": "uid",
    "MUSTER_ATTEMPT": "2",
    "MUSTER_ROUND": "1",
    "MUSTER_REPLICA": "1",
    "MUSTER_API_URL": "http://api:8080/",
    "PET_NNODES": "2",
}

CASES: dict[str, tuple[dict[str, str], Settings]] = {
    "outside a job there is nothing": ({}, Settings()),
    "in a job, without torchrun, the replica is the rank": (
        IN_JOB,
        Settings(
            namespace="vision",
            job="digits",
            job_uid="uid",
            attempt=2,
            round=1,
            replica=1,
            api_url="http://api:8080",
            rank=1,
            world_size=2,
        ),
    ),
    "torchrun knows better": (
        {"MUSTER_REPLICA": "1", "RANK": "5", "WORLD_SIZE": "8", "PET_NNODES": "2"},
        Settings(replica=1, rank=5, world_size=8),
    ),
    "an empty variable is none": ({"MUSTER_REPLICA": "", "MUSTER_TOKEN_FILE": ""}, Settings()),
}


@pytest.mark.parametrize("claim", CASES)
def test_settings(claim: str) -> None:
    environ, want = CASES[claim]

    assert want == settings_of(environ)


def test_a_wrong_number_is_named() -> None:
    with pytest.raises(InvalidSpec) as refused:
        settings_of({"MUSTER_ATTEMPT": "two"})

    assert "MUSTER_ATTEMPT: must be a whole number, is 'two'" == str(refused.value)
