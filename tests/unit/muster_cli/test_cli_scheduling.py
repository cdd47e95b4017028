"""Explanations, dry runs, queues, nodes, snapshots and replays on the command line."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from conftest import problem
from muster.scheduling.archive import Inputs, Record, dumps, dumps_record, planned
from muster.scheduling.cluster import Cluster
from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import Queue, Run
from small_clusters import BLOCKS, gang, holding, node, nodes

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
MANIFEST = """\
apiVersion: muster.dev/v1alpha1
kind: TrainingJob
metadata: {name: digits}
spec:
  replicas: 3
  gpusPerReplica: 1
  template: {spec: {containers: [{name: train, image: team/digits}]}}
"""
HOUR = Run(started=0.0)
LONG = holding(gang("vision/long", 8, run=HOUR, max_run_time=3600.0), " ".join(["n1"] * 8))
CLUSTER = Cluster.of(
    levels=BLOCKS,
    nodes=[
        *nodes("n1 n2", rack="r1", block="b1", gpu_model="H100"),
        node("n3", 4, rack="r2", block="b1", bad_gpus=1, is_cordoned=True),
    ],
    queues=[
        Queue("org", guaranteed=8),
        Queue("team", parent="org", limit=12, weight=2.0),
        Queue("old", is_paused=True, guaranteed_by_model={"H100": 4}, weight=0.0),
    ],
    gangs=[
        LONG,
        holding(gang("audio/x", 3, run=HOUR, queue="team"), "n2 n2 n2"),
        gang("vision/waits", 1, 6, queue="team"),
    ],
)
INPUTS = Inputs(CLUSTER.objects(), Policy(), 60.0)


@pytest.fixture
def file(tmp_path):
    """A snapshot in a file."""
    path = tmp_path / "snapshot.json"
    path.write_text(dumps(INPUTS))
    return str(path)


@pytest.fixture
def manifest(tmp_path):
    path = tmp_path / "digits.yaml"
    path.write_text(MANIFEST)
    return str(path)


@pytest.fixture
def served(api):
    api.on(f"GET {ONE}/explain", EXPLANATION)
    api.on("POST /api/v1/jobs/dry-run", DRY_RUN)
    api.on("GET /api/v1/snapshot", json.loads(dumps(INPUTS)))
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
        EXPLANATION | {"source": "status", "changes": [], "predicted_start": None},
    )
    found = muster("explain", "digits").out

    assert "Starts     unknown" in found
    assert "From the job's status" in found


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


def test_queues_read_as_a_tree(muster, file):
    found = muster("queues", "--snapshot", file)

    assert (0, "") == (found.code, found.err)
    assert [
        "QUEUE GUARANTEED LIMIT USAGE SHARE PENDING BORROWED",
        "default 0 – 8 8 0 8",
        "old (paused) 4 H100 – 0 -1 0 0",
        "org 8 – 3 -0.625 6 0",
        "└─ team 0 12 3 1.5 6 3",
    ] == [" ".join(row.split()) for row in found.out.splitlines()]


def test_nodes_are_a_small_picture_under_their_domains(muster, file):
    found = muster("nodes", "--snapshot", file)

    assert (0, "") == (found.code, found.err)
    assert [
        "NODE GPUS FREE HELD BY",
        "block b1 20 5",
        "rack r1 16 5",
        "n1 ■■■■■■■■ 0 vision/long 8",
        "n2 ■■■▫▫▫▫▫ 5 audio/x 3",
        "rack r2 4 0",
        "n3 (cordoned) × 0",
        "",
        "5 of 20 GPUs are free, 5 of them of no use to any job that waits",
        "■ held □ free ▫ free, of no use to who waits × broken",
    ] == [" ".join(row.split()) for row in found.out.splitlines()]


def test_there_are_no_colours_but_on_a_terminal(muster, file):
    assert "\x1b" not in muster("nodes", "--snapshot", file).out
    assert "\x1b" not in muster("queues", "--snapshot", file).out


def test_nodes_in_json_have_the_keys_of_the_contract(muster, file):
    found = json.loads(muster("nodes", "--snapshot", file, "-o", "json").out)

    assert 5 == found["fragmented_gpus"]
    assert {
        "name": "n2",
        "domains": {"block": "b1", "rack": "r1"},
        "gpus": 8,
        "free": 5,
        "held_by": {"audio/x": 3},
    }.items() <= found["items"][1].items()


def test_queues_in_json_have_the_keys_of_the_contract(muster, file):
    found = json.loads(muster("queues", "--snapshot", file, "-o", "json").out)

    assert {
        "name": "team",
        "parent": "org",
        "weight": 2,
        "guaranteed": 0,
        "limit": 12,
        "usage": 3,
        "share": 1.5,
        "pending_gpus": 6,
        "borrowed": 3,
    }.items() <= found["items"][-1].items()


def test_a_snapshot_answers_explanations_without_a_cluster(muster, file, api):
    found = json.loads(
        muster("explain", "waits", "-n", "vision", "--snapshot", file, "-o", "json").out
    )

    assert [] == api.requests
    assert ("vision", "waits", "snapshot", "QueueShare") == (
        found["namespace"],
        found["job"],
        found["source"],
        found["code"],
    )
    assert {"code", "message", "queue_position", "predicted_start", "waits_for", "changes"} <= set(
        found
    )


def test_a_snapshot_answers_dry_runs_without_a_cluster(muster, file, api, manifest):
    found = json.loads(
        muster("submit", manifest, "--dry-run", "--snapshot", file, "-o", "json").out
    )

    assert [] == api.requests
    assert ("default", "starts", ["n2"] * 3, []) == (
        found["namespace"],
        found["verdict"],
        found["placement"],
        found["victims"],
    )


def test_a_snapshot_is_printed_as_it_is(muster, served):
    found = muster("snapshot")

    assert (0, "") == (found.code, found.err)
    assert json.loads(dumps(INPUTS)) == json.loads(found.out)


@pytest.fixture
def decision(tmp_path):
    """A decision in a file, which may be changed before it is written."""

    def written(**changes):
        record = Record("20261201T093000.000000-beef", INPUTS, planned(INPUTS))
        path = tmp_path / "decision.json"
        path.write_text(dumps_record(replace(record, **changes)))
        return str(path)

    return written


def test_a_decision_is_planned_again_the_same(muster, decision):
    found = muster("replay", decision())

    assert (0, "") == (found.code, found.err)
    assert "The plan is the recorded one, byte for byte." in found.out
    assert "Wait" in found.out
    assert "vision/waits" in found.out


def test_a_decision_of_the_operator_is_fetched_by_its_id(muster, api, decision):
    written = json.loads(Path(decision()).read_text())
    api.on("GET /api/v1/decisions/20261201T093000.000000-beef", written)
    found = json.loads(muster("replay", "20261201T093000.000000-beef", "-o", "json").out)

    assert ("20261201T093000.000000-beef", True) == (found["id"], found["same"])
    assert "vision/waits" in [each["gang"] for each in found["plan"]["decisions"]]


def test_a_plan_that_differs_is_1_and_says_where(muster, decision):
    other = replace(INPUTS, objects=replace(INPUTS.objects, gangs=()))
    found = muster("replay", decision(plan=planned(other)))

    assert 1 == found.code
    assert "The plan differs from the recorded one." in found.out
    assert "decision 1 was nothing, and is Wait vision/waits" in found.err


def test_a_snapshot_is_planned_and_compared_with_nothing(muster, file):
    found = json.loads(muster("replay", file, "-o", "json").out)

    assert (None, None) == (found["same"], found["id"])


MISTAKES = {
    "no such file": (("replay", "./none.json"), "./none.json: No such file"),
    "no such decision": (("replay", "none"), "there is no /api/v1/decisions/none"),
    "a file that is something else": (
        ("queues", "--snapshot", "MANIFEST"),
        "digits.yaml: is not JSON",
    ),
    "a job that is not in it": (
        ("explain", "none", "--snapshot", "FILE"),
        "there is no job default/none in this snapshot",
    ),
    "a snapshot to submit to": (
        ("submit", "MANIFEST", "--snapshot", "FILE"),
        "--snapshot: is for",
    ),
    "a dry run to follow": (
        ("submit", "MANIFEST", "--dry-run", "-f"),
        "--follow: there is nothing",
    ),
}


@pytest.mark.parametrize("claim", MISTAKES)
def test_a_mistake_is_one_line(claim, muster, api, file, manifest):
    words, message = MISTAKES[claim]
    found = muster(*({"FILE": file, "MANIFEST": manifest}.get(word, word) for word in words))

    assert (2, "", 1) == (found.code, found.out, len(found.err.splitlines()))
    assert message in found.err


def test_a_job_that_cannot_be_read_is_named_with_its_file(muster, file, tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_text(MANIFEST.replace("replicas: 3", "replicas: 0"))
    found = muster("submit", str(path), "--dry-run", "--snapshot", file)

    assert 2 == found.code
    assert f"{path}:1: spec.replicas: " in found.err


def test_a_field_that_is_wrong_in_a_snapshot_is_named(muster, tmp_path):
    written = json.loads(dumps(INPUTS))
    written["snapshot"]["objects"]["nodes"][0]["gpus"] = "eight"
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(written))
    found = muster("nodes", "--snapshot", str(path))

    assert 2 == found.code
    assert f"{path}: snapshot.objects.nodes[0].gpus: must be a whole number" in found.err
