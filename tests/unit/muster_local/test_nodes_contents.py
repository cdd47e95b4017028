"""Volumes that the API fills, and the tokens in them, with an API server that is played."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from eventually import eventually
from muster.errors import InvalidSpec
from muster_kube import ApiError, ApiNotFound
from muster_local.nodes.contents import Contents
from muster_local.nodes.launcher.launch import Mount
from muster_local.nodes.projection import File
from muster_local.nodes.sources import Missing
from muster_local.nodes.storage import PodFiles
from muster_local.nodes.volumes import fill, mounts_of, place_of


class Server:
    """Gives out tokens one after the other; each lives as long as it is told."""

    def __init__(self, *lifetimes: float) -> None:
        self.lifetimes = list(lifetimes)
        self.orders: list[dict[str, Any]] = []

    async def get(self, path: str) -> dict[str, Any]:
        raise ApiNotFound(f"{path} is not there")

    async def create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self.orders.append(body["spec"])
        if self.lifetimes[0] < 0:
            raise ApiError(f"{path}: not now, {self.lifetimes.pop(0)}")
        expires = datetime.now(UTC) + timedelta(seconds=self.lifetimes.pop(0))
        token = f"token-{len(self.orders)}"
        return {"status": {"token": token, "expirationTimestamp": expires.isoformat()}}


TOKEN = {"serviceAccountToken": {"path": "token", "audience": "muster", "expirationSeconds": 900}}


def _pod(*volumes: dict[str, Any]) -> dict[str, Any]:
    return {
        "metadata": {"name": "p", "namespace": "ns", "uid": "u"},
        "spec": {"containers": [], "volumes": list(volumes)},
    }


def _contents(server: Server, directory: Path, *volumes: dict[str, Any]) -> Contents:
    return Contents(server, _pod(*volumes), PodFiles(directory), {})


async def test_a_token_is_bound_to_its_pod_and_renewed_before_it_ends(tmp_path: Path) -> None:
    server = Server(0.0, 3600.0)
    contents = _contents(server, tmp_path, {"name": "v", "projected": {"sources": [TOKEN]}})
    await contents.prepare()
    file = contents.places["v"] / "token"
    assert file.read_text() == "token-1"
    assert server.orders[0] == {
        "audiences": ["muster"],
        "expirationSeconds": 900,
        "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"},
    }
    keeping = asyncio.create_task(contents.keep_tokens())
    await eventually(lambda: file.read_text() == "token-2", every=0.01)
    keeping.cancel()
    assert len(list(contents.places["v"].iterdir())) == 3, "the old version is removed"


async def test_a_pod_without_tokens_has_nothing_to_renew(tmp_path: Path) -> None:
    contents = _contents(Server(), tmp_path, {"name": "v", "emptyDir": {}})
    await contents.prepare()
    await contents.keep_tokens()
    assert contents.places["v"].stat().st_mode & 0o777 == 0o777


async def test_what_is_missing_is_named(tmp_path: Path) -> None:
    contents = _contents(Server(), tmp_path, {"name": "v", "secret": {"secretName": "key"}})
    with pytest.raises(Missing, match='secret "key" not found'):
        await contents.prepare()


def test_a_volume_holds_exactly_its_files_from_one_moment_on(tmp_path: Path) -> None:
    fill(tmp_path, [File("a", b"1"), File("deep/b", b"2", 0o400)])
    fill(tmp_path, [File("a", b"3")])
    assert (tmp_path / "a").read_bytes() == b"3"
    assert not (tmp_path / "deep" / "b").exists()


HOST_PATHS = {
    "a directory that is not there": ("Directory", "none", Missing),
    "a file for a directory": ("Directory", "file", Missing),
    "a directory for a file": ("File", "directory", Missing),
    "a file for a socket": ("Socket", "file", Missing),
    "a directory": ("Directory", "directory", None),
    "a file": ("File", "file", None),
    "a directory that is made": ("DirectoryOrCreate", "made", None),
    "a file that is made": ("FileOrCreate", "made", None),
    "whatever is there": ("", "file", None),
}


@pytest.mark.parametrize("claim", HOST_PATHS)
def test_types_of_host_paths_are_honoured(tmp_path: Path, claim: str) -> None:
    kind, name, wrong = HOST_PATHS[claim]
    (tmp_path / "file").touch()
    (tmp_path / "directory").mkdir()
    volume = {"name": "v", "hostPath": {"path": str(tmp_path / name), "type": kind}}
    if wrong is not None:
        with pytest.raises(wrong):
            place_of(volume, tmp_path)
    else:
        assert place_of(volume, tmp_path).exists()


def test_a_sub_path_stays_in_its_volume(tmp_path: Path) -> None:
    volume = {"name": "v", "emptyDir": {}}
    (tmp_path / "out").symlink_to("/etc")

    def mounted(**mount: str) -> tuple[Mount, ...]:
        container = {"volumeMounts": [{"name": "v", "mountPath": "/x/", **mount}]}
        return mounts_of(container, {"v": volume}, {"v": tmp_path}, {"N": "1"})

    assert mounted() == (Mount(str(tmp_path), "/x"),)
    assert mounted(subPathExpr="run-$(N)") == (Mount(str(tmp_path / "run-1"), "/x"),)
    assert (tmp_path / "run-1").is_dir()
    with pytest.raises(InvalidSpec, match="out/passwd leads out"):
        mounted(subPath="out/passwd")
