"""Whether a gang fits under the quotas of its namespace."""

from typing import Any

import pytest

from muster_operator.quota import quota_of, readable, shortfall, times, usage_of


def quota(hard: dict[str, str], used: dict[str, str] | None = None, **spec: Any) -> Any:
    status = {"hard": hard, "used": used or {}}
    return quota_of({"metadata": {"name": "q"}, "spec": spec, "status": status})


def pod(requests: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {"containers": [{"resources": {"requests": requests or {}}}], **spec}


GPU = "requests.nvidia.com/gpu"
FITS = {
    "eight pods under a quota of eight": ([quota({"pods": "8"})], pod(), True),
    "eight under five": ([quota({"pods": "5"})], pod(), False),
    "eight beside one": ([quota({"pods": "8"}, {"pods": "1"})], pod(), False),
    "by object count": ([quota({"count/pods": "7"})], pod(), False),
    "gpus that are there": ([quota({GPU: "8"})], pod({"nvidia.com/gpu": "1"}), True),
    "gpus that are not": ([quota({GPU: "7"})], pod({"nvidia.com/gpu": "1"}), False),
    "no gpus wanted, none left": ([quota({GPU: "0"})], pod(), True),
    "half a core each": ([quota({"requests.cpu": "4"})], pod({"cpu": "500m"}), True),
    "a little more": ([quota({"requests.cpu": "4"})], pod({"cpu": "501m"}), False),
    "cpu by its short name": ([quota({"cpu": "3"})], pod({"cpu": "500m"}), False),
    "the tightest of two": ([quota({"pods": "9"}), quota({"pods": "5"})], pod(), False),
    "no quota at all": ([], pod(), True),
    "a quota for pods that end": ([quota({"pods": "1"}, scopes=["Terminating"])], pod(), True),
    "and one that does": (
        [quota({"pods": "1"}, scopes=["Terminating"])],
        pod(activeDeadlineSeconds=5),
        False,
    ),
    "a quota for pods that do not end": (
        [quota({"pods": "1"}, scopes=["NotTerminating"])],
        pod(),
        False,
    ),
    "a quota for best effort": ([quota({"pods": "1"}, scopes=["BestEffort"])], pod(), False),
    "not for those that ask": (
        [quota({"pods": "1"}, scopes=["BestEffort"])],
        pod({"cpu": "1"}),
        True,
    ),
    "a quota for those that ask": (
        [quota({"pods": "1"}, scopes=["NotBestEffort"])],
        pod({"cpu": "1"}),
        False,
    ),
    "a scope that we do not know is left to the server": (
        [quota({"pods": "1"}, scopes=["CrossNamespacePodAffinity"])],
        pod(),
        True,
    ),
}
CLASS = {"scopeName": "PriorityClass", "values": ["high"]}
for operator_, name, applies in (
    ("In", "high", True),
    ("In", "low", False),
    ("NotIn", "high", False),
    ("NotIn", "low", True),
    ("Exists", "low", True),
    ("Exists", "", False),
    ("DoesNotExist", "", True),
    ("DoesNotExist", "low", False),
    ("Unheard", "low", False),
):
    selector = {"matchExpressions": [{**CLASS, "operator": operator_}]}
    FITS[f"a priority class {operator_} {name}"] = (
        [quota({"pods": "1"}, scopeSelector=selector)],
        pod(priorityClassName=name),
        not applies,
    )


@pytest.mark.parametrize("claim", FITS)
def test_eight(claim: str) -> None:
    quotas, spec, fits = FITS[claim]

    assert fits == (shortfall(quotas, spec, 8, {}) is None)


def test_the_message_has_the_numbers() -> None:
    got = shortfall([quota({"pods": "5"}, {"pods": "1"})], pod(), 8, {"pods": 1000})

    assert (
        "exceeded quota: q, requested: pods=8 for 8 pods, used: pods=2, limited: pods=5"
    ) == got


def test_what_is_promised_to_another_gang_is_not_there() -> None:
    promised = times(usage_of(pod()), 5)

    assert shortfall([quota({"pods": "8"})], pod(), 3, promised) is None
    assert shortfall([quota({"pods": "8"})], pod(), 4, promised) is not None


USAGE = {
    "containers add up": (
        {"containers": [_c := {"resources": {"requests": {"cpu": "1"}}}, _c]},
        2000,
    ),
    "an init container counts alone": (
        {"containers": [_c], "initContainers": [{"resources": {"requests": {"cpu": "3"}}}]},
        3000,
    ),
    "a sidecar counts all the time": (
        {"containers": [_c], "initContainers": [{**_c, "restartPolicy": "Always"}]},
        2000,
    ),
    "and beside the init containers after it": (
        {
            "containers": [_c],
            "initContainers": [
                {**_c, "restartPolicy": "Always"},
                {"resources": {"requests": {"cpu": "2"}}},
            ],
        },
        3000,
    ),
    "overhead comes on top": ({"containers": [_c], "overhead": {"cpu": "250m"}}, 1250),
    "a limit stands for a request": (
        {"containers": [{"resources": {"limits": {"cpu": "2"}}}]},
        2000,
    ),
}


@pytest.mark.parametrize("claim", USAGE)
def test_of_the_usage_of_a_pod(claim: str) -> None:
    spec, millis = USAGE[claim]

    assert millis == usage_of(spec)["requests.cpu"] == usage_of(spec)["cpu"]


def test_a_quota_that_cannot_be_read_is_left_to_the_server() -> None:
    raw = {"metadata": {"name": "q"}, "status": {"hard": {"pods": "many"}}}

    assert readable(raw) is None
    assert readable({"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}}) == quota(
        {"pods": "1"}
    )
