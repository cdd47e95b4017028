"""What a script that raises leaves behind, and what importing the SDK costs."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest


def python(script: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={"PATH": "/usr/bin:/bin", **environ},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


RAISING = """
    import muster_sdk
    muster_sdk.init()
    raise ValueError("the learning rate\\nis negative")
"""


def test_the_exception_s_last_line_is_the_pod_s_message(tmp_path: Path) -> None:
    message = tmp_path / "termination-log"
    message.touch()

    ended = python(RAISING, MUSTER_JOB="digits", MUSTER_TERMINATION_LOG=str(message))

    assert 1 == ended.returncode
    assert "ValueError: the learning rate is negative" == message.read_text()
    assert "Traceback (most recent call last)" in ended.stderr
    assert ended.stderr.endswith("ValueError: the learning rate\nis negative\n")


def test_the_first_exception_of_a_pod_is_the_one_that_is_kept(tmp_path: Path) -> None:
    message = tmp_path / "termination-log"
    message.write_text("RuntimeError: rank 1 was first")

    python(RAISING, MUSTER_JOB="digits", MUSTER_TERMINATION_LOG=str(message))

    assert "RuntimeError: rank 1 was first" == message.read_text()


@pytest.mark.parametrize("job", ["", "digits"])
def test_without_a_place_for_it_python_s_own_traceback_is_all(job: str, tmp_path: Path) -> None:
    missing = tmp_path / "none"

    ended = python(RAISING, MUSTER_JOB=job, MUSTER_TERMINATION_LOG=str(missing))

    assert 1 == ended.returncode
    assert not missing.exists()
    assert ended.stderr.endswith("ValueError: the learning rate\nis negative\n")


def test_a_long_message_is_cut(tmp_path: Path) -> None:
    message = tmp_path / "termination-log"
    message.touch()
    script = "import muster_sdk; muster_sdk.init(); raise ValueError('é' * 5000)"

    python(script, MUSTER_JOB="digits", MUSTER_TERMINATION_LOG=str(message))

    assert "ValueError: " + "é" * 506 == message.read_text()


def test_importing_the_sdk_imports_nothing_heavy() -> None:
    ended = python(
        """
        import sys
        import muster_sdk
        run = muster_sdk.init()
        list(run.epochs(1))
        heavy = {"torch", "numpy", "httpx2", "fsspec", "asyncio", "muster_sdk.stores"}
        print(sorted(heavy & set(sys.modules)))
        """
    )

    assert ("[]\n", "") == (ended.stdout, ended.stderr)


def test_importing_the_sdk_takes_less_than_fifty_milliseconds_more_than_its_standard_library() -> (
    None
):
    # CPU time, the best of some: a busy machine must not fail this. Where Python itself is quick
    # the whole import stays under 50 ms; see `python -X importtime -c 'import muster_sdk'`.
    script = """
        import time
        import dataclasses, json, logging, random, typing
        before = time.process_time()
        import muster_sdk
        print(time.process_time() - before)
    """

    assert min(float(python(script).stdout) for _ in range(5)) < 0.05
