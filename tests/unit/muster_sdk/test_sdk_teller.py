"""What of a training loop is told, and how often."""

import pytest

from muster.reports import Checkpoint, Epoch, Item, Metrics, Step
from muster_sdk.ranks import Gang
from muster_sdk.settings import Settings
from muster_sdk.teller import Teller, numbers_of
from report_servers import AT, now


class Kept:
    """Where a teller's items go."""

    directive = None

    def __init__(self) -> None:
        self.items: list[Item] = []

    def say(self, item: Item) -> None:
        self.items.append(item)

    def close(self) -> None:
        self.items.clear()


def test_at_most_one_step_a_second_is_told() -> None:
    kept, clock = Kept(), iter([0.0, 0.0, 0.5, 0.9, 1.0, 1.0, 1.2])
    teller = Teller(kept, Gang(Settings()), now, lambda: next(clock))

    for number in range(1, 6):
        teller.stepped(0, number, {"loss": number})

    assert [
        Step(AT, 0, 1),
        Metrics(AT, 0, 1, {"loss": 1.0}),
        Step(AT, 0, 4),
        Metrics(AT, 0, 4, {"loss": 4.0}),
    ] == kept.items


def test_epochs_are_always_told() -> None:
    kept = Kept()
    teller = Teller(kept, Gang(Settings()), now)

    teller.epoch_began(0, 0)
    teller.epoch_ended(0, 9, {"loss": 1})

    assert [(0, "start", 0, {}), (0, "end", 9, {"loss": 1.0})] == [
        (item.epoch, item.event.value, item.step, item.metrics)
        for item in kept.items
        if isinstance(item, Epoch)
    ]


def test_only_rank_0_tells() -> None:
    kept = Kept()
    teller = Teller(kept, Gang(Settings(rank=1)), now)

    teller.epoch_began(0, 0)
    teller.stepped(0, 1, {"loss": 1})
    teller.save_failed(1, 2, "file:///x", "full")

    assert [] == kept.items


def test_a_failed_save_is_told_with_its_reason() -> None:
    kept = Kept()

    Teller(kept, Gang(Settings()), now).save_failed(3, 2, "file:///x", "y" * 5000)

    (item,) = kept.items
    assert isinstance(item, Checkpoint)
    assert ("step-3", "failed", 1024) == (item.id, item.state, len(item.message))


def test_a_metric_that_is_no_number_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    assert {"a": 1.0, "n" * 128: 2.0} == numbers_of({"a": 1, "b": "x", "n" * 200: 2})  # type: ignore[dict-item]
    assert 64 == len(numbers_of({f"m{n}": n for n in range(100)}))
    assert ["metric is no number and not reported: name=b"] == [
        message.partition(" reason")[0] for message in caplog.messages
    ]
