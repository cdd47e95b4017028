"""A local cluster as its user has it: up, twice, side by side, after a crash, and gone.

Starting one takes seconds, so that the tests of one that stays up share it.
"""

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import psutil
import pytest
import yaml

from clusters import blocking
from eventually import eventually
from muster_cli.main import run
from muster_kube import NODES, PODS, ApiForbidden, ApiUnauthorized, Kube
from muster_local import lifecycle, recipes, state, status
from muster_local.ports import is_free
from muster_local.shape import Options
from muster_local.state import Cluster

pytestmark = pytest.mark.integration

T = TypeVar("T")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MUSTER_HOME", str(directory))
        yield directory
        for name in state.names():
            lifecycle.down(name)


@pytest.fixture(scope="module")
def one(home: Path) -> Cluster:
    """A cluster with two process nodes, three KWOK nodes and no platform."""
    return lifecycle.up(Options("one", nodes=2, kwok_nodes=3, no_platform=True))


def test_it_is_whole_when_up_comes_back(one: Cluster) -> None:
    report = status.report(one)

    assert status.is_whole(report)
    assert ["etcd", "kube-apiserver", "kube-controller-manager", "nodes", "kwok"] == [
        each["name"] for each in report["components"]
    ]
    assert ["kwok-00000", "kwok-00001", "kwok-00002", "node-0", "node-1"] == [
        each["name"] for each in report["nodes"] if each["ready"]
    ]
    assert one.kubeconfig == Path(report["kubeconfig"])


def test_a_second_up_changes_nothing_and_renews_the_token(one: Cluster) -> None:
    token = token_in(one.kubeconfig)

    again = lifecycle.up(Options("one", no_platform=True))

    assert one.components == again.components
    assert token != token_in(one.kubeconfig)
    assert one.shape == again.shape


def test_nodes_can_be_added(one: Cluster) -> None:
    lifecycle.add_nodes("one", 1)

    names = {
        each["metadata"]["name"] for each in ask(one, lambda kube: kube.list(NODES.path()))[0]
    }

    assert {"node-0", "node-1", "node-2"} <= names


def test_its_kubeconfig_has_a_token_of_the_admin(one: Cluster) -> None:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}

    answer = ask(
        one,
        lambda kube: kube.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", review),
    )

    assert (
        "system:serviceaccount:muster-system:muster-admin"
        == (answer["status"]["userInfo"]["username"])
    )


def test_a_component_may_do_no_more_than_its_account(one: Cluster) -> None:
    operator = one.directory / "accounts" / "muster-operator.kubeconfig"

    with pytest.raises(ApiForbidden, match="secrets"):
        ask(one, lambda kube: kube.get("/api/v1/secrets"), operator)


def test_a_wrong_token_is_nobodys(one: Cluster, tmp_path: Path) -> None:
    content = yaml.safe_load(one.kubeconfig.read_text())
    content["users"][0]["user"]["token"] = "wrong"
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(content))

    with pytest.raises(ApiUnauthorized):
        ask(one, lambda kube: kube.get(NODES.path()), tmp_path / "kubeconfig")


def test_nobody_else_may_read_its_files(one: Cluster) -> None:
    assert 0o700 == one.directory.stat().st_mode & 0o777
    assert 0o600 == one.kubeconfig.stat().st_mode & 0o777
    assert 0o600 == (one.directory / "pki" / "ca.key").stat().st_mode & 0o777


def test_the_log_of_a_component_is_printed(
    one: Cluster, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert 0 == run(["local", "logs", "kube-apiserver", "--name", "one"])

    assert b"v1.37" in capfdbinary.readouterr().out


def test_the_path_of_its_kubeconfig_is_printed(
    one: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 0 == run(["local", "kubeconfig", "--name", "one"])

    assert f"{one.kubeconfig}\n" == capsys.readouterr().out


def test_its_status_is_printed_with_the_keys_that_scripts_rely_on(
    one: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 0 == run(["local", "status", "--name", "one", "-o", "json"])

    report = json.loads(capsys.readouterr().out)
    assert {"name", "kubeconfig", "components", "nodes"} == set(report)
    assert {"name", "kind", "pid", "url", "ready"} == set(report["components"][0])


BAD_INPUT = {
    "no node": (("up", "--name", "new", "--nodes", "0"), "--nodes: must be at least 1, is 0"),
    "fewer than none": (("up", "--name", "new", "--nodes", "-1"), "--nodes: must be at least 1"),
    "words for a number": (
        ("up", "--name", "new", "--nodes", "two"),
        "'--nodes': Input should be a valid int",
    ),
    "a name that is none": (("up", "--name", "New!"), "--name: 'New!' is not a name"),
    "a cluster that is not there": (("down", "--name", "x"), "there is no local cluster x"),
    "a component that is not there": (
        ("logs", "kubelet", "--name", "one"),
        "one has no log of kubelet; there are etcd, kube-apiserver",
    ),
    "a node that is not there": (("kill-node", "n", "--name", "one"), "no process node n"),
    "no node to add": (("add-nodes", "0", "--name", "one"), "N: must be at least 1, is 0"),
}


@pytest.mark.parametrize(("arguments", "message"), BAD_INPUT.values(), ids=BAD_INPUT)
def test_bad_input_is_one_line_and_changes_nothing(
    arguments: tuple[str, ...],
    message: str,
    one: Cluster,
    home: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = set(home.iterdir())

    code = run(["local", *arguments])

    said = capsys.readouterr().err
    assert (2, 1) == (code, said.count("\n")), said
    assert message in said
    assert before == set(home.iterdir())


async def test_an_interrupted_up_leaves_nothing(home: Path) -> None:
    command = await asyncio.create_subprocess_exec(
        *MUSTER, "up", "--name", "cut", "--no-platform", stderr=asyncio.subprocess.PIPE
    )
    assert command.stderr is not None
    while b"waiting for kube-apiserver" not in await command.stderr.readline():
        assert command.returncode is None
    cluster = state.load("cut")
    assert cluster is not None
    started = cluster.components

    command.send_signal(signal.SIGINT)
    _, said = await command.communicate()

    assert 130 == command.returncode, said
    assert not (home / "cut").exists()
    assert [] == [each for each in started if psutil.pid_exists(each.pid)]


def test_two_live_side_by_side_and_one_that_was_killed_comes_back(
    one: Cluster, home: Path
) -> None:
    two = lifecycle.up(Options("two", nodes=1, no_platform=True))
    sleeper = start_sleeper(two)
    for component in two.components:
        os.kill(component.pid, signal.SIGKILL)
    asyncio.run(eventually(lambda: not any(each.is_alive() for each in two.components)))

    with closing(socket.create_server(("127.0.0.1", port_of(two, recipes.API_SERVER)))):
        # Somebody took its port meanwhile.
        again = lifecycle.up(Options("two", no_platform=True))

    assert status.is_whole(status.report(again))
    assert port_of(two, recipes.API_SERVER) != port_of(again, recipes.API_SERVER)
    asyncio.run(eventually(lambda: phase_of_sleeper(again) == "Running"))
    assert sleeper.is_running()
    assert status.is_whole(status.report(one))

    lifecycle.down("two")

    assert not (home / "two").exists()
    assert [] == [each.name for each in again.components if psutil.pid_exists(each.pid)]
    assert all(is_free(urlsplit(each.url).port or 0) for each in again.components if each.url)
    assert not sleeper.is_running()
    assert ["one"] == state.names()
    assert status.is_whole(status.report(one))


def start_sleeper(cluster: Cluster) -> psutil.Process:
    """The process of a pod that sleeps on the first node."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "sleeper"},
        "spec": {
            "nodeName": "node-0",
            "containers": [{"name": "main", "image": "local", "command": list(SLEEP)}],
        },
    }
    ask(cluster, lambda kube: kube.create(PODS.path("default"), pod))

    def found() -> list[psutil.Process]:
        return [each for each in psutil.process_iter(["cmdline"]) if is_sleeper(each)]

    return asyncio.run(eventually(found))[0]


def is_sleeper(process: psutil.Process) -> bool:
    # The exact arguments: those of a shell or launcher around it contain them too.
    return tuple(process.info["cmdline"] or ()) == SLEEP


def phase_of_sleeper(cluster: Cluster) -> str:
    pod = ask(cluster, lambda kube: kube.get(PODS.path("default", "sleeper")))
    return str(pod["status"]["phase"])


def port_of(cluster: Cluster, name: str) -> int:
    component = cluster.component(name)
    assert component is not None
    return urlsplit(component.url or "").port or 0


SLEEP = ("sleep", "98765.4321")
MUSTER = (sys.executable, "-c", "from muster_cli.main import main; main()", "local")


def token_in(kubeconfig: Path) -> str:
    return str(yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]["token"])


def ask(
    cluster: Cluster,
    question: Callable[[Kube], Coroutine[Any, Any, T]],
    kubeconfig: Path | None = None,
) -> T:
    """What the API server of *cluster* answers."""

    async def asking() -> T:
        async with await Kube.connect(kubeconfig or cluster.kubeconfig) as kube:
            return await question(kube)

    return blocking(asking())
