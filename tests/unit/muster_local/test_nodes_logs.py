"""Logs on disk: written by the launcher, read back as asked, bounded."""

import asyncio
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventually import eventually
from muster.errors import InvalidSpec
from muster_local.nodes.instance import is_over
from muster_local.nodes.launcher.launch import LOG, MESSAGE, OLDER_LOG
from muster_local.nodes.launcher.log import LogWriter, timestamp
from muster_local.nodes.logs import LogOptions, read_log
from muster_local.nodes.messages import message_of


def _written(directory: Path, *outputs: bytes, limit: int = 1 << 20) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    writer = LogWriter(directory, limit)
    for output in outputs:
        writer.write("stdout", output)
    writer.close()
    return directory


async def _read(run: Path, options: LogOptions) -> bytes:
    return b"".join([piece async for piece in read_log(run, options, is_over=lambda: True)])


@given(st.lists(st.binary(max_size=40_000), max_size=5))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_written_is_read_whatever_it_is(tmp_path: Path, outputs: list[bytes]) -> None:
    for file in (LOG, OLDER_LOG):
        (tmp_path / file).unlink(missing_ok=True)
    run = _written(tmp_path, *outputs)
    whole = b"".join(outputs)
    want = whole if whole.endswith(b"\n") or not whole else whole + b"\n"
    assert asyncio.run(_read(run, LogOptions())) == want


async def test_a_full_log_drops_its_oldest_half(tmp_path: Path) -> None:
    lines = [b"%05d\n" % number for number in range(2000)]
    run = _written(tmp_path, *lines, limit=20_000)
    text = await _read(run, LogOptions())
    assert text.endswith(b"01999\n")
    assert b"00000\n" not in text
    assert (run / LOG).stat().st_size + (run / OLDER_LOG).stat().st_size <= 20_000


OPTIONS = {
    "all": (LogOptions(), b"a\nb\nc\n"),
    "the last two": (LogOptions(tail=2), b"b\nc\n"),
    "none": (LogOptions(tail=0), b""),
    "three bytes": (LogOptions(limit_bytes=3), b"a\nb"),
    "from the future": (LogOptions(since=timestamp(4 * 10**18).encode()), b""),
}


@pytest.mark.parametrize("claim", OPTIONS)
async def test_a_part_of_a_log(tmp_path: Path, claim: str) -> None:
    options, want = OPTIONS[claim]
    run = _written(tmp_path, b"a\nb", b"\nc\n")
    assert await _read(run, options) == want


async def test_a_long_line_has_one_timestamp(tmp_path: Path) -> None:
    run = _written(tmp_path, b"x" * 40_000 + b"\n")
    text = await _read(run, LogOptions(timestamps=True))
    assert text.count(b"Z ") == 1
    assert len(text.split(b" ")[1]) == 40_001


async def test_a_log_is_followed_over_a_change_of_files(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path, 400)
    has_ended = False
    found: list[bytes] = []

    async def follow() -> None:
        options = LogOptions(follow=True, tail=0)
        async for piece in read_log(tmp_path, options, is_over=lambda: has_ended):
            found.append(piece)  # noqa: PERF401 -- others look while it goes on

    following = asyncio.create_task(follow())
    lines = [b"%d\n" % number for number in range(12)]
    for count, line in enumerate(lines, 1):
        await asyncio.sleep(0)
        writer.write("stderr", line)
        await eventually(lambda count=count: found == lines[:count], every=0.01)
    has_ended = True
    await following
    writer.close()


async def test_following_ends_when_the_pod_is_deleted_and_its_files_are_gone(
    tmp_path: Path,
) -> None:
    run = _written(tmp_path / "run", b"one\n")
    found: list[bytes] = []

    async def follow() -> None:
        async for piece in read_log(run, LogOptions(follow=True), is_over=lambda: is_over(run)):
            found.append(piece)  # noqa: PERF401 -- looked at while it goes on

    following = asyncio.create_task(follow())
    await eventually(lambda: found == [b"one\n"], every=0.01)
    shutil.rmtree(run)

    await asyncio.wait_for(following, 10)


def test_options_come_from_the_query() -> None:
    query = {"follow": "true", "tailLines": "5", "sinceSeconds": "10", "timestamps": "false"}
    options = LogOptions.of(query, now=20.0)
    assert options == LogOptions(follow=True, tail=5, since=b"1970-01-01T00:00:10.000000000Z")
    given_time = LogOptions.of({"sinceTime": "1970-01-01T00:00:10Z"}, now=0.0)
    assert given_time.since == options.since


@pytest.mark.parametrize("query", [{"tailLines": "-1"}, {"sinceTime": "yesterday"}])
def test_a_wrong_option_is_named(query: dict[str, str]) -> None:
    with pytest.raises(InvalidSpec, match=next(iter(query))):
        LogOptions.of(query, now=0.0)


def test_a_message_is_the_written_one_or_the_end_of_the_log_of_what_failed(tmp_path: Path) -> None:
    run = _written(tmp_path, b"Traceback\n  File\r\nValueError: x\n\n\n")
    (run / MESSAGE).touch()
    assert message_of(run, has_failed=True) == "Traceback\n  File\r\nValueError: x"
    assert message_of(run, has_failed=False) == ""
    (run / MESSAGE).write_text("why\n")
    assert message_of(run, has_failed=True) == "why"


def test_the_end_of_a_long_log_is_short(tmp_path: Path) -> None:
    run = _written(tmp_path, *(b"%04d" % number + b"x" * 96 + b"\n" for number in range(500)))
    message = message_of(run, has_failed=True)
    assert len(message) <= 2048
    assert message.splitlines()[-1].startswith("0499")
