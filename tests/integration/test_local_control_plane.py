"""The control plane that tests and benchmarks start on their own."""

import pytest

from clusters import RunningCluster
from muster_kube import PODS, Kube

pytestmark = pytest.mark.integration


async def test_a_pod_can_be_created_in_a_new_namespace(
    cluster: RunningCluster, namespace: str
) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "one"},
        "spec": {"containers": [{"name": "main", "image": "local"}]},
    }
    async with await Kube.connect(cluster.kubeconfig) as kube:
        created = await kube.create(PODS.path(namespace), pod)

    assert "Pending" == created["status"]["phase"]
