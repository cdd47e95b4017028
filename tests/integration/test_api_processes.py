"""The API and the recorder as processes: their start, their health, and their end."""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest

from clusters import RunningCluster
from eventually import eventually

pytestmark = pytest.mark.integration


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@asynccontextmanager
async def process(
    module: str, cluster: RunningCluster, **settings: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MUSTER_")}
    started = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        env={**kept, "KUBECONFIG": str(cluster.kubeconfig), "MUSTER_HTTP_HOST": "127.0.0.1"}
        | settings,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield started
    finally:
        if started.returncode is None:
            started.kill()
        await started.communicate()


@pytest.mark.parametrize("module", ["muster_api", "muster_api.recorder"])
async def test_a_process_migrates_gets_ready_and_ends_when_asked(
    module: str, cluster: RunningCluster, empty_url: str
) -> None:
    port = free_port()
    settings = {"MUSTER_HTTP_PORT": str(port), "MUSTER_DATABASE_URL": empty_url}
    async with (
        process(module, cluster, **settings) as started,
        httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client,
    ):

        async def is_ready() -> bool:
            assert started.returncode is None
            try:
                return (await client.get("/readyz")).status_code == 200
            except httpx2.TransportError:
                return False

        await eventually(is_ready, within=60)
        assert "muster_" in (await client.get("/metrics")).text
        assert (await client.get("/nothing")).headers["Content-Type"] == "application/problem+json"
        started.terminate()

        async with asyncio.timeout(30):
            assert await started.wait() == 0


async def test_a_port_in_use_is_said_in_one_line(cluster: RunningCluster, tmp_path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = {
            "MUSTER_HTTP_PORT": str(taken.getsockname()[1]),
            "MUSTER_DATABASE_URL": f"sqlite:///{tmp_path}/x.db",
        }
        async with process("muster_api", cluster, **settings) as started:
            _, errors = await started.communicate()

    last = errors.decode().strip().splitlines()[-1]
    assert (2, True) == (started.returncode, "MUSTER_HTTP_PORT" in last and "in use" in last)


async def test_a_setting_that_nobody_knows_stops_the_start(cluster: RunningCluster) -> None:
    async with process("muster_api", cluster, MUSTER_DATABSE_URL="x") as started:
        _, errors = await started.communicate()

    assert (2, True) == (started.returncode, "MUSTER_DATABSE_URL" in errors.decode())
