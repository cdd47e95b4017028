"""What process nodes do when they, their table or their process change."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from clusters import RunningCluster
from eventually import eventually, stays
from muster_kube import NODES, PODS, ApiError, ApiNotFound
from muster_local.nodes.table import NodeEntry, read_nodes, set_down, write_nodes
from process_nodes import (
    Namespace,
    NodeProcess,
    is_alive,
    is_ready,
    namespace_of,
    node_process,
    pod,
    python,
    shell,
    terminated,
)

pytestmark = pytest.mark.integration


@pytest.fixture
async def here(cluster: RunningCluster, namespace: str) -> AsyncIterator[Namespace]:
    async with namespace_of(cluster, namespace) as found:
        yield found


SLEEP = "import os, time; print(os.getpid()); time.sleep(600)"
UNTIL_TOLD = "echo $PPID; until [ -e /shared/go ]; do sleep 0.05; done; exit 5"


@pytest.fixture(scope="module")
def nodes(
    cluster: RunningCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NodeProcess]:
    """One process for all tests that do not end it, with a node for each of them."""
    names = ("orphaned", "changed", "removed", "mortal")
    directory = tmp_path_factory.mktemp("nodes")
    with node_process(cluster, directory, *(NodeEntry(name) for name in names)) as process:
        yield process
        assert "Traceback" not in process.log.read_text()


async def test_a_container_whose_launcher_is_killed_leaves_nothing(
    nodes: NodeProcess, here: Namespace
) -> None:
    script = "setsid sleep 600 & echo $!; sh -c 'echo $PPID'; exec sleep 600"
    await here.create(pod("orphan", "orphaned", shell(script)))
    text = await eventually(lambda: _log(here, "orphan", lines=2))
    daemon, main = (int(line) for line in text.split())
    os.kill(psutil.Process(main).ppid(), 9)
    found = await here.in_phase("orphan", "Failed")
    ended = terminated(found)
    assert (ended["exitCode"], ended["reason"]) == (137, "ContainerStatusUnknown")
    assert not is_alive(daemon)
    assert not is_alive(main)


async def test_nodes_come_and_go_with_the_table(nodes: NodeProcess, here: Namespace) -> None:
    await here.create(pod("on-removed", "removed", python(SLEEP)))
    child = int(await eventually(lambda: _log(here, "on-removed")))
    others = [entry for entry in read_nodes(nodes.directory) if entry.name != "removed"]
    fewer = [replace(each, gpus=2) if each.name == "changed" else each for each in others]
    write_nodes(nodes.directory, [*fewer, NodeEntry("added", gpus=3)])
    await eventually(lambda: is_ready(here.kube, "added"))
    await eventually(lambda: _has_gpus(here, "changed", "2"))
    await eventually(lambda: _is_gone(here, "removed"))
    assert not is_alive(child)
    write_nodes(nodes.directory, fewer)
    await eventually(lambda: _is_gone(here, "added"))


async def test_a_node_that_dies_says_nothing_and_comes_back_without_its_pods(
    nodes: NodeProcess, here: Namespace
) -> None:
    others = [shell("sleep 600", f"other-{n}") for n in range(4)]
    await here.create(pod("victim", "mortal", python(SLEEP), *others))
    child = int(await eventually(lambda: _log(here, "victim", container="main")))
    await eventually(lambda: _seems_to_run(here, "victim"))
    set_down(nodes.directory, "mortal")
    await eventually(lambda: not is_alive(child))
    await stays(lambda: _seems_to_run(here, "victim"), during=0.5)
    set_down(nodes.directory, "mortal", down=False)
    found = await here.in_phase("victim", "Failed")
    assert terminated(found)["exitCode"] == 137


async def test_a_killed_node_process_finds_its_pods_again_and_a_stopped_one_ends_them(
    cluster: RunningCluster, here: Namespace, tmp_path: Path
) -> None:
    node, shared = NodeEntry("restarted", gpus=2), tmp_path / "shared"
    shared.mkdir()
    volumes = [{"name": "shared", "hostPath": {"path": str(shared)}}]
    mounts = [{"name": "shared", "mountPath": "/shared"}]
    gpus = {"limits": {"nvidia.com/gpu": "1"}}
    waits = shell(UNTIL_TOLD, volumeMounts=mounts, resources=gpus)
    with node_process(cluster, tmp_path / "nodes", node) as process:
        await here.create(pod("ends-later", node.name, waits, volumes=volumes))
        await here.create(pod("ends-meanwhile", node.name, waits, volumes=volumes))
        await here.create(pod("is-deleted-meanwhile", node.name, python(SLEEP)))
        for name in ("ends-later", "ends-meanwhile", "is-deleted-meanwhile"):
            await here.in_phase(name, "Running")
        daemon = int(await eventually(lambda: here.log("is-deleted-meanwhile")))
        process.kill()
        await here.kube.delete(PODS.path(here.name, "is-deleted-meanwhile"), grace_seconds=0)
        assert is_alive(daemon)
        process.start()
        await eventually(lambda: not is_alive(daemon))
        assert (await here.pod("ends-later"))["status"]["phase"] == "Running"
        # Both GPUs are still held.
        late = await here.run(pod("late", node.name, shell("true", resources=gpus)))
        assert late["status"]["reason"] == "OutOfnvidia.com/gpu"
        process.kill()
        (shared / "go").touch()
        await eventually(lambda: _exits(tmp_path / "nodes") == 2)
        process.start()
        for name in ("ends-later", "ends-meanwhile"):
            found = await here.in_phase(name, "Failed")
            assert terminated(found)["exitCode"] == 5
            assert found["status"]["containerStatuses"][0]["restartCount"] == 0
        await here.create(pod("stops", node.name, python(SLEEP)))
        child = int(await eventually(lambda: _log(here, "stops")))
        await asyncio.to_thread(process.stop)
        assert not is_alive(child)
        found = await here.pod("stops")
        assert (found["status"]["phase"], found["status"]["reason"]) == ("Failed", "Terminated")
        assert terminated(found)["exitCode"] == 143
        assert "Traceback" not in process.log.read_text()


async def test_without_namespaces_paths_and_names_are_substituted(
    cluster: RunningCluster, here: Namespace, tmp_path: Path
) -> None:
    node = NodeEntry("plain")
    script = """
import os, sys
from pathlib import Path
token = Path(os.environ["TOKEN"])
data = Path(sys.argv[1].removeprefix("file://"))
print(token.is_file(), data.is_dir(), os.environ["MASTER"], os.environ["OTHER"], Path.cwd().name)
"""
    container = python(
        script,
        args=["file:///data"],
        env=[
            {"name": "TOKEN", "value": "/var/run/secrets/muster.dev/token"},
            {"name": "MASTER", "value": f"job-0.job.{here.name}.svc:29500"},
            {"name": "OTHER", "value": "/database"},
        ],
        volumeMounts=[
            {"name": "token", "mountPath": "/var/run/secrets/muster.dev"},
            {"name": "data", "mountPath": "/data"},
        ],
    )
    token = {"serviceAccountToken": {"path": "token"}}
    volumes = [
        {"name": "token", "projected": {"sources": [token]}},
        {"name": "data", "emptyDir": {}},
    ]
    manifest = pod(
        "plain", node.name, container, volumes=volumes, hostname="job-0", subdomain="job"
    )
    with node_process(cluster, tmp_path / "nodes", node, flags=("--no-namespaces",)):
        assert await here.output(manifest) == "True True 127.0.0.1:29500 /database main"
        assert "mount paths" in (await here.events("plain"))["PathsSubstituted"]


def _exits(directory: Path) -> int:
    return len(list(directory.glob("pods/*/containers/*/*/exit.json")))


async def _log(here: Namespace, name: str, lines: int = 1, **query: str) -> str:
    try:
        text = await here.log(name, **query)
    except ApiError:
        return ""
    return text if len(text.splitlines()) >= lines else ""


async def _seems_to_run(here: Namespace, name: str) -> bool:
    status = (await here.pod(name))["status"]
    states = [each["state"] for each in status["containerStatuses"]]
    return status["phase"] == "Running" and all("running" in state for state in states)


async def _is_gone(here: Namespace, node: str) -> bool:
    try:
        await here.kube.get(NODES.path(name=node))
    except ApiNotFound:
        return True
    return False


async def _has_gpus(here: Namespace, node: str, want: str) -> bool:
    found = await here.kube.get(NODES.path(name=node))
    return bool(found["status"]["allocatable"].get("nvidia.com/gpu") == want)
