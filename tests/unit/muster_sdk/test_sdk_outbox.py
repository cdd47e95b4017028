"""What is kept while the API is away, and what is forgotten first."""

from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.reports import Epoch, EpochEvent, Item, Step
from muster_sdk.outbox import Outbox

AT = datetime(2026, 12, 1, 9, 30, tzinfo=UTC)


def outbox(minor_limit: int = 10, limit: int = 20) -> Outbox:
    return Outbox(attempt=1, replica=0, first_sequence=7, minor_limit=minor_limit, limit=limit)


def step(number: int) -> Step:
    return Step(AT, 0, number)


def epoch(number: int) -> Epoch:
    return Epoch(AT, number, EpochEvent.START, 0)


def left_in(box: Outbox) -> list[Item]:
    items: list[Item] = []
    while (report := box.report()) is not None:
        items.extend(report.items)
        box.settle()
    return items


def test_a_report_is_the_same_until_it_is_settled() -> None:
    box = outbox()
    box.put(step(1))
    first = box.report()
    box.put(step(2))

    assert first is not None
    assert first is box.report()
    assert (1, 0, 7, (step(1),)) == (first.attempt, first.replica, first.sequence, first.items)

    box.settle()
    second = box.report()

    assert second is not None
    assert (8, (step(2),)) == (second.sequence, second.items)


def test_an_empty_outbox_has_no_report() -> None:
    assert outbox().report() is None
    assert 0 == len(outbox())


def test_the_oldest_steps_are_forgotten_first_and_epochs_kept() -> None:
    box = outbox(minor_limit=3)
    for item in (epoch(0), step(1), step(2), epoch(1), step(3), epoch(2)):
        box.put(item)

    assert 3 == box.dropped
    assert [epoch(0), epoch(1), epoch(2)] == left_in(box)


def test_epochs_are_forgotten_only_at_the_last_bound() -> None:
    box = outbox(minor_limit=2, limit=3)
    for number in range(5):
        box.put(epoch(number))

    assert 2 == box.dropped
    assert [epoch(2), epoch(3), epoch(4)] == left_in(box)


def test_what_is_on_its_way_is_not_forgotten() -> None:
    box = outbox(minor_limit=2)
    box.put(step(1))
    on_its_way = box.report()
    for number in range(2, 9):
        box.put(step(number))

    assert on_its_way is box.report()
    assert [step(1), step(7), step(8)] == left_in(box)


def test_a_long_queue_leaves_in_several_reports() -> None:
    box = outbox(minor_limit=1000, limit=1000)
    for number in range(450):
        box.put(step(number))

    assert [step(number) for number in range(450)] == left_in(box)
    assert 0 == len(box)


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(["step", "epoch", "send", "settle"])),
    st.integers(1, 6),
    st.integers(6, 9),
)
def test_the_outbox_is_bounded_ordered_and_counts_what_it_forgets(
    deeds: list[str], minor_limit: int, limit: int
) -> None:
    box = outbox(minor_limit, limit)
    put = taken = 0
    for deed in deeds:
        match deed:
            case "send":
                box.report()
            case "settle":
                report = box.report()
                if report is not None:
                    taken += len(report.items)
                    box.settle()
            case _:
                box.put(step(put) if deed == "step" else Epoch(AT, 0, EpochEvent.END, put))
                put += 1
        on_its_way = box.report()
        assert len(box) <= limit + (len(on_its_way.items) if on_its_way else 0)

    left = left_in(box)
    steps = [item.step for item in left if isinstance(item, Step | Epoch)]
    assert sorted(steps) == steps
    assert put == taken + len(left) + box.dropped
