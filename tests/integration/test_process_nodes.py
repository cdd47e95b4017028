"""Pods on process nodes, through the real API server."""

import asyncio
import json
import shutil
import ssl
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from clusters import RunningCluster
from eventually import eventually
from muster_kube import NODES, PODS, ApiError
from muster_local.nodes.table import NodeEntry
from process_nodes import (
    Namespace,
    is_alive,
    namespace_of,
    node_process,
    pod,
    python,
    shell,
    terminated,
)

pytestmark = pytest.mark.integration

NODE = "process-a"
OTHER = "process-b"


@pytest.fixture(scope="module", autouse=True)
def nodes(cluster: RunningCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    directory = tmp_path_factory.mktemp("nodes")
    entries = (NodeEntry(NODE, gpus=4, labels={"muster.dev/rack": "r1"}), NodeEntry(OTHER, gpus=0))
    with node_process(cluster, directory, *entries, flags=("--restart-seconds", "0.2")) as process:
        yield
        assert "Traceback" not in process.log.read_text()


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


ENVIRONMENT = {
    "a value": ({"value": "plain"}, "plain"),
    "a value that refers to one before": (
        {"value": "$(FIRST)-and-$(UNKNOWN)-$$(FIRST)"},
        "1-and-$(UNKNOWN)-$(FIRST)",
    ),
    "the pod's name": ({"valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}, "table"),
    "a label": ({"valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['team']"}}}, "vision"),
    "an annotation": (
        {"valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['n']"}}},
        "x y",
    ),
    "the node": ({"valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}, NODE),
    "the pod's address": ({"valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}, "127.0.0.1"),
    "a limit": ({"valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}, "2"),
    "a request in its unit": (
        {"valueFrom": {"resourceFieldRef": {"resource": "requests.memory", "divisor": "1Mi"}}},
        "64",
    ),
    "a limit that is not set: what the node has": (
        {"valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Gi"}}},
        "256",
    ),
    "a key of a config map": (
        {"valueFrom": {"configMapKeyRef": {"name": "settings", "key": "rate"}}},
        "0.1",
    ),
    "a key of a secret": (
        {"valueFrom": {"secretKeyRef": {"name": "hidden", "key": "word"}}},
        "open",
    ),
    "an optional key that is missing": (
        {"valueFrom": {"secretKeyRef": {"name": "none", "key": "x", "optional": True}}},
        "(unset)",
    ),
}


async def test_the_environment_is_what_the_pod_says(here: Namespace) -> None:
    await _sources(here)
    names = {claim: f"V{index}" for index, claim in enumerate(ENVIRONMENT)}
    variables = [{"name": names[claim], **given} for claim, (given, _) in ENVIRONMENT.items()]
    script = "".join(f"echo ${{{name}-(unset)}};" for name in names.values())
    container = shell(
        script + "echo $(LOWER_rate) $0",
        command=["/bin/sh", "-c"],
        args=[script + "echo $LOWER_rate $MUSTER_SIMULATED_GPUS; command -v python", "$(FIRST)"],
        env=[{"name": "FIRST", "value": "1"}, *variables],
        envFrom=[
            {"prefix": "LOWER_", "configMapRef": {"name": "settings"}},
            {"secretRef": {"name": "none", "optional": True}},
        ],
        resources={"limits": {"cpu": "1500m"}, "requests": {"memory": "64Mi"}},
    )
    metadata = {"labels": {"team": "vision"}, "annotations": {"n": "x y"}}
    text = await here.output(pod("table", NODE, container, metadata=metadata))
    *got, last, program = text.splitlines()
    assert dict(zip(ENVIRONMENT, got, strict=True)) == {
        claim: want for claim, (_, want) in ENVIRONMENT.items()
    }
    assert last == "0.1 1"
    assert program.endswith("/bin/python")


VOLUMES = [
    {"name": "scratch", "emptyDir": {}},
    {"name": "settings", "configMap": {"name": "settings"}},
    {
        "name": "one",
        "secret": {
            "secretName": "hidden",
            "items": [{"key": "word", "path": "deep/er", "mode": 0o400}],
        },
    },
    {
        "name": "downward",
        "downwardAPI": {
            "items": [
                {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
                {
                    "path": "cpu",
                    "resourceFieldRef": {"containerName": "main", "resource": "limits.cpu"},
                },
            ]
        },
    },
    {
        "name": "mixed",
        "projected": {
            "sources": [
                {"serviceAccountToken": {"path": "token", "audience": "muster"}},
                {"configMap": {"name": "settings", "items": [{"key": "rate", "path": "r"}]}},
                {"secret": {"name": "hidden"}},
                {
                    "downwardAPI": {
                        "items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]
                    }
                },
            ]
        },
    },
]

READ = """
import json, os, base64, stat
from pathlib import Path
def text(path): return Path(path).read_text()
def writable(path):
    try: Path(path, "w").touch()
    except OSError as e: return e.strerror
    return "yes"
token = text("/var/run/secrets/muster.dev/token")
claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
api = Path("/var/run/secrets/kubernetes.io/serviceaccount")
print(json.dumps({
  "config": text("/settings/rate"), "host": text("/host/note"), "sub": text("/etc/one-file"),
  "secret": text("/one/deep/er"), "mode": oct(os.stat("/one/deep/er").st_mode & 0o777),
  "labels": text("/downward/labels"), "cpu": text("/downward/cpu"),
  "mixed": sorted(p for p in os.listdir("/var/run/secrets/muster.dev") if p[0] != "."),
  "audience": claims["aud"], "bound": claims["kubernetes.io"]["pod"]["name"],
  "api": sorted(p for p in os.listdir(api) if p[0] != "."),
  "namespace": (api / "namespace").read_text(),
  "scratch": writable("/scratch"), "read-only": writable("/settings"), "asked": writable("/host"),
  "where": os.getcwd(),
}))
"""


async def test_volumes_are_where_the_pod_expects_them(
    here: Namespace, tmp_path_factory: pytest.TempPathFactory
) -> None:
    await _sources(here)
    host = tmp_path_factory.mktemp("host")
    (host / "note").write_text("from the machine")
    container = python(
        READ,
        workingDir="/scratch/made/here",
        resources={"limits": {"cpu": "2"}},
        volumeMounts=[
            {"name": "scratch", "mountPath": "/scratch"},
            {"name": "settings", "mountPath": "/settings"},
            {"name": "settings", "mountPath": "/etc/one-file", "subPath": "rate"},
            {"name": "one", "mountPath": "/one"},
            {"name": "downward", "mountPath": "/downward"},
            {"name": "mixed", "mountPath": "/var/run/secrets/muster.dev"},
            {"name": "host", "mountPath": "/host", "readOnly": True},
        ],
    )
    volumes = [*VOLUMES, {"name": "host", "hostPath": {"path": str(host), "type": "Directory"}}]
    metadata = {"labels": {"a": "1"}}
    text = await here.output(pod("volumes", NODE, container, volumes=volumes, metadata=metadata))
    assert json.loads(text) == {
        "config": "0.1",
        "host": "from the machine",
        "sub": "0.1",
        "secret": "open",
        "mode": "0o400",
        "labels": 'a="1"',
        "cpu": "2",
        "mixed": ["n", "r", "token", "word"],
        "audience": ["muster"],
        "bound": "volumes",
        "api": ["ca.crt", "namespace", "token"],
        "namespace": here.name,
        "scratch": "yes",
        "read-only": "Read-only file system",
        "asked": "Read-only file system",
        "where": "/scratch/made/here",
    }
    assert not _is_on_the_machine("/settings")


async def test_a_pods_own_token_lets_it_speak_to_the_api_server(here: Namespace) -> None:
    script = """
import os, ssl, urllib.request
root = "/var/run/secrets/kubernetes.io/serviceaccount"
host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
authority = ssl.create_default_context(cafile=root + "/ca.crt")
request = urllib.request.Request(f"https://{host}:{port}/version")
request.add_header("Authorization", "Bearer " + open(root + "/token").read())
print(urllib.request.urlopen(request, context=authority).status)
"""
    assert await here.output(pod("client", NODE, python(script))) == "200"


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
    await eventually(lambda: _logged(here, "polite", "ready"))
    following = asyncio.create_task(here.log("polite", follow="true"))
    await here.kube.delete(PODS.path(here.name, "polite"))
    assert await following == "ready\nsaved"
    await eventually(lambda: _is_gone(here, "polite"))


async def test_a_script_behind_a_shell_gets_the_grace_as_well(here: Namespace) -> None:
    script = (
        "import signal, sys, time\n"
        "def save(*_): time.sleep(0.5); print('saved'); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, save); print('ready'); time.sleep(600)"
    )
    container = shell(f'python -c "{script}"; true')
    await here.create(pod("behind", NODE, container))
    await eventually(lambda: _logged(here, "behind", "ready"))
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
    await eventually(lambda: _logged(here, "stubborn", "ready"))
    await eventually(lambda: _logged(here, "stubborn", "daemon"))
    text = await here.log("stubborn")
    ids = [int(line.split()[1]) for line in text.splitlines()]
    assert all(is_alive(each) for each in ids)
    await here.kube.delete(PODS.path(here.name, "stubborn"))
    await eventually(lambda: _is_gone(here, "stubborn"))
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
    await eventually(lambda: _logged(here, "forced", ""))
    process = int(await here.log("forced"))
    await here.kube.delete(PODS.path(here.name, "forced"), grace_seconds=0)
    await eventually(lambda: not is_alive(process))


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
    await eventually(lambda: _logged(here, "early", "ready"))
    await here.create(pod("late", OTHER, shell("true"), subdomain="group"))
    await here.in_phase("early", "Succeeded")


async def test_gpus_are_given_out_once_and_a_pod_too_many_is_refused(here: Namespace) -> None:
    def holds(gpus: int, script: str) -> dict[str, Any]:
        return shell(script, resources={"limits": {"nvidia.com/gpu": str(gpus)}})

    show = "echo $NVIDIA_VISIBLE_DEVICES ${CUDA_VISIBLE_DEVICES-untouched}; exec sleep 600"
    for name in ("one", "two"):
        await here.create(pod(name, NODE, holds(2, show)))
        await eventually(lambda name=name: _logged(here, name, "untouched"))
    assert await here.log("one") == "0,1 untouched"
    assert await here.log("two") == "2,3 untouched"
    refused = await here.run(pod("three", NODE, holds(1, "true")))
    assert refused["status"]["reason"] == "OutOfnvidia.com/gpu"
    await here.kube.delete(PODS.path(here.name, "one"))
    await eventually(lambda: _is_gone(here, "one"))
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
    await _sources(here)
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


async def _sources(here: Namespace) -> None:
    await here.create(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "settings"},
            "data": {"rate": "0.1"},
        }
    )
    await here.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "hidden"},
            "stringData": {"word": "open"},
        }
    )


def _is_on_the_machine(path: str) -> bool:
    return Path(path).exists()


async def _logged(here: Namespace, name: str, words: str) -> bool:
    try:
        text = await here.log(name)
    except ApiError:
        return False
    return bool(text) and words in text


async def _is_gone(here: Namespace, name: str) -> bool:
    return not await here.exists(name)


async def _told(here: Namespace, name: str, reason: str) -> bool:
    return reason in await here.events(name)


async def _waiting_for(here: Namespace, name: str, reason: str) -> bool:
    statuses = (await here.pod(name))["status"].get("containerStatuses") or [{}]
    return statuses[0].get("state", {}).get("waiting", {}).get("reason") == reason
