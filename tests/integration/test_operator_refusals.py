"""What cannot be run is told so in the status, and leaves no pod behind."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from clusters import RunningCluster
from eventually import eventually, stays
from muster_kube import PODS, QUEUES, Kube
from operators import Stage, kubelet, operating, operator_settings, staged

pytestmark = pytest.mark.integration

Raw = dict[str, Any]


@pytest.fixture
async def stage(cluster: RunningCluster, namespace: str) -> AsyncIterator[Stage]:
    async with staged(cluster.kubeconfig, namespace) as stage, kubelet(stage):
        await stage.add_nodes(2)
        yield stage


@pytest.fixture
def account(cluster: RunningCluster) -> Path:
    return cluster.kubeconfig_of("muster-operator")


_BESIDE = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "b"}}}
_PINNED = {
    "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_BESIDE]}}
}

OBJECTIONS = {
    "an unknown queue": ({"queue": "nowhere"}, "UnknownQueue", "nowhere"),
    "an unknown level": (
        {"topology": {"required": "planet"}},
        "UnknownTopologyLevel",
        "spec.topology.required",
    ),
    "a template for kube-scheduler": ({"pod_spec": _PINNED}, "UnsupportedTemplate", "podAffinity"),
}


@pytest.mark.parametrize("claim", OBJECTIONS)
async def test_what_cannot_be_planned_gets_a_condition_and_no_pod(
    stage: Stage, account: Path, claim: str
) -> None:
    spec, reason, word = OBJECTIONS[claim]
    async with operating(operator_settings(account)):
        await stage.create_job(**spec)
        status = await stage.becomes("Pending", reason=reason)
        assert word in status["message"]
        conditions = {c["type"]: (c["status"], c["reason"]) for c in status["conditions"]}
        assert ("False", reason) == conditions["Admitted"]
        await stage.told(reason)
        await stays(lambda: _has_no_pods(stage), during=0.3)


async def test_a_queue_that_comes_later_lets_the_job_start(stage: Stage, account: Path) -> None:
    queue = f"queue-{stage.namespace}"
    async with operating(operator_settings(account)):
        await stage.create_job(queue=queue)
        await stage.becomes("Pending", reason="UnknownQueue")
        manifest = {
            "apiVersion": "muster.dev/v1alpha1",
            "kind": "Queue",
            "metadata": {"name": queue},
            "spec": {"namespaces": ["elsewhere"]},
        }
        await stage.kube.create(QUEUES.path(), manifest)
        try:
            await stage.becomes("Pending", reason="QueueForbidden")
            await stage.kube.patch(
                QUEUES.path(name=queue), {"spec": {"namespaces": [stage.namespace]}}
            )
            await stage.has_pods(2)
        finally:
            await stage.kube.delete(QUEUES.path(name=queue))


async def test_a_quota_that_admits_five_of_eight_is_found_before_any_pod(
    stage: Stage, account: Path
) -> None:
    await _set_quota(stage, {"pods": "5"})
    async with operating(operator_settings(account)):
        await stage.create_job(replicas=8, gpusPerReplica=1)
        status = await stage.becomes("Pending", reason="AdmissionRefused")
        assert "exceeded quota: five" in status["message"]
        assert "0/8" == status["gang"]
        assert "retryAt" in status
        assert "attempt" not in status or status["attempt"] == 0
        await stays(lambda: _has_no_pods(stage), during=0.5)
        await _set_quota(stage, {"pods": "8"})
        await stage.has_pods(8)


async def test_a_quota_on_gpus_counts_what_runs_already(stage: Stage, account: Path) -> None:
    await _set_quota(stage, {"requests.nvidia.com/gpu": "10"})
    async with operating(operator_settings(account)):
        await stage.create_job("first", replicas=2)
        await stage.has_pods(2, "first")
        await stage.create_job("second", replicas=2)
        status = await stage.becomes("Pending", "second", reason="AdmissionRefused")
        assert "requests.nvidia.com/gpu" in status["message"]
        assert [] == await stage.pods("second")


async def test_a_gang_that_is_refused_midway_is_taken_back(stage: Stage, account: Path) -> None:
    await _set_quota(stage, {"pods": "5"})
    kube = await BlindKube.connect(account, connections=128)
    settings = operator_settings(account, retry_first=60.0, retry_most=60.0)
    async with kube, operating(settings, kube):
        await stage.create_job(replicas=8, gpusPerReplica=1)
        status = await stage.becomes("Pending", reason="AdmissionRefused")
        await stage.has_pods(0)
        assert "exceeded quota: five" in status["message"]
        assert "placement" not in status
        (attempt,) = status["attempts"]
        assert ("Refused", "AdmissionRefused") == (attempt["outcome"], attempt["cause"])
        assert "restarts" not in status


async def test_what_admission_refuses_is_told_in_its_words(stage: Stage, account: Path) -> None:
    async with operating(operator_settings(account)):
        await stage.create_job(pod_spec={"serviceAccountName": "nobody"})
        status = await stage.becomes("Pending", reason="AdmissionRefused")
        assert "nobody" in status["message"]
        await stays(lambda: _has_no_pods(stage), during=0.3)


async def test_what_a_kubelet_refuses_costs_no_budget(stage: Stage, account: Path) -> None:
    async with operating(operator_settings(account)):
        await stage.create_job()
        first, second = await stage.has_pods(2)
        await stage.set_pod(second, "Running")
        refusal = {"phase": "Failed", "reason": "OutOfcpu", "message": "Node didn't have enough"}
        await stage.set_pod_status(first, refusal)

        async def is_placed_anew() -> bool:
            status = await stage.status()
            assert 2 == status["attempt"]
            assert "restarts" not in status
            assert "Refused" == status["attempts"][0]["outcome"]
            return True

        await eventually(is_placed_anew)


async def test_a_pod_of_the_same_name_is_not_taken_over(stage: Stage, account: Path) -> None:
    theirs = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "train-1-1-0"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    made = await stage.kube.create(PODS.path(stage.namespace), theirs)
    async with operating(operator_settings(account, whole_within=0.3)):
        await stage.create_job()

        async def is_in_the_second_attempt() -> bool:
            status = await stage.status()
            assert 2 == status.get("attempt")
            assert "belongs to something else" in status["attempts"][0]["message"]
            return len(await stage.pods()) == 2

        await eventually(is_in_the_second_attempt)
    kept = await stage.kube.get(PODS.path(stage.namespace, "train-1-1-0"))
    assert made["metadata"]["uid"] == kept["metadata"]["uid"]


class BlindKube(Kube):
    """Sees no quotas, as if they were made in this very moment."""

    async def list(
        self, path: str, *, query: Mapping[str, str] | None = None, page: int = 500
    ) -> tuple[list[Raw], str]:
        items, version = await super().list(path, query=query, page=page)
        return ([] if path.endswith("/resourcequotas") else items), version

    async def watch(
        self,
        path: str,
        resource_version: str,
        *,
        query: Mapping[str, str] | None = None,
        timeout_seconds: int = 300,
    ) -> AsyncIterator[tuple[str, Raw]]:
        if path.endswith("/resourcequotas"):
            await asyncio.Event().wait()
        async for step in super().watch(
            path, resource_version, query=query, timeout_seconds=timeout_seconds
        ):
            yield step


async def _has_no_pods(stage: Stage) -> bool:
    return not await stage.pods()


async def _set_quota(stage: Stage, hard: dict[str, str]) -> None:
    """Make or change the quota, and wait until the API server enforces it."""
    collection = f"/api/v1/namespaces/{stage.namespace}/resourcequotas"
    path = f"{collection}/five"
    items, _ = await stage.kube.list(collection)
    if items:
        await stage.kube.patch(path, {"spec": {"hard": hard}})
    else:
        manifest = {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "five"},
            "spec": {"hard": hard},
        }
        await stage.kube.create(collection, manifest)

    async def is_enforced() -> bool:
        status = (await stage.kube.get(path)).get("status") or {}
        return bool(status.get("hard") == hard)

    await eventually(is_enforced)
