"""Kubernetes objects into rows."""

from typing import Any

import pytest

from apis import job_manifest, job_pod
from muster.cost import PriceRow
from muster.errors import InvalidSpec
from muster.times import ms_of, text_of
from muster_api.facts import attempts_of, job_facts, node_facts, placed_of, price_rows, seen_pod
from muster_db.records import NodeFacts

NOW = "2026-12-01T10:00:00Z"


def job(**status: Any) -> dict[str, Any]:
    manifest = job_manifest(replicas=2, gpusPerReplica=4)
    manifest["metadata"] |= {
        "namespace": "a",
        "uid": "u",
        "creationTimestamp": "2026-12-01T09:30:00Z",
        "labels": {"muster.dev/team": "vision", "muster.dev/experiment": "e1"},
        "finalizers": ["muster.dev/recorder"],
    }
    return {**manifest, "status": status}


def pod(phase: str, *ends: str | None, **metadata: Any) -> dict[str, Any]:
    made = job_pod(job(), attempt=2, replica=1, incarnation=3)
    made["metadata"] |= {"uid": "p", "creationTimestamp": "2026-12-01T09:31:00Z", **metadata}
    states = [{"state": {"terminated": {"finishedAt": end}} if end else {}} for end in ends]
    transition = {"type": "Ready", "lastTransitionTime": "2026-12-01T09:45:00Z"}
    made["status"] = {"phase": phase, "containerStatuses": states, "conditions": [transition]}
    return made


ENDS = {
    "one that runs has none": (pod("Running", None), None, None),
    "the last container's, if all ended, by the end of that second": (
        pod("Succeeded", "2026-12-01T09:40:00Z", "2026-12-01T09:41:00Z"),
        None,
        "2026-12-01T09:41:00.999Z",
    ),
    "one that failed without the kubelet's word ended when its conditions last changed": (
        pod("Failed"),
        None,
        "2026-12-01T09:45:00.999Z",
    ),
    "one that was killed with its node ended when it was gone": (pod("Running", None), NOW, NOW),
    "one that was to be gone earlier was": (
        pod("Running", None, deletionTimestamp="2026-12-01T09:50:00Z"),
        NOW,
        "2026-12-01T09:50:00Z",
    ),
    "one that ended before it was deleted ended then": (
        pod("Succeeded", "2026-12-01T09:40:00Z"),
        NOW,
        "2026-12-01T09:40:00.999Z",
    ),
}


@pytest.mark.parametrize("claim", ENDS)
def test_when_a_pod_ended(claim: str) -> None:
    obj, gone, want = ENDS[claim]

    got = seen_pod(obj, gone_ms=None if gone is None else ms_of(gone))

    assert got is not None
    assert ("u", 2, 1, 3, "p") == (
        got.job_uid,
        got.attempt,
        got.replica,
        got.incarnation,
        got.pod_uid,
    )
    assert want == (None if got.pod_ended_ms is None else text_of(got.pod_ended_ms))


def test_a_pod_of_nobody_or_of_another_kind_is_none_of_ours() -> None:
    stray, foreign, unlabelled = pod("Running"), pod("Running"), pod("Running")
    stray["metadata"]["ownerReferences"] = []
    foreign["metadata"]["ownerReferences"][0]["apiVersion"] = "batch/v1"
    unlabelled["metadata"]["labels"] = {"muster.dev/job": "digits"}

    assert [None, None, None] == [seen_pod(each) for each in (stray, foreign, unlabelled)]


def test_a_job_without_a_status_is_pending() -> None:
    got = job_facts(job())

    assert ("Pending", 0, 8, "vision", "e1", True) == (
        got.phase,
        got.attempt,
        got.gpus,
        got.team,
        got.experiment,
        got.is_held,
    )


def test_what_an_elastic_gang_was_given_later_is_held_from_then_on() -> None:
    grown = [
        {"first": 1, "at": "2026-12-01T09:40:00Z"},
        {"first": 2, "at": "2026-12-01T09:50:00Z"},
    ]
    attempt = {"attempt": 1, "decidedAt": "2026-12-01T09:31:00Z", "nodes": ["n1", "n1", "n2"]}
    placed = placed_of(job(placement={**attempt, "grown": grown}, attempts=[attempt]))

    assert ["2026-12-01T09:31:00Z", "2026-12-01T09:40:00Z", "2026-12-01T09:50:00Z"] == [
        text_of(each.start_ms) for each in placed
    ]


def test_attempts_are_known_from_the_placement_until_they_are_listed() -> None:
    placement = {"attempt": 2, "decidedAt": "2026-12-01T09:35:00.250Z", "nodes": ["n1", "n2"]}
    first = {"attempt": 1, "decidedAt": "2026-12-01T09:31:00Z", "nodes": ["n3"], "outcome": "Lost"}

    got = attempts_of(job(placement=placement, attempts=[first]))
    placed = placed_of(job(placement=placement, attempts=[first]))

    assert [(1, "Lost", 1), (2, None, 2)] == [(a.attempt, a.outcome, a.replicas) for a in got]
    assert [(1, 0, "n3"), (2, 0, "n1"), (2, 1, "n2")] == [
        (each.attempt, each.replica, each.node) for each in placed
    ]
    assert {4} == {each.gpus for each in placed}
    assert "2026-12-01T09:35:00.250Z" == text_of(placed[-1].start_ms)


NODES = {
    "a spot node": (
        {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "karpenter.sh/capacity-type": "spot"},
        ("H100", "spot", False),
    ),
    "one that says nothing of its capacity is no spot node": (
        {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"},
        ("A100", "on-demand", False),
    ),
    "one with pretended GPUs": ({"muster.dev/simulated": "true"}, (None, "on-demand", True)),
}


@pytest.mark.parametrize("claim", NODES)
def test_nodes(claim: str) -> None:
    labels, want = NODES[claim]

    assert NodeFacts("n", *want) == node_facts({"metadata": {"name": "n", "labels": labels}})


def row(**changes: Any) -> str:
    fields = {
        "gpuModel": "H100",
        "capacityType": "spot",
        "microUsdPerGpuHour": 5,
        "from": '"2026-01-01T00:00:00Z"',
    } | changes
    return "- {" + ", ".join(f"{key}: {value}" for key, value in fields.items()) + "}\n"


def test_prices_are_read_with_the_models_that_nodes_get() -> None:
    got = price_rows(
        row() + row(gpuModel="NVIDIA-A100-SXM4-80GB", **{"from": "2026-01-01T00:00:00Z"})
    )

    since = 1_767_225_600_000
    assert [PriceRow("A100", "spot", since, 5), PriceRow("H100", "spot", since, 5)] == got


BAD_PRICES = {
    "not YAML": ("- {", "prices.yaml"),
    "no list": ("a: 1", "prices.yaml"),
    "no row": ("- 1", "prices.yaml[0]"),
    "no model": (row(gpuModel="''"), "prices.yaml[0].gpuModel"),
    "a price below nothing": (row(microUsdPerGpuHour=-1), "prices.yaml[0].microUsdPerGpuHour"),
    "a price with a fraction": (row(microUsdPerGpuHour=1.5), "prices.yaml[0].microUsdPerGpuHour"),
    "a time without a zone": (row(**{"from": "2026-01-01T00:00:00"}), "prices.yaml[0].from"),
    "no time": (row(**{"from": "soon"}), "prices.yaml[0].from"),
    "the same row twice": (row() + row(), "prices.yaml[1]"),
}


@pytest.mark.parametrize("claim", BAD_PRICES)
def test_a_price_list_that_is_wrong_names_its_row_and_field(claim: str) -> None:
    text, path = BAD_PRICES[claim]

    with pytest.raises(InvalidSpec) as raised:
        price_rows(text)

    assert path == raised.value.path
