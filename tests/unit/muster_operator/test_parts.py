"""The small parts: ports, log lines, objections, and what is a refusal."""

import pytest

from muster.parse import QueueAccess, job_of
from muster.scheduling.snapshot import Level
from muster_kube import (
    AlreadyExists,
    ApiError,
    ApiForbidden,
    ApiNotFound,
    ApiUnauthorized,
    ApiUnreachable,
    Invalid,
    StaleVersion,
    TooManyRequests,
)
from muster_operator.answers import is_gone, is_refusal
from muster_operator.objections import objection_to
from muster_operator.ports import free_port
from muster_operator.settings import Settings
from muster_operator.telling import line

SETTINGS = Settings(port_first=100, port_count=3)


def test_live_gangs_have_different_ports() -> None:
    taken: set[int] = set()
    for uid in ("a", "b", "c"):
        taken.add(free_port(SETTINGS, uid, 1, taken))

    assert {100, 101, 102} == taken


def test_with_none_left_there_is_still_one() -> None:
    assert free_port(SETTINGS, "a", 1, {100, 101, 102}) in (100, 101, 102)


def test_the_next_attempt_meets_elsewhere() -> None:
    settings = Settings()

    assert free_port(settings, "a", 1, set()) != free_port(settings, "a", 2, set())
    assert free_port(settings, "a", 1, set()) == free_port(settings, "a", 1, set())


def test_log_lines_can_be_taken_apart() -> None:
    got = line("admitted", job="ns/a", seconds=0.12345, why='on "n1"', none="")

    assert 'admitted job=ns/a seconds=0.123 why="on \\"n1\\"" none=""' == got


REFUSALS = {
    "a quota": (ApiForbidden("exceeded quota", status=403), True),
    "a pod that is not valid": (Invalid("no", status=422), True),
    "a name that is taken": (AlreadyExists("there", status=409), True),
    "a bad request": (ApiError("no", status=400), True),
    "a busy server": (TooManyRequests("later", status=429), False),
    "a broken webhook": (ApiError("failed calling webhook", status=500), False),
    "no answer": (ApiUnreachable("gone"), False),
    "a token that has just expired": (ApiUnauthorized("no", status=401), False),
    "somebody who was faster": (StaleVersion("changed", status=409), False),
    "a namespace that is not there": (ApiNotFound("no", status=404), True),
    "roles that are not read yet": (
        ApiForbidden('pods is forbidden: User "me" cannot create resource "pods"', status=403),
        False,
    ),
}


@pytest.mark.parametrize("claim", REFUSALS)
def test_is_a_refusal(claim: str) -> None:
    error, want = REFUSALS[claim]

    assert want == is_refusal(error)


def test_only_the_object_itself_can_be_gone() -> None:
    gone = ApiNotFound('trainingjobs.muster.dev "train" not found', status=404)
    unserved = ApiNotFound("the server could not find the requested resource", status=404)

    assert is_gone(gone, "train")
    assert not is_gone(gone, "other")
    assert not is_gone(unserved, "train")
    assert not is_gone(ApiError("no", status=500), "train")


QUEUES = {
    "default": QueueAccess("default"),
    "private": QueueAccess("private", namespaces=("other",)),
    "mine": QueueAccess("mine", users=("me",)),
}
OBJECTIONS = {
    "none": ({}, None),
    "a queue that is not there": ({"queue": "x"}, "UnknownQueue"),
    "a queue of other namespaces": ({"queue": "private"}, "QueueForbidden"),
    "a queue of other users": ({"queue": "mine"}, "QueueForbidden"),
    "a level that is there": ({"topology": {"required": "rack"}}, None),
    "the node as a level": ({"topology": {"preferred": "node"}}, None),
    "a required level that is not": ({"topology": {"required": "x"}}, "UnknownTopologyLevel"),
    "a preferred one": ({"topology": {"preferred": "x"}}, "UnknownTopologyLevel"),
    "one for parts": (
        {"topology": {"perPart": {"size": 2, "required": "x"}}},
        "UnknownTopologyLevel",
    ),
    "gpus that differ": (
        {"gpusPerReplica": 1, "limits": {"nvidia.com/gpu": "2"}},
        "UnsupportedTemplate",
    ),
    "a scheduler of its own": ({"schedulerName": "mine"}, "UnsupportedTemplate"),
    "a volume that binds": (
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]},
        "UnsupportedTemplate",
    ),
}


@pytest.mark.parametrize("claim", OBJECTIONS)
def test_what_speaks_against_a_job(claim: str) -> None:
    given, want = OBJECTIONS[claim]
    spec = dict(given)
    container = {"name": "c", "resources": {"limits": spec.pop("limits", {})}}
    pod = {"containers": [container]}
    pod |= {k: spec.pop(k) for k in ("schedulerName", "volumes") if k in spec}
    raw = {
        "metadata": {"name": "train", "namespace": "team"},
        "spec": {"template": {"spec": pod}, **spec},
    }
    got = objection_to(job_of(raw), QUEUES, (Level("rack", "l"),), has_scheduler=False)

    assert want == (got and got.reason)


def test_with_a_scheduler_more_templates_can_be_run() -> None:
    claim = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    pod = {"containers": [{"name": "c"}], "volumes": [claim]}
    job = job_of({"metadata": {"name": "a"}, "spec": {"template": {"spec": pod}}})

    assert objection_to(job, QUEUES, (), has_scheduler=True) is None
