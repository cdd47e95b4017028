"""Settings are read once, and what is no setting stops the start."""

from pathlib import Path

import pytest

from muster.errors import InvalidSpec
from muster_operator.settings import Settings, settings_from


def test_without_variables_the_defaults_hold() -> None:
    assert Settings() == settings_from({})


def test_each_kind_of_value_is_read() -> None:
    environment = {
        "MUSTER_HTTP_PORT": "0",
        "MUSTER_HAS_SCHEDULER": "True",
        "MUSTER_RECORDER_WAIT": "2m",
        "MUSTER_QUIET": "20ms",
        "MUSTER_API_URL": "http://api",
        "MUSTER_RETRY_FIRST": "1.5",
        "KUBECONFIG": "/k",
    }
    got = settings_from(environment)

    assert (0, True, 120.0, 0.02, "http://api", 1.5, Path("/k")) == (
        got.http_port,
        got.has_scheduler,
        got.recorder_wait,
        got.quiet,
        got.api_url,
        got.retry_first,
        got.kubeconfig,
    )


WRONG = {
    "a variable that is none": ("MUSTER_RECORDER_WAITS", "30s", "MUSTER_RECORDER_WAIT"),
    "a duration without sense": ("MUSTER_RECORDER_WAIT", "soon", "write it as 30s"),
    "a flag without sense": ("MUSTER_HAS_SCHEDULER", "maybe", "write true or false"),
    "a number that is none": ("MUSTER_HTTP_PORT", "http", "http"),
    "the cluster by the wrong name": ("MUSTER_KUBECONFIG", "/k", "no setting"),
}


@pytest.mark.parametrize("claim", WRONG)
def test_stops_the_start_with_its_name(claim: str) -> None:
    variable, text, words = WRONG[claim]
    with pytest.raises(InvalidSpec) as caught:
        settings_from({variable: text})

    assert variable in str(caught.value)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "variable",
    [
        "MUSTER_JOB",
        "MUSTER_HOME",
        "MUSTER_CACHE",
        "MUSTER_API_SERVICE_HOST",
        "MUSTER_API_PORT_8080_TCP_ADDR",
        "PATH",
    ],
)
def test_variables_of_others_are_none_of_our_business(variable: str) -> None:
    assert Settings() == settings_from({variable: "x"})


def test_pauses_and_knobs_come_from_the_settings() -> None:
    settings = Settings(retry_first=1.0, recorder_wait=7.0, max_explained=9)

    assert (1.0, 0.0, 7.0, 9) == (
        settings.rules.refused.pause(1),
        settings.rules.restart.pause(1),
        settings.rules.recorder_wait,
        settings.policy.max_explained,
    )
