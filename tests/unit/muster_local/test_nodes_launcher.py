"""The launcher: one container as a real process, without any API server."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from eventually import eventually
from muster_local.nodes.instance import Instance, prepare
from muster_local.nodes.isolation import refused_because
from muster_local.nodes.launcher.launch import CLAIM, LAUNCH, LOG, MESSAGE, Launch, Mount, claim
from muster_local.nodes.leftovers import end_all
from muster_local.nodes.messages import last_lines
from process_nodes import is_alive

PYTHON = (sys.executable, "-u", "-c")


@asynccontextmanager
async def running(
    run: Path, *command: str, mounts: tuple[Mount, ...] = (), directory: str = "/"
) -> AsyncIterator[Instance]:
    """A command under a launcher; nothing of it is left after."""
    _make(run)
    launch = Launch(command, {"PATH": os.environ["PATH"]}, directory, mounts=mounts)
    instance = Instance.spawn(run, launch)
    try:
        await instance.ready()
        yield instance
    finally:
        instance.kill()
        await instance.wait()


def _make(run: Path) -> None:
    run.mkdir(parents=True, exist_ok=True)
    prepare(run)


def said(instance: Instance, words: str) -> bool:
    return (instance.run / LOG).exists() and words in (instance.run / LOG).read_text()


ENDINGS = {
    "an exit code": (("sh", "-c", "exit 4"), (4, 0, "")),
    "a signal": (("sh", "-c", "kill -KILL $$"), (137, 9, "")),
    "a command that is not there": (("nothing-here",), (128, 0, "cannot run nothing-here")),
}


@pytest.mark.parametrize("claim", ENDINGS)
async def test_how_a_command_ends_is_known(tmp_path: Path, claim: str) -> None:
    command, (code, number, words) = ENDINGS[claim]
    async with running(tmp_path, *command) as instance:
        how = await instance.wait()
    assert (how.code, how.signal) == (code, number)
    assert how.error.startswith(words)
    assert bool(how.error) == bool(words)


async def test_the_order_is_deleted_since_it_holds_secrets(tmp_path: Path) -> None:
    async with running(tmp_path, "true") as instance:
        await instance.wait()
    assert not (tmp_path / LAUNCH).exists()


async def test_output_of_the_last_moment_is_kept(tmp_path: Path) -> None:
    async with running(tmp_path, *PYTHON, "print('x' * 200_000); print('end', end='')") as found:
        await found.wait()
    assert last_lines(tmp_path).endswith("end")


FORKS = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(2):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            print("daemon", os.getpid())
            time.sleep(600)
        os._exit(0)
time.sleep(600)
"""


async def test_killing_reaches_what_left_its_session_and_its_parent(tmp_path: Path) -> None:
    async with running(tmp_path, *PYTHON, FORKS) as instance:
        await eventually(lambda: (tmp_path / LOG).read_text().count("daemon") == 2)
        words = last_lines(tmp_path).split()
        instance.kill()
        assert (await instance.wait()).code == 137
    assert not any(is_alive(int(word)) for word in words if word.isdigit())


HELPED = """
import os, signal, sys, time
if os.fork() == 0:
    signal.signal(signal.SIGTERM, lambda *_: print("helper was asked"))
    signal.pause()
    time.sleep(600)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print("ready")
while True: time.sleep(0.01)
"""


async def test_a_stop_asks_the_first_process_alone(tmp_path: Path) -> None:
    async with running(tmp_path, *PYTHON, HELPED) as instance:
        await eventually(lambda: said(instance, "ready"))
        instance.stop()
        assert (await instance.wait()).code == 0
    assert not said(instance, "asked")


async def test_a_stop_goes_on_to_the_children_of_a_shell_that_dies_of_it(tmp_path: Path) -> None:
    script = (
        "import signal, sys, time\n"
        "def save(*_): time.sleep(0.2); print('saved'); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, save)\n"
        "print('ready'); time.sleep(600)"
    )
    command = f'{sys.executable} -u -c "{script}"; true'
    async with running(tmp_path, "sh", "-c", command) as instance:
        await eventually(lambda: said(instance, "ready"))
        instance.stop()
        assert (await instance.wait()).code == 143
    assert said(instance, "saved")


async def test_a_run_is_found_again_with_its_end(tmp_path: Path) -> None:
    async with running(tmp_path, "sh", "-c", "echo up; sleep 600") as instance:
        found = Instance.find(tmp_path)
        assert found
        assert not found.has_ended
        assert found.started_at == instance.started_at
        found.kill()
        assert (await found.wait()).code == 137
    later = Instance.find(tmp_path)
    assert later
    assert (await later.wait()).code == 137


async def test_a_run_is_started_by_one_or_by_none(tmp_path: Path) -> None:
    prepare(tmp_path)
    assert claim(tmp_path / CLAIM, {})
    instance = Instance.spawn(tmp_path, Launch(("sh", "-c", "echo ran"), {}, "/"))
    await instance.wait()
    assert (tmp_path / LOG).read_text() == ""
    unclaimed = tmp_path / "run" / "0"
    unclaimed.mkdir(parents=True)
    assert Instance.find(unclaimed) is None
    assert not unclaimed.exists()


async def test_leftovers_of_a_killed_node_process_are_ended(tmp_path: Path) -> None:
    run = tmp_path / "pods" / "uid" / "containers" / "main" / "0"
    async with running(run, "sh", "-c", "echo $PPID; sleep 600") as instance:
        await eventually(lambda: said(instance, "stdout"))
        assert await asyncio.to_thread(end_all, tmp_path) == 1
        assert (await instance.wait()).code == 137
    assert await asyncio.to_thread(end_all, tmp_path) == 0


async def test_mounts_are_seen_by_the_container_only(tmp_path: Path) -> None:
    if reason := await refused_because():
        pytest.skip(f"mount namespaces are refused here: {reason}")
    volume, read_only = tmp_path / "volume", tmp_path / "read-only"
    for place in (volume, read_only):
        place.mkdir()
        (place / "note").write_text(place.name)
    run = tmp_path / "run"
    mounts = (
        Mount(str(volume), "/muster-test/a/b"),
        Mount(str(read_only), "/var/run/secrets/muster-test", read_only=True),
        Mount(str(read_only), "/muster-test/a/b/inner"),
        Mount(str(run / MESSAGE), "/dev/termination-log"),
    )
    script = (
        "cat note inner/note; touch made; touch /var/run/secrets/muster-test/x || echo refused; "
        "pwd; echo bye > /dev/termination-log; test -c /dev/null && test -e /proc/self && "
        "mkdir -p /muster-test/c && ls /muster-test"
    )
    async with running(
        run, "sh", "-c", script, mounts=mounts, directory="/muster-test/a/b"
    ) as instance:
        how = await instance.wait()
    records = [line.split(" ", 3) for line in (run / LOG).read_text().splitlines()]
    assert [text for _, stream, _, text in records if stream == "stdout"] == [
        "volumeread-onlyrefused",
        "/muster-test/a/b",
        "a",
        "c",
    ]
    (error,) = (text for _, stream, _, text in records if stream == "stderr")
    assert error.endswith("Read-only file system")
    assert how.code == 0
    assert (volume / "made").exists()
    assert (run / MESSAGE).read_text() == "bye\n"
    assert not _on_machine("/muster-test")
    assert not _on_machine("/var/run/secrets/muster-test")


def _on_machine(path: str) -> bool:
    return Path(path).exists()
