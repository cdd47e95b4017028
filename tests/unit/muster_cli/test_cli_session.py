import pytest

from muster.errors import Unavailable
from muster_cli.session import IN_CLUSTER_URL, connect
from muster_local import state
from muster_local.component import Component, Identity
from muster_local.shape import Shape


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path):
    """A user with neither kubeconfig nor cluster."""
    for name in ("KUBECONFIG", "MUSTER_API_URL", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path / "clusters"))


def local_cluster(home, kubeconfig, name, api_url):
    """A local cluster, as `muster local up` leaves it."""
    api = Component("api", "platform", Identity(1, 0.0, "boot"), home / "api.log", api_url)
    directory = home / "clusters" / name
    directory.mkdir(parents=True)
    (directory / "kubeconfig").write_text(kubeconfig.read_text())
    state.save(state.Cluster(name, directory, Shape(), (api,)))


def test_with_nothing_it_says_how_to_start():
    with pytest.raises(Unavailable, match="muster local up"):
        connect()


def test_an_address_is_enough(monkeypatch):
    monkeypatch.setenv("MUSTER_API_URL", "http://api/")

    found = connect("vision")

    assert ("http://api", "vision", None) == (found.url, found.namespace, found.access)


def test_inside_a_pod_the_service_is_asked(monkeypatch):
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")

    found = connect()

    assert (IN_CLUSTER_URL, True) == (found.url, found.is_in_pod)


def test_another_cluster_is_reached_through_a_port_forward(monkeypatch, kubeconfig):
    found = connect(chosen=kubeconfig)

    assert (None, "vision", (kubeconfig,)) == (found.url, found.namespace, found.kubeconfigs)


def test_without_a_kubeconfig_the_only_local_cluster_is_meant(tmp_path, kubeconfig):
    local_cluster(tmp_path, kubeconfig, "demo", "http://127.0.0.1:4711")

    found = connect()

    assert "http://127.0.0.1:4711" == found.url
    assert (tmp_path / "clusters" / "demo" / "kubeconfig",) == found.kubeconfigs
    assert "secret" == found.access.token


def test_the_context_of_a_local_cluster_leads_to_its_api(tmp_path, kubeconfig):
    local_cluster(tmp_path, kubeconfig, "demo", "http://127.0.0.1:4711")

    assert "http://127.0.0.1:4711" == connect(chosen=kubeconfig).url
