"""Processes that are started, recognised and ended."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from eventually import eventually
from muster_local.component import Command, Component, Identity, last_lines, start, stop
from muster_local.interrupts import uninterrupted

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"


@pytest.fixture
def started(tmp_path: Path) -> Iterator[list[Component]]:
    components: list[Component] = []
    yield components
    stop(components, grace_seconds=0.1)


def a_sleeper(code: str = "import time; time.sleep(600)") -> Command:
    return Command("sleeper", "test", (sys.executable, "-c", code))


def test_a_component_runs_in_a_session_of_its_own(
    tmp_path: Path, started: list[Component]
) -> None:
    started.append(start(a_sleeper(), tmp_path))

    assert started[0].is_alive()
    assert started[0].pid == os.getsid(started[0].pid)


def test_what_it_says_is_in_its_log(tmp_path: Path, started: list[Component]) -> None:
    component = start(a_sleeper("print('one'); raise SystemExit('two')"), tmp_path)
    started.append(component)
    os.waitid(os.P_PID, component.pid, os.WEXITED | os.WNOWAIT)

    assert {"one", "two"} == set(last_lines(component.log))


def test_one_that_is_ended_is_gone(tmp_path: Path) -> None:
    component = start(a_sleeper(), tmp_path)

    stop([component])

    assert not component.is_alive()


async def test_one_that_does_not_listen_is_killed(tmp_path: Path) -> None:
    component = start(a_sleeper(f"print('ready', flush=True); {STUBBORN}"), tmp_path)
    await eventually(lambda: last_lines(component.log))

    stop([component], grace_seconds=0.1)

    assert not component.is_alive()


def test_ending_one_that_is_gone_does_nothing(tmp_path: Path) -> None:
    component = start(a_sleeper(), tmp_path)

    stop([component])
    stop([component])


def test_a_process_with_the_same_id_is_not_the_component(
    tmp_path: Path, started: list[Component]
) -> None:
    component = start(a_sleeper(), tmp_path)
    started.append(component)
    earlier = replace(component.identity, started=component.identity.started - 60)
    other_boot = replace(component.identity, boot="another")

    stop([replace(component, identity=each) for each in (earlier, other_boot)])

    assert component.is_alive()


def test_a_zombie_does_not_run() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    assert None is Identity.of(child.pid)
    child.wait()


def test_settings_of_ours_are_not_handed_on(
    tmp_path: Path, started: list[Component], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSTER_API_URL", "http://elsewhere")
    monkeypatch.setenv("MUSTER_CACHE", "kept")
    code = "import os; print(sorted(n for n in os.environ if n.startswith('MUSTER_')))"
    component = start(a_sleeper(code), tmp_path)
    started.append(component)
    os.waitid(os.P_PID, component.pid, os.WEXITED | os.WNOWAIT)

    (said,) = last_lines(component.log)

    assert "MUSTER_CACHE" in said
    assert "MUSTER_API_URL" not in said


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
def test_a_tethered_component_dies_with_who_started_it(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from muster_local.component import Command, start\n"
        "command = Command('sleeper', 'test', ('sleep', '600'))\n"
        f"print(start(command, Path({str(tmp_path)!r}), is_tethered=True).pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = Identity.of(int(parent.stdout.readline()))
        assert child is not None
        parent.kill()

    asyncio.run(eventually(lambda: not child.is_alive()))


def test_an_interrupt_waits_for_the_end_of_what_may_not_be_interrupted() -> None:
    done: list[str] = []

    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 -- where it comes is the point
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            done.append("inside")
        done.append("after")

    assert ["inside"] == done
