"""The official download, from a server of our own."""

import hashlib
import io
import tarfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from muster.errors import Unavailable
from muster_local.binaries.download import download, published_sha256
from muster_local.places import machine
from muster_local.ports import free_ports
from muster_local.progress import quiet
from muster_local.versions import Project, project_of

CONTENT = b"a program" * 200_000
SUM = hashlib.sha256(CONTENT).hexdigest()
OTHER = hashlib.sha256(b"something else").hexdigest()

Serve = Callable[[dict[str, bytes]], str]


class Cut(bytes):
    """An answer that breaks off in the middle."""


@pytest.fixture
def serve() -> Iterator[Serve]:
    servers: list[ThreadingHTTPServer] = []

    def start(files: dict[str, bytes]) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                content = files.get(self.path)
                if content is None:
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(
                    content[: len(content) // 2 if isinstance(content, Cut) else None]
                )

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def at(base: str, component: str = "kube-apiserver", **changes: str | None) -> Project:
    project = project_of(component)
    return replace(
        project,
        download=f"{base}/{{component}}",
        checksum=f"{base}/sum",
        **changes,  # type: ignore[arg-type]
    )


def test_a_download_with_the_published_sum_is_taken(serve: Serve, tmp_path: Path) -> None:
    told: list[str] = []
    base = serve({"/kube-apiserver": CONTENT, "/sum": SUM.encode()})

    download(at(base), "kube-apiserver", tmp_path / "draft", told.append)

    assert CONTENT == (tmp_path / "draft").read_bytes()
    assert "downloading kube-apiserver v1.37.2" == told[0]
    assert told[-1].endswith("\n1 of 1 MiB")


def test_the_program_is_taken_out_of_an_archive(serve: Serve, tmp_path: Path) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        entry = tarfile.TarInfo("etcd-v3.6.16-{}-{}/etcd".format(*machine()))
        entry.size = len(CONTENT)
        tar.addfile(entry, io.BytesIO(CONTENT))
    archive = packed.getvalue()
    sums = f"{OTHER}  another\n{hashlib.sha256(archive).hexdigest()}  etcd\n"
    base = serve({"/etcd": archive, "/sum": sums.encode()})

    download(at(base, "etcd"), "etcd", tmp_path / "draft", quiet)

    assert CONTENT == (tmp_path / "draft").read_bytes()


REFUSED = {
    "a sum that is not the published one": (
        {"/kube-apiserver": CONTENT, "/sum": OTHER.encode()},
        f"has SHA-256 {SUM}, but {OTHER} is published",
    ),
    "a publisher without a sum": ({"/kube-apiserver": CONTENT, "/sum": b""}, "no SHA-256 of"),
    "a sum that is not there": ({"/kube-apiserver": CONTENT}, "404"),
    "a program that is not there": ({"/sum": SUM.encode()}, "404"),
    "a connection that breaks off": (
        {"/kube-apiserver": Cut(CONTENT), "/sum": SUM.encode()},
        "broke off after",
    ),
}


@pytest.mark.parametrize(("files", "why"), REFUSED.values(), ids=REFUSED)
def test_refused(files: dict[str, bytes], why: str, serve: Serve, tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=why):
        download(at(serve(files)), "kube-apiserver", tmp_path / "draft", quiet)

    assert [] == list(tmp_path.iterdir())


def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    base = f"http://127.0.0.1:{free_ports(1)[0]}"

    with pytest.raises(Unavailable, match=f"{base}/kube-apiserver: .*refused"):
        download(at(base), "kube-apiserver", tmp_path / "draft", quiet)


PUBLISHED = {
    "a bare sum": f"{SUM}\n",
    "a list of sums": f"{OTHER}  else\n{SUM}  kwok-linux-amd64\n",
    "a list of sums of binary files": f"{SUM} *kwok-linux-amd64\n",
    "what GitHub tells of a release": (
        f'{{"assets": [{{"name": "else", "digest": "sha256:{OTHER}"}},'
        f' {{"name": "kwok-linux-amd64", "digest": "sha256:{SUM}"}}]}}'
    ),
}
NOT_PUBLISHED = {
    "nothing": "",
    "a page": "<html>moved</html>",
    "sums of other files": f"{OTHER}  else\n",
    "a release without digests": '{"assets": [{"name": "kwok-linux-amd64", "digest": null}]}',
    "a release without assets": "{}",
}


@pytest.mark.parametrize("text", PUBLISHED.values(), ids=PUBLISHED)
def test_a_sum_is_read_from(text: str) -> None:
    assert SUM == published_sha256(text, "kwok-linux-amd64")


@pytest.mark.parametrize("text", NOT_PUBLISHED.values(), ids=NOT_PUBLISHED)
def test_no_sum_is_read_from(text: str) -> None:
    with pytest.raises(Unavailable, match="no SHA-256 of kwok-linux-amd64"):
        published_sha256(text, "kwok-linux-amd64")
