"""The control plane that tests and benchmarks start on their own."""

from collections.abc import Iterator

import pytest

from clusters import RunningCluster
from muster_kube import PODS, Kube
from muster_local.control_plane import ControlPlane
from muster_local.probes import answers

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


@pytest.fixture(scope="module")
def recovered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """One that found spoilt data, at a path that is longer than a socket's address may be."""
    directory = tmp_path_factory.mktemp("a" * 60) / ("b" * 60)
    (directory / "etcd").mkdir(parents=True)
    (directory / "etcd" / "member").write_text("spoilt by a power cut")
    with ControlPlane(directory, is_tethered=True) as control_plane:
        yield control_plane


def test_a_long_path_is_no_obstacle(recovered: ControlPlane) -> None:
    assert answers(recovered.url, "/readyz", pki=recovered.directory / "pki")


def test_data_that_cannot_be_read_is_put_aside_and_the_cluster_starts_empty(
    recovered: ControlPlane,
) -> None:
    aside = recovered.directory / "etcd-unreadable" / "member"

    assert "spoilt by a power cut" == aside.read_text()
