import pytest

from muster_cli import text

SECONDS = {
    None: "–",
    0: "0.0s",
    4.24: "4.2s",
    42.4: "42s",
    60: "1m",
    192: "3m12s",
    7500: "2h5m",
    86400 * 3 + 3600 * 4: "3d4h",
}


@pytest.mark.parametrize("value", SECONDS)
def test_a_duration_has_at_most_two_units(value):
    assert SECONDS[value] == text.seconds(value)


SIZES = {None: "–", 0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 2**40: "1.0 TiB"}


@pytest.mark.parametrize("value", SIZES)
def test_a_size_has_a_binary_unit(value):
    assert SIZES[value] == text.size(value)


def test_the_time_between_two_instants():
    assert 1.5 == text.between("2026-01-01T00:00:00Z", "2026-01-01T00:00:01.500Z")
    assert text.between("2026-01-01T00:00:00Z", None) is None


GANGS = {
    "one of each": ({"replicas": 1, "gpus": 1}, "1 replica, 1 GPU"),
    "several, none placed": ({"replicas": 3, "gpus": 0}, "3 replicas, 0 GPUs"),
    "whole": (
        {"replicas": 2, "gpus": 4, "placement": {"nodes": ["a", "b"]}},
        "2 replicas, 4 GPUs",
    ),
    "elastic and smaller": (
        {"replicas": 3, "gpus": 24, "placement": {"nodes": ["a", "b"]}},
        "3 replicas, 24 GPUs; runs with 2",
    ),
}


@pytest.mark.parametrize("claim", GANGS)
def test_a_gang_is_told_with_what_it_runs_with(claim):
    job, said = GANGS[claim]

    assert said == text.gang(job)
