"""Keys are handled one at a time each, urgent ones first, and none is forgotten."""

import asyncio
import logging

import pytest

from eventually import eventually
from muster_operator.metrics import Metrics
from muster_operator.work_queue import WorkQueue


class Hands:
    """Handles keys when it is let."""

    def __init__(self, *, width: int = 8, lazy_width: int = 1) -> None:
        self.done: list[str] = []
        self.busy: list[str] = []
        self.gate = asyncio.Event()
        self.failures = 0
        self.queue = WorkQueue(self.handle, Metrics(), width=width, lazy_width=lazy_width)

    async def handle(self, key: str) -> None:
        assert key not in self.busy
        self.busy.append(key)
        try:
            await self.gate.wait()
            if self.failures:
                self.failures -= 1
                raise RuntimeError("a mistake")
            self.done.append(key)
        finally:
            self.busy.remove(key)


async def test_nothing_is_handled_before_it_is_open() -> None:
    hands = Hands()
    hands.gate.set()
    hands.queue.mark("a")
    await asyncio.sleep(0)

    assert [] == hands.done

    hands.queue.open()
    await eventually(lambda: hands.done == ["a"])


async def test_a_key_that_is_marked_while_it_is_handled_is_handled_once_more() -> None:
    hands = Hands()
    hands.queue.open()
    hands.queue.mark("a")
    await eventually(lambda: hands.busy == ["a"])
    for _ in range(3):
        hands.queue.mark("a")
    hands.gate.set()
    await eventually(lambda: hands.done == ["a", "a"])
    await hands.queue.close()

    assert ["a", "a"] == hands.done


async def test_urgent_keys_go_first_and_lazy_ones_use_few_places() -> None:
    hands = Hands(width=2, lazy_width=1)
    for key in ("l1", "l2"):
        hands.queue.mark(key, is_urgent=False)
    hands.queue.mark("u1")
    hands.queue.open()
    await eventually(lambda: len(hands.busy) == 2)

    assert ["l1", "u1"] == sorted(hands.busy)

    hands.gate.set()
    await eventually(lambda: sorted(hands.done) == ["l1", "l2", "u1"])


async def test_lazy_keys_do_not_wait_for_the_last_urgent_one() -> None:
    hands = Hands(width=1)
    for index in range(5):
        hands.queue.mark(f"u{index}")
    hands.queue.mark("l1", is_urgent=False)
    hands.gate.set()
    hands.queue.open()
    await eventually(lambda: len(hands.done) == 6)

    assert hands.done.index("l1") < 5
    assert not hands.queue.is_pressed


async def test_a_lazy_key_that_becomes_urgent_is_handled_once() -> None:
    hands = Hands(width=1)
    hands.gate.set()
    for key in ("a", "b"):
        hands.queue.mark(key, is_urgent=False)
    hands.queue.mark("b")
    hands.queue.open()
    await eventually(lambda: len(hands.done) == 2)
    hands.queue.mark("c", is_urgent=False)
    await eventually(lambda: len(hands.done) == 3)

    assert ["a", "b", "c"] == hands.done


async def test_of_two_wishes_for_later_the_earlier_counts() -> None:
    hands = Hands()
    hands.gate.set()
    hands.queue.open()
    hands.queue.mark_in("a", 60.0)
    hands.queue.mark_in("a", 0.0)
    hands.queue.mark_in("a", 60.0)
    await eventually(lambda: hands.done == ["a"])
    await hands.queue.close()


async def test_a_mistake_in_one_key_is_told_and_stops_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hands = Hands()
    hands.failures = 1
    hands.gate.set()
    hands.queue.open()
    with caplog.at_level(logging.ERROR):
        hands.queue.mark("a")
        hands.queue.mark("b")
        await eventually(lambda: hands.done == ["b"])
    await hands.queue.close()

    assert "step-failed key=a" in caplog.text


async def test_closing_stops_what_is_under_way() -> None:
    hands = Hands()
    hands.queue.open()
    hands.queue.mark("a")
    await eventually(lambda: hands.busy == ["a"])
    await hands.queue.close()

    assert ([], []) == (hands.busy, hands.done)
