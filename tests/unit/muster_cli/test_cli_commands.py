"""The commands, against servers that speak the shapes that the API promises."""

import json

import pytest
import yaml

from conftest import problem

JOB = {
    "namespace": "vision",
    "name": "digits",
    "uid": "u-1",
    "queue": "default",
    "phase": "Succeeded",
    "reason": "Completed",
    "message": "all replicas ended with 0",
    "replicas": 2,
    "gpus": 4,
    "attempt": 2,
    "submitted": "2026-01-01T00:00:00Z",
    "started": "2026-01-01T00:00:01Z",
    "finished": "2026-01-01T00:01:00Z",
    "progress": {"epoch": 2, "step": 40, "eta": None},
    "cost_micro_usd": 12_345_678,
}
DETAIL = JOB | {
    "user": "ada",
    "placement": {"nodes": ["n1", "n2"], "why": "4 GPUs on 2 nodes in rack r1"},
    "attempts": [
        {
            "attempt": 1,
            "decided_at": "2026-01-01T00:00:01Z",
            "running_at": "2026-01-01T00:00:03Z",
            "ended_at": "2026-01-01T00:00:30Z",
            "outcome": "Lost",
            "cause": "infrastructure",
            "message": "replica 1 was killed",
        }
    ],
    "conditions": [{"type": "Finished", "status": "True", "reason": "Completed"}],
    "restarts": {"infrastructure": 1, "user": 0},
    "checkpoint": {"latest": "c-2", "verified": "c-1", "step": 20},
}
EPOCHS = {
    "items": [
        {
            "epoch": 0,
            "attempts": [1, 2],
            "started": "2026-01-01T00:00:05Z",
            "finished": "2026-01-01T00:00:09Z",
            "seconds": 4.0,
            "gpu_seconds": 16.0,
            "micro_usd": 11_111,
            "cost": "$0.011111",
            "metrics": {"accuracy": 0.954, "loss": "NaN"},
        }
    ]
}
COST = {
    "job": "digits",
    "total_micro_usd": 12_345_678,
    "gpu_seconds": 40.5,
    "lines": [
        {"key": "1", "class": "startup", "gpu_seconds": 24.5, "micro_usd": 12_334_567},
        {"key": "0", "class": "epoch", "gpu_seconds": 16.0, "micro_usd": 11_111},
    ],
    "priced": True,
    "simulated": True,
}
QUEUE = {
    "name": "default",
    "parent": None,
    "limit": {"H100": 8, "A100": 4},
    "usage": {"H100": 4},
    "pending_gpus": 16,
}
MANIFEST = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: script}
data: {train.py: "print(1)"}
---
apiVersion: muster.dev/v1alpha1
kind: TrainingJob
metadata: {name: digits}
spec: {replicas: 2}
"""
ONE = "/api/v1/namespaces/vision/jobs/digits"
CONFIG_MAPS = {"resources": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True}]}


@pytest.fixture
def served(api):
    api.on("GET /api/v1/jobs", {"items": [JOB]})
    api.on(f"GET {ONE}", DETAIL)
    api.on(f"GET {ONE}/epochs", EPOCHS)
    api.on(f"GET {ONE}/cost", COST)
    api.on(f"DELETE {ONE}", {})
    api.on("GET /api/v1/queues", {"items": [QUEUE]})
    api.on("POST /api/v1/jobs", JOB, 201)
    return api


def test_jobs_are_a_table(muster, served):
    found = muster("jobs")

    heading, row = found.out.splitlines()
    assert (0, "") == (found.code, found.err)
    assert "NAME QUEUE PHASE REPLICAS GPUS EPOCH COST AGE REASON" == " ".join(heading.split())
    assert row.split()[:7] == ["digits", "default", "Succeeded", "2", "4", "2", "$12.35"]


def test_jobs_are_those_of_the_contexts_namespace(muster, served):
    muster("jobs")

    assert {"namespace": "vision"} == served.requests[-1].query
    assert "Bearer secret" == served.requests[-1].token


def test_jobs_of_all_namespaces_say_which(muster, served):
    found = muster("jobs", "-A")

    assert {} == served.requests[-1].query
    assert found.out.startswith("NAMESPACE")


def test_all_pages_of_jobs_are_read(muster, api):
    api.script(
        "GET /api/v1/jobs", {"items": [JOB], "next": "1-a"}, {"items": [JOB | {"name": "old"}]}
    )

    found = json.loads(muster("jobs", "-o", "json").out)

    assert ["digits", "old"] == [item["name"] for item in found["items"]]
    assert {"namespace": "vision", "after": "1-a"} == api.requests[-1].query


def test_no_jobs_are_an_empty_answer_and_a_hint(muster, api):
    api.on("GET /api/v1/jobs", {"items": []})

    found = muster("jobs", "-n", "audio")

    assert 0 == found.code
    assert found.err.startswith("There are no jobs in namespace audio")


PRINTED = {
    ("jobs",): {"items": [JOB]},
    ("describe", "digits"): DETAIL | {"epochs": EPOCHS["items"], "cost": COST},
    ("cost", "digits"): COST,
    ("queues",): {"items": [QUEUE]},
}


@pytest.mark.parametrize("command", PRINTED, ids=" ".join)
def test_json_is_the_answer_alone(command, muster, served):
    found = muster(*command, "-o", "json")

    assert (0, "", PRINTED[command]) == (found.code, found.err, json.loads(found.out))


@pytest.mark.parametrize("command", PRINTED, ids=" ".join)
def test_yaml_is_the_same(command, muster, served):
    assert PRINTED[command] == yaml.safe_load(muster(*command, "-o", "yaml").out)


def test_describe_tells_all_about_a_job(muster, served, kube):
    kube.on(
        "GET /api/v1/namespaces/vision/events",
        {
            "items": [
                {
                    "metadata": {"name": "e", "creationTimestamp": "2026-01-01T00:00:01Z"},
                    "type": "Normal",
                    "reason": "Placed",
                    "message": "4 GPUs on 2 nodes",
                }
            ],
            "metadata": {},
        },
    )

    found = muster("describe", "digits")

    assert (0, "") == (found.code, found.err)
    for said in (
        "vision/digits",
        "Completed: all replicas ended with 0",
        "n2",
        "replica 1 was killed",
        "accuracy 0.954, loss NaN",
        "verified c-1, latest c-2, step 20",
        "1 infrastructure",
        "Placed",
        "simulated",
    ):
        assert said in found.out


def test_describe_goes_without_events_where_the_cluster_is_away(muster, served):
    found = muster("describe", "digits")

    assert 0 == found.code
    assert found.err.startswith("warning: no events")
    assert "Events" not in found.out


def test_each_line_of_a_bill_says_what_it_is_for(muster, served):
    first, second = muster("cost", "digits").out.splitlines()[1:3]

    assert first.startswith("attempt 1, startup")
    assert second.startswith("epoch 0 ")


def test_the_cost_adds_up_and_says_that_it_is_simulated(muster, served):
    found = muster("cost", "digits", "--by", "attempt")

    assert {"by": "attempt"} == served.requests[-1].query
    assert ["total", "40.5", "$12.35"] == found.out.splitlines()[-2].split()
    assert "simulated" in found.out.splitlines()[-1]


def test_gpu_time_without_a_price_is_said(muster, served):
    served.on(f"GET {ONE}/cost", COST | {"priced": False, "total_micro_usd": None})

    found = muster("cost", "digits")

    assert "no price" in found.out
    assert "unpriced" in found.out


def test_the_cost_of_a_namespace_is_its_jobs(muster, served):
    found = json.loads(muster("cost", "-o", "json").out)

    assert 12_345_678 == found["total_micro_usd"]
    assert ["digits"] == [item["name"] for item in found["items"]]


def test_queues_show_amounts_by_model(muster, served):
    assert "4 A100, 8 H100" in muster("queues").out


def test_cancel_deletes_the_job(muster, served):
    found = muster("cancel", "digits")

    assert (0, "", "vision/digits is cancelled\n") == (found.code, found.out, found.err)
    assert [f"DELETE {ONE}"] == served.asked("DELETE")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "digits.yaml"
    path.write_text(MANIFEST)
    return path


def test_submit_checks_first_applies_the_rest_then_creates(muster, served, kube, file):
    kube.on("GET /api/v1", CONFIG_MAPS)
    kube.on("PATCH /api/v1/namespaces/vision/configmaps/script", {})

    found = muster("submit", str(file))

    assert (0, "") == (found.code, found.out)
    assert "configmaps/script applied\nvision/digits submitted\n" == found.err
    assert ["true", None] == [r.query.get("dryRun") for r in served.requests]
    assert ["All", None] == [r.query.get("dryRun") for r in kube.requests if r.method == "PATCH"]
    assert "digits" == served.requests[-1].body["metadata"]["name"]


def test_a_job_that_is_refused_leaves_nothing(muster, served, kube, file):
    errors = [{"field": "spec.replicas", "problem": "must be at least 1, is 0"}]
    served.on("POST /api/v1/jobs", problem(422, "the job is not valid", errors), 422)

    found = muster("submit", str(file))

    assert (2, "muster: spec.replicas: must be at least 1, is 0\n") == (found.code, found.err)
    assert [] == kube.requests
    assert 1 == len(served.requests)


def test_an_object_that_is_refused_leaves_nothing(muster, served, kube, file):
    kube.on("GET /api/v1", CONFIG_MAPS)
    kube.on(
        "PATCH /api/v1/namespaces/vision/configmaps/script",
        {"kind": "Status", "message": "ConfigMap is invalid: data: too long"},
        422,
    )

    found = muster("submit", str(file))

    assert 2 == found.code
    assert f"muster: {file}:1: ConfigMap is invalid: data: too long\n" == found.err
    assert ["true"] == [r.query.get("dryRun") for r in served.requests]


def test_a_kind_that_the_cluster_does_not_know_is_named(muster, served, kube, file):
    kube.on("GET /api/v1", {"resources": []})

    found = muster("submit", str(file))

    assert 2 == found.code
    assert "kind: the cluster knows no ConfigMap in v1" in found.err


def test_submit_follows_to_the_end(muster, served, tmp_path):
    file = tmp_path / "job.yaml"
    file.write_text(MANIFEST.split("---\n")[1])

    found = muster("submit", str(file), "--follow", "-o", "json")

    assert 0 == found.code
    assert "epoch 0: 4.0s, 16.0 GPU-seconds, $0.011111, accuracy 0.954" in found.err
    assert [DETAIL] == json.loads(found.out)["items"]


def test_following_a_job_that_fails_ends_with_1(muster, served, tmp_path):
    served.on(f"GET {ONE}", DETAIL | {"phase": "Failed", "message": "ValueError: no data"})
    file = tmp_path / "job.yaml"
    file.write_text(MANIFEST.split("---\n")[1])

    found = muster("submit", str(file), "--follow")

    assert 1 == found.code
    assert (
        "muster: vision/digits ended as Failed: ValueError: no data; see: muster logs"
        in (found.err.splitlines()[-1])
    )


MISTAKES = {
    "no such file": (("submit", "no.yaml"), 2, "no.yaml: No such file or directory"),
    "an unknown option": (("jobs", "--no"), 2, "No such option: --no"),
    "an unknown command": (("jbs",), 2, "No such command 'jbs'"),
    "a missing name": (("describe",), 2, "Missing argument"),
    "rank and replica": (
        ("logs", "digits", "--rank", "1", "--replica", "1"),
        2,
        "--rank: names a",
    ),
    "--by without a job": (("cost", "--by", "attempt"), 2, "--by: says how"),
    "an unknown context": (("jobs", "--context", "no"), 2, "--context: there is no context 'no'"),
    "an unknown job": (("describe", "no"), 2, "there is no /api/v1/namespaces/vision/jobs/no"),
}


@pytest.mark.parametrize("claim", MISTAKES)
def test_a_mistake_is_one_line(claim, muster, api):
    command, code, message = MISTAKES[claim]

    found = muster(*command)

    assert (code, "", 1) == (found.code, found.out, len(found.err.splitlines()))
    assert message in found.err


STATUSES = {401: 2, 403: 2, 404: 2, 409: 2, 422: 2, 429: 3, 500: 3, 503: 3}


@pytest.mark.parametrize("status", STATUSES)
def test_an_answer_of_the_api_becomes_an_exit_code(status, muster, api):
    api.on("GET /api/v1/jobs", problem(status, "this is why"), status)

    found = muster("jobs")

    assert (STATUSES[status], "") == (found.code, found.out)
    assert "this is why" in found.err


def test_an_api_that_is_away_is_3(muster, monkeypatch):
    monkeypatch.setenv("MUSTER_API_URL", "http://127.0.0.1:1")

    found = muster("jobs")

    assert 3 == found.code
    assert "the Muster API at http://127.0.0.1:1 does not answer" in found.err


def test_something_else_at_that_address_is_told(muster, api):
    api.on("GET /api/v1/jobs", b"<html>", 502)

    found = muster("jobs")

    assert 3 == found.code
    assert "502" in found.err


@pytest.mark.parametrize("group", [(), ("local",), ("bench",)], ids=str)
def test_a_group_alone_prints_its_help(group, muster):
    found = muster(*group)

    assert (0, "", True) == (found.code, found.err, "Commands:" in found.out)
