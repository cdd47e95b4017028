"""Queues, nodes, snapshots and replays on the command line, from files as from the API."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from muster.scheduling.archive import Record, dumps, dumps_record, planned
from snapshot_files import INPUTS, MANIFEST


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


def test_a_snapshot_is_printed_as_it_is(muster, api):
    api.on("GET /api/v1/snapshot", json.loads(dumps(INPUTS)))
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
