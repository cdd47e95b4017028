"""A small real HTTP server that speaks the shapes of an API, and the command run against it."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import yaml

from muster_cli import main


@dataclass
class Server:
    """Answers from `routes`; a list there is a script, whose last answer stays."""

    url: str = ""
    routes: dict[str, Any] = field(default_factory=dict)
    requests: list[SimpleNamespace] = field(default_factory=list)

    def on(self, route: str, body: Any = None, status: int = 200) -> None:
        self.routes[route] = (status, body)

    def script(self, route: str, *bodies: Any) -> None:
        self.routes[route] = [(200, body) for body in bodies]

    def asked(self, method: str = "") -> list[str]:
        return [f"{r.method} {r.path}" for r in self.requests if r.method.startswith(method)]

    def answer(self, request: SimpleNamespace) -> tuple[int, Any]:
        self.requests.append(request)
        if "watch" in request.query:
            return 200, b""  # Nothing changed for as long as the watch lasted.
        found = self.routes.get(f"{request.method} {request.path}")
        if found is None:
            return 404, problem(404, f"there is no {request.path}")
        if isinstance(found, list):
            return found.pop(0) if len(found) > 1 else found[0]
        return found


def problem(
    status: int, detail: str, errors: list[dict[str, str]] | None = None
) -> dict[str, Any]:
    return {"type": "about:blank", "status": status, "detail": detail, "errors": errors or []}


@contextmanager
def serving() -> Iterator[Server]:
    server = Server()

    class Handler(BaseHTTPRequestHandler):
        def _any(self) -> None:
            parts = urlsplit(self.path)
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, body = server.answer(
                SimpleNamespace(
                    method=self.command,
                    path=parts.path,
                    query=dict(parse_qsl(parts.query)),
                    token=self.headers.get("Authorization"),
                    body=json.loads(raw) if raw else None,
                )
            )
            payload = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        do_GET = do_POST = do_PATCH = do_DELETE = _any  # noqa: N815 -- the library's names

        def log_message(self, *_: Any) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        http.daemon_threads = True
        server.url = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        http.shutdown()
        thread.join()


@pytest.fixture
def api() -> Iterator[Server]:
    """Muster's API."""
    with serving() as server:
        yield server


@pytest.fixture
def kube() -> Iterator[Server]:
    """The Kubernetes API server."""
    with serving() as server:
        yield server


@pytest.fixture
def kubeconfig(kube, tmp_path):
    """A kubeconfig with a token, whose context has the namespace `vision`."""
    file = tmp_path / "kubeconfig"
    file.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "here",
                "contexts": [
                    {
                        "name": "here",
                        "context": {"cluster": "c", "user": "u", "namespace": "vision"},
                    }
                ],
                "clusters": [{"name": "c", "cluster": {"server": kube.url}}],
                "users": [{"name": "u", "user": {"token": "secret"}}],
            }
        )
    )
    return file


@pytest.fixture
def muster(monkeypatch, tmp_path, capsys, api, kubeconfig) -> Callable[..., SimpleNamespace]:
    """Runs the command against the two servers; gives exit code and what it printed."""
    monkeypatch.setenv("MUSTER_API_URL", api.url)
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    def run(*arguments: str) -> SimpleNamespace:
        code = main.run(arguments)
        printed = capsys.readouterr()
        return SimpleNamespace(code=code, out=printed.out, err=printed.err)

    return run
