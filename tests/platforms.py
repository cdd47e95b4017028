"""Operator and API as processes on a test's API server, and what tests ask of them."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from apis import bearer
from clusters import RunningCluster, blocking
from eventually import eventually
from operators import Stage, kubelet, staged

Json = dict[str, Any]


@dataclass
class Platform:
    """Both processes, and a client of the API with the rights of an administrator."""

    stage: Stage
    client: httpx2.AsyncClient
    processes: "Processes"
    environment: dict[str, str]
    """With which the command finds the API."""

    async def get(self, path: str) -> Json:
        """The answer to a request that must be carried out."""
        answer = await self.client.get(path)
        assert 200 == answer.status_code, answer.text
        return dict(answer.json())

    def path(self, name: str) -> str:
        """Where the explanation of a job is."""
        return f"/api/v1/namespaces/{self.stage.namespace}/jobs/{name}/explain"

    async def explained(self, name: str, code: str, *, changes: int) -> Json:
        """The explanation of a job, once it has this code and so many changes: the operator may
        hear of a job before it hears of the nodes.
        """

        async def probe() -> Json | None:
            answer = await self.client.get(self.path(name))
            if answer.status_code != 200:
                return None
            found = dict(answer.json())
            assert (code, "scheduler") == (found["code"], found["source"]), found
            assert changes == len(found["changes"]), found
            return found

        found = await eventually(probe)
        assert found is not None
        return found

    async def command(self, *words: str) -> tuple[int, str, str]:
        """`muster` in a process of its own."""
        started = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            "import sys; from muster_cli.main import main; main()",
            *words,
            env=self.environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await started.communicate()
        assert started.returncode is not None
        return started.returncode, out.decode(), err.decode()


@dataclass
class Processes:
    """Operator and API, and where they answer."""

    operator: subprocess.Popen[bytes]
    operator_url: str
    api_url: str


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@contextmanager
def process(module: str, kubeconfig: Path, **settings: str) -> Iterator[subprocess.Popen[bytes]]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MUSTER_")}
    own = {"KUBECONFIG": str(kubeconfig), "MUSTER_HTTP_HOST": "127.0.0.1"}
    with subprocess.Popen(
        [sys.executable, "-m", module], env=kept | own | settings, stderr=subprocess.DEVNULL
    ) as started:
        try:
            yield started
        finally:
            started.kill()


@contextmanager
def running(cluster: RunningCluster, directory: Path) -> Iterator[Processes]:
    """Both, with the rights of their own accounts."""
    ports = [free_port() for _ in range(2)]
    operator_url, api_url = (f"http://127.0.0.1:{port}" for port in ports)
    accounts = [cluster.kubeconfig_of(name) for name in ("muster-operator", "muster-api")]
    of_operator = {
        "MUSTER_HTTP_PORT": str(ports[0]),
        "MUSTER_DECISIONS_FOLDER": str(directory / "decisions"),
        "MUSTER_RECORDER_WAIT": "500ms",
    }
    of_api = {
        "MUSTER_HTTP_PORT": str(ports[1]),
        "MUSTER_DATABASE_URL": f"sqlite:///{directory}/muster.db",
        "MUSTER_OPERATOR_URL": operator_url,
    }
    with (
        process("muster_operator", accounts[0], **of_operator) as operator,
        process("muster_api", accounts[1], **of_api),
    ):
        for url in (operator_url, api_url):
            blocking(eventually(lambda url=url: is_ready(url), within=60))  # type: ignore[misc]
        yield Processes(operator, operator_url, api_url)


async def is_ready(url: str) -> bool:
    async with httpx2.AsyncClient() as client:
        try:
            return (await client.get(f"{url}/readyz")).status_code == 200
        except httpx2.TransportError:
            return False


@asynccontextmanager
async def platform_of(
    processes: Processes, cluster: RunningCluster, namespace: str, home: Path
) -> AsyncIterator[Platform]:
    token = await asyncio.to_thread(cluster.token_of, "muster-admin")
    environment = {
        **os.environ,
        "MUSTER_API_URL": processes.api_url,
        "KUBECONFIG": str(cluster.kubeconfig),
        "MUSTER_HOME": str(home),
    }
    async with (
        staged(cluster.kubeconfig, namespace) as stage,
        kubelet(stage),
        httpx2.AsyncClient(
            base_url=processes.api_url, headers=bearer(token), timeout=60
        ) as client,
    ):
        yield Platform(stage, client, processes, environment)
