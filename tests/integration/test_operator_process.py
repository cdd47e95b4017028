"""The operator as a process: it starts, tells how it is, and stops."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from clusters import RunningCluster
from eventually import eventually
from operators import operating, operator_settings

pytestmark = pytest.mark.integration


@asynccontextmanager
async def process(**variables: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """`python -m muster_operator` with these variables."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("MUSTER_")}
    started = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "muster_operator",
        env={**inherited, "MUSTER_HTTP_HOST": "127.0.0.1", **variables},
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield started
    finally:
        if started.returncode is None:
            started.kill()
        await started.communicate()


@pytest.fixture
def account(cluster: RunningCluster) -> Path:
    return cluster.kubeconfig_of("muster-operator")


async def test_it_stops_within_five_seconds_of_sigterm(account: Path) -> None:
    async with process(KUBECONFIG=str(account), MUSTER_HTTP_PORT="0") as operator:
        assert operator.stderr is not None
        said = b""
        while b" synced " not in said:
            row = await operator.stderr.readline()
            assert row, f"it ended by itself: {said.decode()}"
            said += row
        before = time.monotonic()
        operator.send_signal(signal.SIGTERM)
        _, said = await operator.communicate()

        assert 0 == operator.returncode, said.decode()
        assert time.monotonic() - before < 5.0
        assert b"Traceback" not in said


WRONG = {
    "a setting that is none": ({"MUSTER_HTTP_PROT": "1"}, 2, b"MUSTER_HTTP_PROT: is no setting"),
    "no cluster to speak to": ({"KUBECONFIG": "/nowhere"}, 3, b"there is no file /nowhere"),
}


@pytest.mark.parametrize("claim", WRONG)
async def test_it_does_not_start_with(claim: str) -> None:
    variables, status, words = WRONG[claim]
    async with process(**variables) as operator:
        _, said = await operator.communicate()

        assert status == operator.returncode
        assert words in said
        assert 1 == len(said.strip().splitlines())


async def test_a_port_in_use_is_named(account: Path) -> None:
    async with operating(operator_settings(account)) as port:
        variables = {"KUBECONFIG": str(account), "MUSTER_HTTP_PORT": str(port)}
        async with process(**variables) as operator:
            _, said = await operator.communicate()

            assert 3 == operator.returncode
            assert f"MUSTER_HTTP_PORT: 127.0.0.1:{port} cannot be used".encode() in said


async def test_health_and_metrics_are_served(account: Path) -> None:
    async with operating(operator_settings(account)) as port, aiohttp.ClientSession() as client:

        async def text(path: str) -> str:
            async with client.get(f"http://127.0.0.1:{port}{path}") as answer:
                assert 200 == answer.status
                return await answer.text()

        assert "ok\n" == await text("/healthz")
        assert "ok\n" == await text("/readyz")

        async def has_cycled() -> bool:
            return "muster_cycle_seconds_count 0.0" not in await text("/metrics")

        await eventually(has_cycled)
        metrics = await text("/metrics")

        assert "muster_synced 1.0" in metrics
        assert 'muster_jobs{phase="Running"}' in metrics
        names = {row.split("{")[0].split(" ")[0] for row in metrics.splitlines() if row[0] != "#"}
        assert all(name.startswith("muster_") for name in names)
