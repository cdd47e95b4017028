"""What a node takes on, and what it says about it."""

from typing import Any

import pytest

from muster_local.nodes.admission import Refusal, refusal, without_effect
from muster_local.nodes.container import Rules
from muster_local.nodes.devices import Holdings
from muster_local.nodes.status import (
    ContainerView,
    Running,
    Terminated,
    Waiting,
    phase_of,
    status_of,
)
from muster_local.nodes.table import NodeEntry

NODE = NodeEntry("n", gpus=4, cpus=2, memory_bytes=2**30, pods=3)


def _pod(uid: str = "u", gpus: int = 0, **spec: Any) -> dict[str, Any]:
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    container = {
        "name": "main",
        "image": "any",
        "command": ["true"],
        "resources": {"limits": limits},
    }
    return {
        "metadata": {"name": uid, "namespace": "ns", "uid": uid, "generation": 2},
        "spec": {"containers": [container], **spec},
    }


def test_devices_are_given_out_once_and_come_back() -> None:
    holdings = Holdings()
    assert holdings.take(_pod("a", 2), NODE) == {"main": [0, 1]}
    assert holdings.take(_pod("b", 1), NODE) == {"main": [2]}
    refused = holdings.take(_pod("c", 2), NODE)
    assert isinstance(refused, Refusal)
    assert refused.reason == "OutOfnvidia.com/gpu"
    assert "requested: 2, used: 3, capacity: 4" in refused.message
    holdings.give_back("a")
    assert holdings.take(_pod("c", 2), NODE) == {"main": [0, 1]}
    holdings.give_back("unknown")


def test_containers_of_a_pod_hold_different_devices_and_share_with_init_containers() -> None:
    pod = _pod("a", 1)
    resources = {"limits": {"nvidia.com/gpu": "2"}}
    pod["spec"]["containers"].append({"name": "more", "command": ["x"], "resources": resources})
    pod["spec"]["initContainers"] = [{"name": "first", "command": ["x"], "resources": resources}]
    assert Holdings().take(pod, NODE) == {"first": [0, 1], "main": [0], "more": [1, 2]}


def test_what_was_held_before_a_restart_is_held_again() -> None:
    holdings = Holdings()
    holdings.restore(_pod("a", 2), {"main": [2, 3]})
    assert holdings.take(_pod("b", 2), NODE) == {"main": [0, 1]}


MISFITS = {
    "too many pods": ({"pods": 0}, {}, "OutOfpods"),
    "too little processor": ({"cpus": 1}, {"cpu": "1500m"}, "OutOfcpu"),
    "too little memory": ({"memory_bytes": 10}, {"memory": "1Ki"}, "OutOfmemory"),
    "what is no quantity": ({}, {"memory": "much"}, "UnexpectedAdmissionError"),
}


@pytest.mark.parametrize("claim", MISFITS)
def test_a_pod_that_does_not_fit_is_refused_as_a_kubelet_would(claim: str) -> None:
    node, requests, want = MISFITS[claim]
    pod = _pod()
    pod["spec"]["containers"][0]["resources"] = {"requests": requests}
    refused = Holdings().take(pod, NodeEntry("n", **node))
    assert isinstance(refused, Refusal)
    assert refused.reason == want


def test_only_what_a_process_can_be_is_run() -> None:
    assert refusal(_pod(volumes=[{"name": "v", "emptyDir": {}}])) is None
    claimed = refusal(_pod(volumes=[{"name": "v", "nfs": {"server": "s"}}]))
    assert claimed
    assert (claimed.reason, "nfs" in claimed.message) == ("UnsupportedVolume", True)
    pod = _pod()
    del pod["spec"]["containers"][0]["command"]
    refused = refusal(pod)
    assert refused
    assert refused.reason == "NoCommand"


def test_what_has_no_effect_is_named() -> None:
    pod = _pod(securityContext={"runAsUser": 1})
    pod["spec"]["containers"][0] |= {
        "livenessProbe": {"exec": {}},
        "resources": {"limits": {"cpu": "1"}},
    }
    assert without_effect(pod) == ("limits.cpu", "livenessProbe", "securityContext")


RULES = {
    "never": ({"restartPolicy": "Never"}, {}, False, (False, False)),
    "on failure": ({"restartPolicy": "OnFailure"}, {}, False, (False, True)),
    "always, which is the default": ({}, {}, False, (True, True)),
    "an init container ends after success": ({}, {}, True, (False, True)),
    "a sidecar never ends": ({}, {"restartPolicy": "Always"}, True, (True, True)),
    "a container's own policy counts": (
        {"restartPolicy": "Never"},
        {"restartPolicy": "OnFailure"},
        False,
        (False, True),
    ),
}


@pytest.mark.parametrize("claim", RULES)
def test_restart_policies(claim: str) -> None:
    spec, container, is_init, want = RULES[claim]
    rules = Rules.of(_pod(**spec), container, is_init=is_init, pause_seconds=10)
    assert (rules.restarts_after(0), rules.restarts_after(1)) == want


def test_pauses_double_up_to_five_minutes() -> None:
    rules = Rules.of(_pod(), {}, is_init=False, pause_seconds=10)
    pauses = [rules.pause_before(restart) for restart in range(1, 9)]
    assert pauses == [0, 10, 20, 40, 80, 160, 300, 300]
    assert rules.pause_before(10_000) == 300


def _view(state: Any, **fields: Any) -> ContainerView:
    return ContainerView("main", "any", state, **fields)


OK, BAD = Terminated(0), Terminated(1, reason="Error")
PHASES = {
    "nothing started": ([_view(Waiting())], False, "Pending"),
    "runs": ([_view(Running(1.0))], False, "Running"),
    "one still starts": ([_view(Running(1.0)), _view(Waiting())], False, "Pending"),
    "waits for its next try": ([_view(Waiting("CrashLoopBackOff"), last=BAD)], False, "Running"),
    "an init container runs": (
        [_view(Running(1.0), is_init=True), _view(Waiting())],
        False,
        "Pending",
    ),
    "an init container waits for its next try": (
        [_view(Waiting(), last=BAD, is_init=True), _view(Waiting())],
        False,
        "Pending",
    ),
    "all ended well": ([_view(OK), _view(OK)], True, "Succeeded"),
    "one failed": ([_view(OK), _view(BAD)], True, "Failed"),
    "a sidecar's end does not count": (
        [_view(BAD, is_init=True, is_sidecar=True), _view(OK)],
        True,
        "Succeeded",
    ),
    "stopped before it started": ([_view(Waiting())], True, "Failed"),
}


@pytest.mark.parametrize("claim", PHASES)
def test_the_phase_follows_from_the_containers(claim: str) -> None:
    views, is_over, want = PHASES[claim]
    assert phase_of(views, is_over=is_over) == want


def test_conditions_keep_their_times_and_those_of_others_stay() -> None:
    pod = _pod() | {
        "status": {
            "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": "then"},
                {"type": "Initialized", "status": "False", "lastTransitionTime": "then"},
                {"type": "DisruptionTarget", "status": "True"},
            ]
        }
    }
    status = status_of(pod, [_view(Running(1.0))], now=2.0, started_at=0.0)
    conditions = {each["type"]: each for each in status["conditions"]}
    assert conditions["Ready"]["lastTransitionTime"] == "then"
    assert conditions["Initialized"]["lastTransitionTime"] == "1970-01-01T00:00:02Z"
    assert conditions["DisruptionTarget"] == {"type": "DisruptionTarget", "status": "True"}
    assert status["observedGeneration"] == 2


def test_a_refused_pod_says_why() -> None:
    refused = Refusal("OutOfpods", "no room")
    status = status_of(_pod(), [], now=1.0, started_at=1.0, refusal=refused)
    assert (status["phase"], status["reason"], status["message"]) == (
        "Failed",
        "OutOfpods",
        "no room",
    )


def test_how_a_container_ended_is_told_in_full() -> None:
    ended = Terminated(139, 11, "Error", "why", 1.0, 2.0, "u/main/0")
    views = [_view(Waiting("CrashLoopBackOff", "later"), last=ended, restarts=1)]
    told = status_of(_pod(), views, now=3.0, started_at=0.0)["containerStatuses"][0]
    assert told["state"] == {"waiting": {"reason": "CrashLoopBackOff", "message": "later"}}
    assert told["lastState"]["terminated"] == {
        "exitCode": 139,
        "signal": 11,
        "reason": "Error",
        "message": "why",
        "startedAt": "1970-01-01T00:00:01Z",
        "finishedAt": "1970-01-01T00:00:02Z",
        "containerID": "process://u/main/0",
    }
