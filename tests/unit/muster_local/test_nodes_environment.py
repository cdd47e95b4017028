"""Environment, downward API, substitution and names: what a container is told."""

from pathlib import Path
from typing import Any

import pytest

from muster.errors import InvalidSpec
from muster_local.nodes.environment import (
    command_of,
    environment_of,
    expand,
    leading,
    machine_environment,
)
from muster_local.nodes.fields import field_of, resource_of
from muster_local.nodes.hosts import HostsFiles, hostname_of, hostnames_of, long_names
from muster_local.nodes.launcher.launch import Mount
from muster_local.nodes.projection import File, TokenOrder, files_of, tokens_of
from muster_local.nodes.sources import Kind, Missing, Source, sources_of
from muster_local.nodes.substitution import substitution

EXPANSIONS = {
    "a known name": ("$(A)/x", "1/x"),
    "an unknown one stays": ("$(B)", "$(B)"),
    "a doubled dollar is one": ("$$(A) $$", "$(A) $"),
    "a shell's variable stays": ("$A ${A}", "$A ${A}"),
    "an open one stays": ("$(A", "$(A"),
    "two in a row": ("$(A)$(A)", "11"),
}


@pytest.mark.parametrize("claim", EXPANSIONS)
def test_references_are_expanded(claim: str) -> None:
    text, want = EXPANSIONS[claim]
    assert expand(text, {"A": "1"}) == want


def _pod(**spec: Any) -> dict[str, Any]:
    metadata = {
        "name": "p",
        "namespace": "ns",
        "uid": "u",
        "labels": {"b": 'say "x"\n', "a": "1"},
        "annotations": {"k": "v"},
    }
    return {"metadata": metadata, "spec": {"nodeName": "n", "containers": [], **spec}}


FIELDS = {
    "metadata.name": "p",
    "metadata.namespace": "ns",
    "metadata.uid": "u",
    "metadata.labels": 'a="1"\nb="say \\"x\\"\\n"',
    "metadata.labels['a']": "1",
    "metadata.labels['none']": "",
    "metadata.annotations['k']": "v",
    "spec.nodeName": "n",
    "spec.serviceAccountName": "",
    "status.hostIPs": "127.0.0.1",
}


@pytest.mark.parametrize("path", FIELDS)
def test_a_field_is_told(path: str) -> None:
    assert field_of(_pod(), path) == FIELDS[path]


def test_an_unknown_field_is_named() -> None:
    with pytest.raises(InvalidSpec, match=r"status\.phase"):
        field_of(_pod(), "status.phase")


LIMITED = {"name": "main", "resources": {"limits": {"cpu": "1500m", "memory": "1Gi"}}}
RESOURCES = {
    "whole units, rounded up": ({"resource": "limits.cpu"}, "2"),
    "in a unit": ({"resource": "limits.cpu", "divisor": "1m"}, "1500"),
    "a divisor of zero is one": ({"resource": "limits.cpu", "divisor": "0"}, "2"),
    "memory in bytes": ({"resource": "limits.memory"}, "1073741824"),
    "a missing limit is the node's": ({"resource": "limits.nvidia.com/gpu"}, "8"),
    "a missing request is nothing": ({"resource": "requests.cpu"}, "0"),
    "of another container": ({"resource": "limits.cpu", "containerName": "side"}, "7"),
}


@pytest.mark.parametrize("claim", RESOURCES)
def test_a_resource_is_told(claim: str) -> None:
    reference, want = RESOURCES[claim]
    side = {"name": "side", "resources": {"limits": {"cpu": "7"}}}
    pod = _pod(containers=[LIMITED, side])
    assert resource_of(pod, LIMITED, reference, {"nvidia.com/gpu": "8"}) == want


def test_a_container_sees_little_of_the_machines_environment() -> None:
    outer = {"HOME": "/root", "AWS_SECRET_ACCESS_KEY": "x", "PATH": "/bin:/venv/bin"}
    assert machine_environment(outer, "/venv/bin") == {"HOME": "/root", "PATH": "/venv/bin:/bin"}
    assert leading("", "/venv/bin") == "/venv/bin"


SETTINGS = Source(Kind.CONFIG_MAP, "settings")


def _environment(container: dict[str, Any], **sources: dict[str, bytes]) -> dict[str, str]:
    found = {Source(Kind.CONFIG_MAP, name): content for name, content in sources.items()}
    return environment_of(_pod(), container, found, platform={"P": "p"}, allocatable={})


def test_env_wins_over_env_from_and_both_over_the_platform() -> None:
    container = {
        "envFrom": [{"configMapRef": {"name": "settings"}}],
        "env": [{"name": "B", "value": "2"}, {"name": "C", "value": "$(A)$(B)$(P)"}],
    }
    variables = _environment(container, settings={"A": b"1", "B": b"1", "P": b"q"})
    assert variables == {"P": "q", "A": "1", "B": "2", "C": "12q"}
    assert command_of({"command": ["run"], "args": ["$(C)"]}, variables) == ("run", "12q")


MISSING = {
    "a config map": {"envFrom": [{"configMapRef": {"name": "none"}}]},
    "a key": {
        "env": [
            {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "none"}}}
        ]
    },
}


@pytest.mark.parametrize("claim", MISSING)
def test_what_is_missing_is_waited_for(claim: str) -> None:
    with pytest.raises(Missing, match="none"):
        _environment(MISSING[claim], settings={})


def test_an_unknown_origin_of_a_value_is_named() -> None:
    with pytest.raises(InvalidSpec, match="fileKeyRef"):
        _environment({"env": [{"name": "A", "valueFrom": {"fileKeyRef": {}}}]})


PROJECTED = {
    "name": "v",
    "projected": {
        "defaultMode": 0o400,
        "sources": [
            {"serviceAccountToken": {"path": "token", "audience": "muster"}},
            {
                "configMap": {
                    "name": "settings",
                    "items": [{"key": "a", "path": "x/y", "mode": 0o640}],
                }
            },
            {"secret": {"name": "none", "optional": True}},
        ],
    },
}


def test_a_projected_volume_is_put_together() -> None:
    order = TokenOrder("token", "muster", 3600)
    assert tokens_of(PROJECTED) == (order,)
    sources = {SETTINGS: {"a": b"1", "b": b"2"}}
    files = files_of(PROJECTED, _pod(), sources, {order: "secret"}, allocatable={})
    assert files == (File("token", b"secret", 0o400), File("x/y", b"1", 0o640))


def test_all_that_a_pod_refers_to_is_fetched() -> None:
    container = {
        "name": "main",
        "envFrom": [{"secretRef": {"name": "s1"}}],
        "env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c1", "key": "k"}}}],
    }
    pod = _pod(
        containers=[container],
        initContainers=[{"name": "i", "envFrom": [{"configMapRef": {"name": "c2"}}]}],
        volumes=[{"name": "s", "secret": {"secretName": "s2"}}, PROJECTED],
    )
    assert {str(source) for source in sources_of(pod)} == {
        'secret "s1"',
        'secret "s2"',
        'secret "none"',
        'configmap "c1"',
        'configmap "c2"',
        'configmap "settings"',
    }


MOUNTS = (Mount("/real/data", "/data"), Mount("/real/deep", "/data/deep"))
SUBSTITUTIONS = {
    "a path": ("/data", "/real/data"),
    "below a path": ("--dir=/data/x", "--dir=/real/data/x"),
    "the innermost counts": ("/data/deep/x", "/real/deep/x"),
    "a file URL": ("file:///data/x", "file:///real/data/x"),
    "not a longer name": ("/database /data-2", "/database /data-2"),
    "not the end of another path": ("/mnt/data ./data", "/mnt/data ./data"),
    "not the path of a bucket": ("s3://bucket/data", "s3://bucket/data"),
    "a name": ("tcp://job-0.job:1", "tcp://127.0.0.1:1"),
    "the longest name": ("job-0.job.ns.svc", "127.0.0.1"),
    "not another name": ("job-0.jobs xjob-0.job", "job-0.jobs xjob-0.job"),
}


@pytest.mark.parametrize("claim", SUBSTITUTIONS)
def test_paths_and_names_are_substituted_where_they_are_meant(claim: str) -> None:
    text, want = SUBSTITUTIONS[claim]
    assert substitution(MOUNTS, ("job-0.job", "job-0.job.ns.svc"))(text) == want


def test_nothing_to_substitute_changes_nothing() -> None:
    assert substitution((), ())("/data job-0.job") == "/data job-0.job"


def _replica(index: int, nodes: str = "2") -> dict[str, Any]:
    container = {"name": "main", "env": [{"name": "PET_NNODES", "value": nodes}]}
    pod = _pod(containers=[container], hostname=f"job-{index}", subdomain="job")
    pod["metadata"] |= {"labels": {"muster.dev/job": "job"}, "uid": f"u{index}"}
    return pod


def test_the_names_of_all_replicas_are_known_from_the_start() -> None:
    assert hostnames_of(_replica(0)) == ("job-0", "job-1")
    assert hostnames_of(_pod(hostname="alone")) == ("alone",)
    assert hostnames_of(_replica(0, nodes="many")) == ("job-0",)
    assert "job-1.job.ns.svc" in long_names("job-1", _replica(0))


def test_a_host_name_is_cut_as_the_kubelet_does() -> None:
    assert hostname_of(_pod(hostname="a" * 62 + "-b")) == "a" * 62


def test_a_hosts_file_is_shared_changed_in_place_and_removed_with_the_last(tmp_path: Path) -> None:
    files = HostsFiles(tmp_path)
    one, other = _pod(hostname="one", subdomain="g"), _pod(hostname="other", subdomain="g")
    other["metadata"] |= {"uid": "u2"}
    file = files.join(one)
    inode = file.stat().st_ino
    assert files.join(other) == file
    assert file.stat().st_ino == inode
    assert "127.0.0.1 other.g.ns.svc.cluster.local other.g.ns.svc" in file.read_text()
    assert "one.g" in files.names(other)
    files.leave(one)
    assert file.exists()
    files.leave(other)
    assert not file.exists()
