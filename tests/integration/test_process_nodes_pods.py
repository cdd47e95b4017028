"""What a node shows, which pods it takes, and who may read their logs."""

import asyncio
import shutil
import ssl
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp
import pytest

from clusters import RunningCluster
from eventually import eventually
from muster_kube import NODES, PODS
from process_nodes import (
    NODE,
    OTHER,
    Namespace,
    create_sources,
    has_logged,
    is_gone,
    namespace_of,
    pod,
    python,
    shell,
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


async def test_a_node_shows_what_it_claims_to_have(here: Namespace) -> None:
    node = await here.kube.get(NODES.path(name=NODE))
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "4"
    assert node["metadata"]["labels"]["muster.dev/simulated"] == "true"
    assert node["metadata"]["labels"]["muster.dev/rack"] == "r1"
    other = await here.kube.get(NODES.path(name=OTHER))
    assert "nvidia.com/gpu" not in other["status"]["allocatable"]
    lease = await here.kube.get(
        f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{NODE}"
    )
    assert lease["spec"]["holderIdentity"] == NODE


async def test_a_pod_runs_and_its_output_is_its_log(here: Namespace) -> None:
    text = await here.output(pod("hello", NODE, shell("echo hello; echo there >&2")))
    assert sorted(text.splitlines()) == ["hello", "there"]
    found = await here.pod("hello")
    assert found["status"]["podIP"] == "127.0.0.1"
    assert {c["type"]: c["status"] for c in found["status"]["conditions"]} == {
        "PodReadyToStartContainers": "False",
        "Initialized": "True",
        "Ready": "False",
        "ContainersReady": "False",
        "PodScheduled": "True",
    }
    assert "example/any is not pulled" in (await here.events("hello"))["ImageIgnored"]


async def test_pods_of_one_subdomain_find_each_other_by_name(here: Namespace) -> None:
    script = f"""
import socket
names = ["job-0", "job-1.job", "job-2.job.{here.name}", "job-0.job.{here.name}.svc"]
print(socket.gethostname(), *(socket.gethostbyname(name) for name in names))
"""
    container = python(script, env=[{"name": "PET_NNODES", "value": "3"}])
    metadata = {"labels": {"muster.dev/job": "job"}}
    manifest = pod(
        "job-1-0-0", NODE, container, hostname="job-0", subdomain="job", metadata=metadata
    )
    assert await here.output(manifest) == "job-0 " + " ".join(["127.0.0.1"] * 4)


async def test_a_pod_sees_the_names_of_those_that_come_later(here: Namespace) -> None:
    script = """
import socket, time
print("ready")
while True:
    try: socket.gethostbyname("late.group"); break
    except OSError: time.sleep(0.05)
"""
    await here.create(pod("early", NODE, python(script), subdomain="group"))
    await eventually(lambda: has_logged(here, "early", "ready"))
    await here.create(pod("late", OTHER, shell("true"), subdomain="group"))
    await here.in_phase("early", "Succeeded")


async def test_gpus_are_given_out_once_and_a_pod_too_many_is_refused(here: Namespace) -> None:
    def holds(gpus: int, script: str) -> dict[str, Any]:
        return shell(script, resources={"limits": {"nvidia.com/gpu": str(gpus)}})

    show = "echo $NVIDIA_VISIBLE_DEVICES ${CUDA_VISIBLE_DEVICES-untouched}; exec sleep 600"
    for name in ("one", "two"):
        await here.create(pod(name, NODE, holds(2, show)))
        await eventually(lambda name=name: has_logged(here, name, "untouched"))
    assert await here.log("one") == "0,1 untouched"
    assert await here.log("two") == "2,3 untouched"
    refused = await here.run(pod("three", NODE, holds(1, "true")))
    assert refused["status"]["reason"] == "OutOfnvidia.com/gpu"
    await here.kube.delete(PODS.path(here.name, "one"))
    await eventually(lambda: is_gone(here, "one"))
    assert await here.output(pod("four", NODE, holds(2, "echo $NVIDIA_VISIBLE_DEVICES"))) == "0,1"


REFUSED = {
    "a template without a command": (
        pod("bad", NODE, {"name": "main", "image": "example/any"}),
        "NoCommand",
        "neither command nor args",
    ),
    "a volume of a kind that needs a real cluster": (
        pod(
            "bad",
            NODE,
            shell("true"),
            volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}],
        ),
        "UnsupportedVolume",
        "persistentVolumeClaim",
    ),
}


@pytest.mark.parametrize("claim", REFUSED)
async def test_what_cannot_be_run_fails_with_the_reason(here: Namespace, claim: str) -> None:
    manifest, reason, words = REFUSED[claim]
    found = await here.run(manifest)
    assert (found["status"]["phase"], found["status"]["reason"]) == ("Failed", reason)
    assert words in found["status"]["message"]
    assert words in (await here.events("bad"))[reason]


async def test_a_missing_host_directory_keeps_the_pod_waiting(
    here: Namespace, tmp_path_factory: pytest.TempPathFactory
) -> None:
    missing = tmp_path_factory.mktemp("later") / "data"
    volume = {"name": "v", "hostPath": {"path": str(missing), "type": "Directory"}}
    mounts = [{"name": "v", "mountPath": "/data"}]
    container = shell("cat /data/x", volumeMounts=mounts)
    await here.create(pod("waits", NODE, container, volumes=[volume]))
    await eventually(lambda: _told(here, "waits", "FailedMount"))
    waiting = (await here.pod("waits"))["status"]["containerStatuses"][0]["state"]["waiting"]
    assert waiting["reason"] == "ContainerCreating"
    missing.mkdir()
    (missing / "x").write_text("came late")
    await here.in_phase("waits", "Succeeded")
    assert await here.log("waits") == "came late"


async def test_a_missing_config_map_is_waited_for(here: Namespace) -> None:
    reference = {"configMapKeyRef": {"name": "settings", "key": "rate"}}
    container = shell("echo $RATE", env=[{"name": "RATE", "valueFrom": reference}])
    await here.create(pod("waits", NODE, container))
    await eventually(lambda: _waiting_for(here, "waits", "CreateContainerConfigError"))
    await create_sources(here)
    await here.in_phase("waits", "Succeeded")
    assert await here.log("waits") == "0.1"


LOGS = {
    "all": ({}, "1\n2\n3"),
    "the last": ({"tailLines": "1"}, "3"),
    "no more than so many bytes": ({"limitBytes": "3"}, "1\n2"),
    "of the last hour": ({"sinceSeconds": "3600"}, "1\n2\n3"),
    "since tomorrow": ({"sinceTime": "2100-01-01T00:00:00Z"}, ""),
}


async def test_logs_are_cut_as_asked(here: Namespace) -> None:
    await here.run(pod("counts", NODE, shell("echo 1; echo 2; echo 3")))
    got = {claim: await here.log("counts", **query) for claim, (query, _) in LOGS.items()}
    assert got == {claim: want for claim, (_, want) in LOGS.items()}
    stamped = await here.log("counts", timestamps="true", tailLines="1")
    assert stamped.endswith("Z 3")


async def test_kubectl_follows_a_log_to_the_end_of_the_container(
    cluster: RunningCluster, here: Namespace
) -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not installed; the same is tested through the raw API")
    await here.create(pod("slow", NODE, shell("for i in 1 2 3; do echo $i; sleep 0.1; done")))
    await here.in_phase("slow", "Running", "Succeeded")
    process = await asyncio.create_subprocess_exec(
        *(kubectl, "--kubeconfig", str(cluster.bootstrap_kubeconfig)),
        *("-n", here.name, "logs", "-f", "slow"),
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await asyncio.wait_for(process.communicate(), 20)
    assert output == b"1\n2\n3\n"


async def test_nobody_but_the_api_server_may_ask_a_node(
    cluster: RunningCluster, here: Namespace
) -> None:
    node = await here.kube.get(NODES.path(name=NODE))
    port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
    pki = cluster.directory / "pki"
    answers = {}
    for name in ("apiserver-kubelet-client", "bootstrap"):
        context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
        context.load_cert_chain(pki / f"{name}.crt", pki / f"{name}.key")
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"https://127.0.0.1:{port}/healthz", ssl=context) as answer,
        ):
            answers[name] = answer.status
    assert answers == {"apiserver-kubelet-client": 200, "bootstrap": 403}
    context = ssl.create_default_context(cafile=str(pki / "ca.crt"))
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientError):
            await session.get(f"https://127.0.0.1:{port}/healthz", ssl=context)


async def _told(here: Namespace, name: str, reason: str) -> bool:
    return reason in await here.events(name)


async def _waiting_for(here: Namespace, name: str, reason: str) -> bool:
    statuses = (await here.pod(name))["status"].get("containerStatuses") or [{}]
    return statuses[0].get("state", {}).get("waiting", {}).get("reason") == reason
