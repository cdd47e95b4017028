"""How containers start one after another, restart and end, and what is left of them."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from clusters import RunningCluster
from eventually import eventually
from muster_kube import PODS
from process_nodes import (
    NODE,
    Namespace,
    has_logged,
    is_alive,
    is_gone,
    namespace_of,
    pod,
    python,
    shell,
    terminated,
    two_nodes,
)

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module", autouse=True)
def nodes(cluster: RunningCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with two_nodes(cluster, tmp_path_factory.mktemp("nodes")):
        yield


@pytest.fixture
async def here(cluster: RunningCluster, namespace: str) -> AsyncIterator[Namespace]:
    async with namespace_of(cluster, namespace) as found:
        yield found


ENDINGS = {
    "success": ("exit 0", "Succeeded", {"exitCode": 0, "reason": "Completed"}),
    "an exit code": ("exit 7", "Failed", {"exitCode": 7, "reason": "Error"}),
    "a signal": (
        "sh -c 'kill -SEGV $PPID'; sleep 9",
        "Failed",
        {"exitCode": 139, "signal": 11, "reason": "Error"},
    ),
    "a message": (
        "echo why > /dev/termination-log; exit 1",
        "Failed",
        {"exitCode": 1, "message": "why"},
    ),
    "no message: the end of the log": (
        "echo one; echo; echo two; exit 1",
        "Failed",
        {"exitCode": 1, "message": "one\n\ntwo"},
    ),
}


@pytest.mark.parametrize("claim", ENDINGS)
async def test_how_a_container_ends_is_in_the_status(here: Namespace, claim: str) -> None:
    script, phase, want = ENDINGS[claim]
    found = await here.run(pod("ends", NODE, shell(script)))
    ended = terminated(found)
    assert found["status"]["phase"] == phase
    assert {key: ended.get(key) for key in want} == want


async def test_the_traceback_of_a_script_that_raises_is_in_log_and_status(here: Namespace) -> None:
    found = await here.run(pod("raises", NODE, python("raise ValueError('no such epoch')")))
    assert terminated(found)["message"].endswith("ValueError: no such epoch")
    assert "Traceback" in await here.log("raises")


async def test_a_command_that_does_not_exist_is_named(here: Namespace) -> None:
    found = await here.run(pod("typo", NODE, shell("", command=["pythn", "train.py"])))
    ended = terminated(found)
    assert (ended["exitCode"], ended["reason"]) == (128, "StartError")
    assert "cannot run pythn" in ended["message"]


async def test_init_containers_run_one_by_one_before_the_others(here: Namespace) -> None:
    def step(name: str) -> dict[str, Any]:
        mounts = [{"name": "shared", "mountPath": "/shared"}]
        return shell(f"echo {name} >> /shared/steps; cat /shared/steps", name, volumeMounts=mounts)

    found = await here.run(
        pod(
            "steps",
            NODE,
            step("main"),
            step("beside"),
            initContainers=[step("first"), step("second")],
            volumes=[{"name": "shared", "emptyDir": {}}],
        )
    )
    assert found["status"]["phase"] == "Succeeded"
    assert await here.log("steps", container="second") == "first\nsecond"
    assert (await here.log("steps", container="main")).startswith("first\nsecond\n")


async def test_an_init_container_that_fails_keeps_the_others_from_starting(
    here: Namespace,
) -> None:
    manifest = pod("broken", NODE, shell("true"), initContainers=[shell("exit 3", "first")])
    found = await here.run(manifest)
    assert found["status"]["phase"] == "Failed"
    first = found["status"]["initContainerStatuses"][0]["state"]["terminated"]
    assert first["exitCode"] == 3
    assert "waiting" in found["status"]["containerStatuses"][0]["state"]


async def test_a_sidecar_runs_beside_the_others_and_ends_after_them(here: Namespace) -> None:
    mounts = [{"name": "shared", "mountPath": "/shared"}]
    sidecar = shell(
        "trap 'exit 0' TERM; touch /shared/up; while :; do sleep 0.05; done",
        "side",
        restartPolicy="Always",
        volumeMounts=mounts,
    )
    main = shell("until [ -e /shared/up ]; do sleep 0.05; done", volumeMounts=mounts)
    volumes = [{"name": "shared", "emptyDir": {}}]
    found = await here.run(pod("sidecar", NODE, main, initContainers=[sidecar], volumes=volumes))
    assert found["status"]["phase"] == "Succeeded"
    side = found["status"]["initContainerStatuses"][0]["state"]["terminated"]
    assert side["exitCode"] == 0


async def test_a_container_is_restarted_on_failure_until_it_succeeds(here: Namespace) -> None:
    script = "echo try; mkdir /shared/1 || mkdir /shared/2 || exit 0; exit 9"
    found = await here.run(
        pod(
            "again",
            NODE,
            shell(script, volumeMounts=[{"name": "shared", "mountPath": "/shared"}]),
            restartPolicy="OnFailure",
            volumes=[{"name": "shared", "emptyDir": {}}],
        )
    )
    status = found["status"]["containerStatuses"][0]
    assert (found["status"]["phase"], status["restartCount"]) == ("Succeeded", 2)
    assert status["lastState"]["terminated"]["exitCode"] == 9
    assert (await here.log("again", previous="true")).startswith("try\n")


async def test_an_active_deadline_ends_the_pod(here: Namespace) -> None:
    found = await here.run(
        pod(
            "late",
            NODE,
            shell("sleep 600"),
            activeDeadlineSeconds=1,
            terminationGracePeriodSeconds=1,
        )
    )
    assert found["status"]["reason"] == "DeadlineExceeded"


async def test_deletion_asks_first_and_the_pod_may_save(here: Namespace) -> None:
    script = "trap 'echo saved; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    await here.create(pod("polite", NODE, shell(script)))
    await eventually(lambda: has_logged(here, "polite", "ready"))
    following = asyncio.create_task(here.log("polite", follow="true"))
    await here.kube.delete(PODS.path(here.name, "polite"))
    assert await following == "ready\nsaved"
    await eventually(lambda: is_gone(here, "polite"))


async def test_a_script_behind_a_shell_gets_the_grace_as_well(here: Namespace) -> None:
    script = (
        "import signal, sys, time\n"
        "def save(*_): time.sleep(0.5); print('saved'); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, save); print('ready'); time.sleep(600)"
    )
    container = shell(f'python -c "{script}"; true')
    await here.create(pod("behind", NODE, container))
    await eventually(lambda: has_logged(here, "behind", "ready"))
    following = asyncio.create_task(here.log("behind", follow="true"))
    await here.kube.delete(PODS.path(here.name, "behind"))
    assert await following == "ready\nsaved"


STUBBORN = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print("daemon", os.getpid())
        time.sleep(600)
    os._exit(0)
print("ready", os.getpid())
time.sleep(600)
"""


async def test_after_the_grace_nothing_survives_not_even_a_daemon(here: Namespace) -> None:
    await here.create(pod("stubborn", NODE, python(STUBBORN), terminationGracePeriodSeconds=1))
    await eventually(lambda: has_logged(here, "stubborn", "ready"))
    await eventually(lambda: has_logged(here, "stubborn", "daemon"))
    text = await here.log("stubborn")
    ids = [int(line.split()[1]) for line in text.splitlines()]
    assert all(is_alive(each) for each in ids)
    await here.kube.delete(PODS.path(here.name, "stubborn"))
    await eventually(lambda: is_gone(here, "stubborn"))
    assert not any(is_alive(each) for each in ids)


async def test_a_container_that_ends_leaves_no_process(here: Namespace) -> None:
    script = "(setsid sleep 600 & echo $!) ; exit 0"
    text = await here.output(pod("daemon", NODE, shell(script)))
    assert not is_alive(int(text))


_DEAF = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(os.getpid())
time.sleep(600)
"""


async def test_a_pod_removed_by_force_ends_too(here: Namespace) -> None:
    await here.create(pod("forced", NODE, python(_DEAF)))
    await eventually(lambda: has_logged(here, "forced", ""))
    process = int(await here.log("forced"))
    await here.kube.delete(PODS.path(here.name, "forced"), grace_seconds=0)
    await eventually(lambda: not is_alive(process))
