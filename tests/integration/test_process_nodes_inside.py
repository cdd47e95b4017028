"""What a container finds inside: its environment, its volumes and its token."""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from clusters import RunningCluster
from process_nodes import (
    NODE,
    Namespace,
    create_sources,
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
    await create_sources(here)
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
    await create_sources(here)
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


def _is_on_the_machine(path: str) -> bool:
    return Path(path).exists()
