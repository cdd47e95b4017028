"""Explanations and dry runs on the command line, as the API answers them."""

import json

import pytest
import yaml

from snapshot_files import MANIFEST

ONE = "/api/v1/namespaces/vision/jobs/digits"
EXPLANATION = {
    "job": "digits",
    "namespace": "vision",
    "source": "scheduler",
    "code": "TopologyUnsatisfied",
    "message": "needs 16 replicas in one rack; the roomiest, r1, holds 12",
    "queue_position": 2,
    "predicted_start": "2099-12-01T10:30:00Z",
    "waits_for": "vision/large",
    "changes": [
        {
            "change": "ask for 12 in place of 16 replicas",
            "starts": True,
            "edits": [
                {
                    "kind": "TrainingJob",
                    "name": "vision/digits",
                    "spec": {"replicas": 12, "minReplicas": 12},
                }
            ],
            "evicts": ["vision/small"],
        },
        {
            "change": "resume the job and raise the limit of queue team from 4 to 16 GPUs",
            "starts": True,
            "edits": [
                {"kind": "TrainingJob", "name": "vision/digits", "spec": {"suspend": False}},
                {"kind": "Queue", "name": "team", "spec": {"limit": 16}},
            ],
            "evicts": [],
        },
    ],
    "evicts": [],
}
DRY_RUN = {
    "job": "digits",
    "namespace": "vision",
    "verdict": "starts",
    "code": None,
    "message": "3 GPUs on 2 nodes in rack r1",
    "queue_position": None,
    "predicted_start": "2026-12-01T09:30:30Z",
    "waits_for": None,
    "placement": ["n1", "n1", "n2"],
    "victims": [
        {
            "job": "audio/old",
            "replicas": None,
            "right": "priority",
            "lost_gpu_seconds": 480,
            "micro_usd": 524_000,
            "cost": "$0.524000",
        }
    ],
    "delayed": [{"job": "audio/next", "from": "2026-12-01T10:00:00Z", "to": None}],
}


def problem(status, detail, errors=()):
    return {"type": "about:blank", "status": status, "detail": detail, "errors": list(errors)}


@pytest.fixture
def manifest(tmp_path):
    path = tmp_path / "digits.yaml"
    path.write_text(MANIFEST)
    return str(path)


@pytest.fixture
def served(api):
    api.on(f"GET {ONE}/explain", EXPLANATION)
    api.on("POST /api/v1/jobs/dry-run", DRY_RUN)
    return api


def test_an_explanation_is_read_from_top_to_bottom(muster, served):
    found = muster("explain", "digits")

    assert (0, "") == (found.code, found.err)
    rows = [" ".join(row.split()) for row in found.out.splitlines()]
    assert "vision/digits: TopologyUnsatisfied" == rows[0]
    assert "Why needs 16 replicas in one rack; the roomiest, r1, holds 12" == rows[1]
    assert "Position 2" == rows[2]
    assert rows[3].startswith("Starts 2099-12-01T10:30:00Z (in ")
    assert rows[3].endswith(", when vision/large ends")
    assert [
        "Would start it now, each alone:",
        "ask for 12 in place of 16 replicas",
        "evicts vision/small",
        'submit it again with {"replicas":12,"minReplicas":12}',
        "resume the job and raise the limit of queue team from 4 to 16 GPUs",
        'kubectl patch tj digits -n vision --type merge -p \'{"spec":{"suspend":false}}\'',
        'kubectl patch mq team --type merge -p \'{"spec":{"limit":16}}\'',
    ] == [row for row in rows[4:] if row]


def test_what_only_its_status_says_is_marked(muster, served):
    served.on(
        f"GET {ONE}/explain",
        EXPLANATION
        | {
            "source": "status",
            "changes": [],
            "predicted_start": None,
            "unknown_because": "it never ends",
        },
    )
    found = muster("explain", "digits").out

    assert "Starts     unknown: it never ends" in found
    assert "From the job's status" in found


def test_a_start_that_is_over_is_told_as_such(muster, served):
    served.on(f"GET {ONE}/explain", EXPLANATION | {"predicted_start": "2026-01-01T00:00:00Z"})

    assert "Started    2026-01-01T00:00:00Z" in muster("explain", "digits").out


def test_a_search_that_was_ended_is_told(muster, served):
    served.on(f"GET {ONE}/explain", EXPLANATION | {"changes_complete": False})

    assert "There was no time to try all changes." in muster("explain", "digits").out


def test_a_dry_run_creates_nothing_and_tells_all(muster, served, kube, manifest):
    found = muster("submit", manifest, "--dry-run")

    assert (0, "", ["POST /api/v1/jobs/dry-run"]) == (found.code, found.err, served.asked())
    assert [] == kube.requests
    rows = [" ".join(row.split()) for row in found.out.splitlines() if row]
    assert [
        "vision/digits: starts",
        "Where 3 GPUs on 2 nodes in rack r1",
        "Starts 2026-12-01T09:30:30Z",
        "Nodes n1 x2, n2",
        "MAKES ROOM REPLICAS RIGHT LOST GPU-SECONDS COST",
        "audio/old all priority 480 $0.524000",
        "DELAYED FROM TO",
        "audio/next 2026-12-01T10:00:00Z unknown",
    ] == rows


def test_a_dry_run_of_a_job_that_waits_tells_why(muster, served, manifest):
    waits = {"verdict": "waits", "code": "QueueLimit", "message": "needs 3 GPUs", "placement": []}
    served.on("POST /api/v1/jobs/dry-run", DRY_RUN | waits | {"victims": [], "delayed": []})
    rows = muster("submit", manifest, "--dry-run").out.splitlines()

    assert "vision/digits: waits, QueueLimit" == rows[0]
    assert ["Why", "needs", "3", "GPUs"] == rows[1].split()


PRINTED = {
    ("explain", "digits"): EXPLANATION,
    ("submit", "MANIFEST", "--dry-run"): DRY_RUN,
}


@pytest.mark.parametrize("command", PRINTED, ids=" ".join)
def test_json_and_yaml_are_the_answer_alone(command, muster, served, manifest):
    words = [manifest if word == "MANIFEST" else word for word in command]

    assert PRINTED[command] == json.loads(muster(*words, "-o", "json").out)
    assert PRINTED[command] == yaml.safe_load(muster(*words, "-o", "yaml").out)


def test_several_jobs_are_tried_one_by_one(muster, served, tmp_path):
    path = tmp_path / "two.yaml"
    path.write_text(f"{MANIFEST}---\n{MANIFEST.replace('digits}', 'other}')}")

    found = json.loads(muster("submit", str(path), "--dry-run", "-o", "json").out)

    assert {"items": [DRY_RUN, DRY_RUN]} == found


def test_a_dry_run_is_refused_as_a_submission_is(muster, served, manifest):
    errors = [{"field": "spec.queue", "problem": "there is no queue red"}]
    served.on("POST /api/v1/jobs/dry-run", problem(422, "no", errors), 422)
    found = muster("submit", manifest, "--dry-run")

    assert (2, "muster: spec.queue: there is no queue red\n") == (found.code, found.err)


def test_an_operator_that_is_away_is_3(muster, served):
    served.on("GET /api/v1/nodes", problem(503, "the operator does not answer"), 503)
    found = muster("nodes")

    assert (3, True) == (found.code, "the operator does not answer" in found.err)
