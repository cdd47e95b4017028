"""Templates that kube-scheduler has to check are pinned to their node and bound by it."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from clusters import RunningCluster
from muster_kube import PODS
from operators import Stage, kubelet, operating, operator_settings, staged

pytestmark = pytest.mark.integration

_BESIDE = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"a": "b"}}}
_APART = {"requiredDuringSchedulingIgnoredDuringExecution": [_BESIDE]}


@pytest.fixture
async def stage(cluster: RunningCluster, namespace: str) -> AsyncIterator[Stage]:
    account = cluster.kubeconfig_of("muster-operator")
    async with staged(cluster.kubeconfig, namespace) as stage, kubelet(stage):
        await stage.add_nodes(2)
        async with operating(operator_settings(account, has_scheduler=True)):
            yield stage


async def test_a_pinned_gang_runs_where_it_was_placed(stage: Stage) -> None:
    await stage.create_job(
        replicas=2, gpusPerReplica=8, pod_spec={"affinity": {"podAntiAffinity": _APART}}
    )
    pods = await stage.has_pods(2)
    nodes = (await stage.status())["placement"]["nodes"]
    assert [[node] for node in nodes] == [_pinned_to(pod) for pod in pods]
    assert not any("nodeName" in pod["spec"] for pod in pods)
    for pod, node in zip(pods, nodes, strict=True):
        await _bind(stage, pod, node)
    await stage.set_pods("Running")
    await stage.becomes("Running", gang="2/2")
    await stage.create_job("second", replicas=1)
    await stage.becomes("Pending", "second")


def _pinned_to(pod: dict[str, Any]) -> list[str]:
    affinity = pod["spec"]["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    (field,) = term["matchFields"]
    return list(field["values"])


async def _bind(stage: Stage, pod: dict[str, Any], node: str) -> None:
    """As kube-scheduler does it."""
    name = pod["metadata"]["name"]
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    await stage.kube.create(PODS.path(stage.namespace, name, "binding"), binding)
