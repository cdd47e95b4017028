"""Reporting to a real HTTP server that is away, slow, failing, or wants another token."""

import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eventually import eventually
from muster.reports import Heartbeat, Report, Step
from muster_sdk.channel import ApiChannel
from muster_sdk.outbox import Outbox
from muster_sdk.reporter import Pace, Reporter
from muster_sdk.settings import Settings
from report_servers import AT, Answer, FakeApi, now

QUICK = Pace(
    interval_seconds=0.02,
    heartbeat_seconds=60.0,
    first_retry_seconds=0.02,
    last_retry_seconds=0.1,
    flush_seconds=1.0,
)


@pytest.fixture
def api() -> Iterator[FakeApi]:
    fake = FakeApi()
    fake.start()
    yield fake
    fake.stop()


@pytest.fixture
def token(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("first\n")
    return path


@pytest.fixture
def reporter(api: FakeApi, token: Path) -> Iterator[Reporter]:
    started = start(api, token)
    yield started
    started.close()


def start(api: FakeApi, token: Path, pace: Pace = QUICK, **bounds: int) -> Reporter:
    settings = Settings(
        namespace="vision",
        job="digits",
        api_url=f"http://127.0.0.1:{api.port}",
        token_file=str(token),
    )
    limits = {"minor_limit": 100, "limit": 200, **bounds}
    outbox = Outbox(attempt=2, replica=0, first_sequence=1, **limits)
    return Reporter(ApiChannel(settings), outbox, now, pace).start()


def rotate(token: Path, value: str | None) -> None:
    """What a kubelet does to a projected token; None: it is not there yet."""
    if value is None:
        token.unlink()
        return
    fresh = token.with_name("fresh")
    fresh.write_text(value)
    fresh.rename(token)


def step(number: int) -> Step:
    return Step(AT, 0, number)


async def test_what_is_said_arrives_once_in_order_with_the_pod_s_token(
    api: FakeApi, reporter: Reporter
) -> None:
    for number in range(50):
        reporter.say(step(number))

    await eventually(lambda: len(api.items) == 50)

    assert [step(number) for number in range(50)] == api.items
    paths, tokens, reports = zip(*api.requests, strict=True)
    assert {"/api/v1/namespaces/vision/jobs/digits/reports"} == set(paths)
    assert {"Bearer first"} == set(tokens)
    assert {(2, 0)} == {(report.attempt, report.replica) for report in reports}


async def test_the_answer_s_directive_is_kept(api: FakeApi, reporter: Reporter) -> None:
    api.answer = lambda *_: api.taken({"id": "d1", "kind": "checkpoint"})
    reporter.say(step(1))

    await eventually(lambda: reporter.directive == {"id": "d1", "kind": "checkpoint"})

    api.answer = lambda *_: api.taken(None)
    reporter.say(step(2))

    await eventually(lambda: reporter.directive is None)


async def test_a_silent_process_sends_heartbeats(api: FakeApi, token: Path) -> None:
    reporter = start(api, token, Pace(interval_seconds=0.02, heartbeat_seconds=0.05))

    await eventually(lambda: len(api.items) >= 2)
    reporter.close()

    assert {Heartbeat(AT)} == set(api.items)


async def test_an_api_that_is_away_holds_nothing_up_and_gets_all_of_it_later(
    api: FakeApi, token: Path, caplog: pytest.LogCaptureFixture
) -> None:
    api.stop()
    reporter = start(api, token)
    began = time.monotonic()
    for number in range(20):
        reporter.say(step(number))
    assert time.monotonic() - began < 0.5
    await eventually(lambda: any("reports wait, training goes on" in m for m in caplog.messages))

    api.start()

    await eventually(lambda: len(api.items) == 20)
    reporter.close()
    assert [step(number) for number in range(20)] == api.items
    warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert ["reports wait", "reports arrive again"] == [
        line.partition(":")[0].partition(",")[0] for line in warnings
    ]


FAILURES: dict[str, Answer] = {
    "an error of the server": (500, b"no"),
    "an overloaded server": (429, b""),
    "a job that the recorder has not seen yet": (404, b""),
    "a proxy's page": (200, b"<html>"),
    "a proxy's JSON": (200, b"[]"),
    "a redirect": (302, b""),
}


@pytest.mark.parametrize("claim", FAILURES)
async def test_the_same_report_is_sent_again_after(
    claim: str, api: FakeApi, reporter: Reporter
) -> None:
    tried: list[int] = []

    def answer(report: Report, _: str) -> Answer:
        tried.append(report.sequence)
        return FAILURES[claim] if len(tried) < 3 else api.taken()

    api.answer = answer
    reporter.say(step(1))

    await eventually(lambda: len(tried) == 3)

    assert [1, 1, 1] == tried


async def test_a_report_whose_answer_was_lost_is_repeated_under_its_sequence(
    api: FakeApi, reporter: Reporter
) -> None:
    api.answer = lambda *_: (0, b"") if len(api.requests) == 1 else api.taken()
    reporter.say(step(1))
    await eventually(lambda: len(api.requests) >= 1)
    reporter.say(step(2))

    await eventually(lambda: len(api.accepted) == 2)

    assert [step(1), step(2)] == api.items
    assert api.requests[0][2] == api.requests[1][2]


async def test_a_report_that_will_never_be_taken_does_not_block_the_next(
    api: FakeApi, reporter: Reporter, caplog: pytest.LogCaptureFixture
) -> None:
    api.answer = lambda *_: (422, b"items[0]: no") if len(api.requests) == 1 else api.taken()
    reporter.say(step(1))
    await eventually(lambda: len(api.requests) >= 1)
    reporter.say(step(2))

    await eventually(lambda: api.items == [step(2)])

    assert "report refused: items=1 reason=HTTP 422: items[0]: no" in caplog.messages


async def test_an_attempt_that_is_over_says_so_once(
    api: FakeApi, reporter: Reporter, caplog: pytest.LogCaptureFixture
) -> None:
    api.answer = lambda *_: (409, b"attempt 2 is over")
    for number in range(1, 4):
        reporter.say(step(number))
        await eventually(lambda sent=number: len(api.requests) >= sent)

    assert ["report refused: items=1 reason=HTTP 409: attempt 2 is over"] == caplog.messages


async def test_a_rotated_token_is_used_at_once(
    api: FakeApi, token: Path, reporter: Reporter
) -> None:
    api.answer = lambda _, bearer: api.taken() if bearer == "Bearer second" else (401, b"")
    reporter.say(step(1))
    await eventually(lambda: len(api.requests) >= 2)

    rotate(token, "second\n")

    await eventually(lambda: api.items == [step(1)])


async def test_a_token_that_is_not_there_yet_is_waited_for(
    api: FakeApi, token: Path, reporter: Reporter, caplog: pytest.LogCaptureFixture
) -> None:
    rotate(token, None)
    reporter.say(step(1))
    await eventually(lambda: any("FileNotFoundError" in message for message in caplog.messages))

    rotate(token, "first")

    await eventually(lambda: api.items == [step(1)])


def test_the_end_of_the_process_sends_what_is_left(api: FakeApi, token: Path) -> None:
    reporter = start(api, token, Pace(interval_seconds=60))
    reporter.say(step(1))

    reporter.close()
    reporter.close()

    assert [step(1)] == api.items


@pytest.mark.parametrize("is_hanging", [True, False])
def test_the_end_of_the_process_is_not_held_up_by_an_api_that_fails(
    is_hanging: bool, api: FakeApi, token: Path, caplog: pytest.LogCaptureFixture
) -> None:
    released = threading.Event()

    def answer(*_: Any) -> Answer:
        if is_hanging:
            released.wait(10)
        return 500, b""

    api.answer = answer
    reporter = start(api, token, Pace(interval_seconds=60, flush_seconds=0.2))
    reporter.say(step(1))
    began = time.monotonic()

    reporter.close()

    assert time.monotonic() - began < 2
    assert "reports lost: unsent=1 dropped=0" in caplog.messages
    released.set()


async def test_a_fault_of_ours_stops_the_reports_and_not_the_training(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Faulty:
        def deliver(self, report: Report) -> None:
            raise ZeroDivisionError

        def close(self) -> None:
            pass

    outbox = Outbox(attempt=1, replica=0, first_sequence=1, minor_limit=9, limit=9)
    reporter = Reporter(Faulty(), outbox, now, QUICK).start()
    reporter.say(step(1))

    await eventually(lambda: "reporting has stopped, training goes on" in caplog.messages)

    reporter.say(step(2))
    reporter.close()
