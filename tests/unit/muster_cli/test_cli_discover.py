from pathlib import Path

import pytest
import yaml

from muster.errors import InvalidSpec, Unavailable
from muster_cli import discover, kubeconfig
from muster_cli.discover import Local
from muster_cli.kubeconfig import Access


def access(server="https://127.0.0.1:1", **changes):
    return Access(
        **{"context": "c", "server": server, "namespace": "n", "token": "t", "needs_client": False}
        | changes
    )


def local(name, server="https://127.0.0.1:1", api_url="http://127.0.0.1:2"):
    return Local(name, Path(name), server, api_url)


API = {
    "MUSTER_API_URL wins": ("http://a/", access(), [local("x")], "http://a"),
    "a context of a local cluster leads to its API": (
        None,
        access(),
        [local("x")],
        "http://127.0.0.1:2",
    ),
    "another cluster takes a port-forward": (None, access("https://far"), [local("x")], None),
    "so does a cluster where there is no local one": (None, access(), [], None),
}


@pytest.mark.parametrize("claim", API)
def test_where_the_api_is(claim):
    url, found, clusters, want = API[claim]

    assert want == discover.api_url(url, found, clusters)


def test_a_cluster_without_the_platform_says_so():
    with pytest.raises(Unavailable, match="x runs without the platform"):
        discover.api_url(None, access(), [local("x", api_url=None)])


def test_without_a_kubeconfig_the_default_cluster_is_meant():
    assert "default" == discover.the_local_one([local("a"), local("default")]).name


def test_or_the_only_one():
    assert "demo" == discover.the_local_one([local("demo")]).name


def test_of_several_one_must_be_chosen():
    with pytest.raises(InvalidSpec, match=r"several local clusters \(a, b\)"):
        discover.the_local_one([local("a"), local("b")])


def test_of_none_it_says_how_to_start_one():
    with pytest.raises(Unavailable, match="muster local up"):
        discover.the_local_one([])


def config(name="here", user=None, namespace=None, **extra):
    inner = {"cluster": "c", "user": "u"} | ({"namespace": namespace} if namespace else {})
    return {
        "current-context": name,
        "contexts": [{"name": name, "context": inner}],
        "clusters": [{"name": "c", "cluster": {"server": "https://s/"}}],
        "users": [{"name": "u", "user": user or {"token": "t"}}],
    } | extra


def write(path, content):
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def test_the_current_context_gives_server_namespace_and_token(tmp_path):
    file = write(tmp_path / "k", config(namespace="vision"))

    assert Access("here", "https://s", "vision", "t", needs_client=False) == kubeconfig.read(
        (file,)
    )


def test_a_token_file_is_found_beside_its_kubeconfig(tmp_path):
    write(tmp_path / "token", "from-file\n")
    file = write(tmp_path / "k", config(user={"tokenFile": "token"}))

    assert "from-file" == kubeconfig.read((file,)).token


def test_credentials_that_must_be_worked_out_are_left_to_the_client(tmp_path):
    file = write(tmp_path / "k", config(user={"exec": {"command": "aws"}}))

    found = kubeconfig.read((file,))

    assert (None, True) == (found.token, found.needs_client)


def test_the_first_of_several_files_wins(tmp_path):
    first = write(tmp_path / "a", config(namespace="first"))
    second = write(tmp_path / "b", config(namespace="second"))

    assert "first" == kubeconfig.read((first, second)).namespace


BAD = {
    "an unknown context": (config(), "no", "there is no context 'no'; known are here"),
    "not YAML": ("a: [", None, "cannot be read"),
    "not a kubeconfig": ("[]", None, "is not a kubeconfig"),
    "a cluster that is not there": (config(clusters=[]), None, "names the cluster 'c'"),
    "a token file that is not there": (config(user={"tokenFile": "no"}), None, "token file"),
}


@pytest.mark.parametrize("claim", BAD)
def test_a_bad_kubeconfig_is_refused(claim, tmp_path):
    content, context, message = BAD[claim]
    file = write(tmp_path / "k", content)

    with pytest.raises(InvalidSpec, match=message):
        kubeconfig.read((file,), context)


def test_without_a_current_context_there_is_no_access(tmp_path):
    assert kubeconfig.read((write(tmp_path / "k", ""),)) is None


def test_the_files_follow_kubectls_rule(tmp_path):
    own = tmp_path / ".kube" / "config"
    own.parent.mkdir()
    write(own, config())
    named = write(tmp_path / "named", config())

    assert (own,) == kubeconfig.files(None, {}, tmp_path)
    assert (named,) == kubeconfig.files(None, {"KUBECONFIG": f"{named}:{tmp_path}/no"}, tmp_path)
    assert (named,) == kubeconfig.files(named, {"KUBECONFIG": "x"}, tmp_path)
    with pytest.raises(InvalidSpec, match=r"--kubeconfig: .*no is not a file"):
        kubeconfig.files(tmp_path / "no", {}, tmp_path)
