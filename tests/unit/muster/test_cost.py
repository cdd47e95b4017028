"""Bills: golden tables, and the laws that hold for any job."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.cost import Bill, Class, EpochSpan, Holding, Line, PriceRow, bill
from muster.money import seconds, spread, usd

HOUR = 3_600_000
ON_DEMAND = PriceRow("H100", "on-demand", 0, 6_880_000)
SPOT = PriceRow("H100", "spot", 0, 1_586_250)


def held(
    start: float,
    end: float | None,
    *,
    gpus: int = 8,
    attempt: int = 1,
    replica: int = 0,
    **more: object,
) -> Holding:
    """A holding between two hours, on H100s bought on demand."""
    kind = {"gpu_model": "H100", "capacity_type": "on-demand"} | more
    return Holding(
        attempt, replica, gpus, int(start * HOUR), None if end is None else int(end * HOUR), **kind
    )


def span(epoch: int, start: float, end: float | None, attempt: int = 1) -> EpochSpan:
    return EpochSpan(attempt, epoch, int(start * HOUR), None if end is None else int(end * HOUR))


def line(kind: Class, key: int, gpu_hours: float, micro_usd: int | None) -> Line:
    return Line(kind, key, int(gpu_hours * HOUR), micro_usd)


GOLDEN = {
    "64 GPUs for an epoch of an hour and a half at 6.88 cost 660.48": (
        [held(0, 1.5, replica=r) for r in range(8)],
        [span(0, 0, 1.5)],
        [ON_DEMAND],
        [line(Class.EPOCH, 0, 96, 660_480_000)],
    ),
    "start-up, two epochs and the way out are told apart": (
        [held(0, 3)],
        [span(0, 0.5, 1.5), span(1, 1.5, 2.5)],
        [ON_DEMAND],
        [
            line(Class.STARTUP, 1, 4, 27_520_000),
            line(Class.EPOCH, 0, 8, 55_040_000),
            line(Class.EPOCH, 1, 8, 55_040_000),
            line(Class.SHUTDOWN, 1, 4, 27_520_000),
        ],
    ),
    "a failure in epoch 1 shows what it cost, and epoch 1 goes on in the next attempt": (
        [held(0, 1.5), held(2, 3.5, attempt=2)],
        [span(0, 0.5, 1), span(1, 1, None), span(1, 2.5, 3.5, attempt=2)],
        [ON_DEMAND],
        [
            line(Class.STARTUP, 1, 4, 27_520_000),
            line(Class.EPOCH, 0, 4, 27_520_000),
            line(Class.INTERRUPTED, 1, 4, 27_520_000),
            line(Class.RESTART, 2, 4, 27_520_000),
            line(Class.EPOCH, 1, 8, 55_040_000),
        ],
    ),
    "an attempt that fell before its first epoch was all restart": (
        [held(0, 1), held(1, 2, attempt=2)],
        [span(0, 0, 1)],
        [ON_DEMAND],
        [line(Class.EPOCH, 0, 8, 55_040_000), line(Class.RESTART, 2, 8, 55_040_000)],
    ),
    "a job that reports no epochs pays for other time": (
        [held(0, 1)],
        [],
        [ON_DEMAND],
        [line(Class.OTHER, 1, 8, 55_040_000)],
    ),
    "an epoch whose end was never reported ends where the next one starts": (
        [held(0, 2)],
        [span(0, 0, None), span(1, 1, 2)],
        [ON_DEMAND],
        [line(Class.EPOCH, 0, 8, 55_040_000), line(Class.EPOCH, 1, 8, 55_040_000)],
    ),
    "evaluation and saving after an epoch belong to it": (
        [held(0, 3)],
        [span(0, 0, 1), span(1, 2, 3)],
        [ON_DEMAND],
        [
            line(Class.EPOCH, 0, 16, 110_080_000),
            line(Class.EPOCH, 1, 8, 55_040_000),
        ],
    ),
    "a day with a new price after ten hours costs 1,753.76": (
        [held(0, 24)],
        [span(0, 0, 24)],
        [
            PriceRow("H100", "on-demand", 0, 12_290_000),
            PriceRow("H100", "on-demand", 10 * HOUR, 6_880_000),
        ],
        [line(Class.EPOCH, 0, 192, 983_200_000 + 770_560_000)],
    ),
    "three hours on demand and five on spot": (
        [held(0, 3), held(3, 8, attempt=2, capacity_type="spot")],
        [span(0, 0, 3), span(1, 3, 8, attempt=2)],
        [ON_DEMAND, SPOT],
        [line(Class.EPOCH, 0, 24, 165_120_000), line(Class.EPOCH, 1, 40, 63_450_000)],
    ),
    "what is still held counts until now": (
        [held(0, None)],
        [span(0, 0, 11)],
        [ON_DEMAND],
        [line(Class.EPOCH, 0, 80, 550_400_000)],
    ),
    "a GPU model without a price is unpriced, the rest is not": (
        [held(0, 1), held(1, 2, attempt=2, gpu_model="B300")],
        [span(0, 0, 1), span(1, 1, 2, attempt=2)],
        [ON_DEMAND],
        [line(Class.EPOCH, 0, 8, 55_040_000), line(Class.EPOCH, 1, 8, None)],
    ),
    "time before the first price is unpriced": (
        [held(0, 2)],
        [span(0, 0, 1), span(1, 1, 2)],
        [PriceRow("H100", "on-demand", HOUR, 6_880_000)],
        [line(Class.EPOCH, 0, 8, None), line(Class.EPOCH, 1, 8, 55_040_000)],
    ),
    "a job without GPUs costs nothing, whatever its nodes are": (
        [held(0, 2, gpus=0, gpu_model=None)],
        [span(0, 0, 2)],
        [],
        [line(Class.EPOCH, 0, 0, 0)],
    ),
}


@pytest.mark.parametrize("claim", GOLDEN)
def test_bill(claim: str) -> None:
    holdings, epochs, prices, want = GOLDEN[claim]

    got = bill(holdings, epochs, prices, now_ms=10 * HOUR, failed_attempts={1})

    assert tuple(want) == got.lines
    known = [item.micro_usd for item in want]
    assert (None if None in known else sum(known)) == got.micro_usd


def test_an_unfinished_epoch_of_a_running_attempt_is_no_interruption() -> None:
    got = bill([held(0, None)], [span(0, 0, None)], [ON_DEMAND], now_ms=HOUR)

    assert (line(Class.EPOCH, 0, 8, 55_040_000),) == got.lines


def test_a_bill_names_the_price_rows_that_it_used_and_says_when_gpus_were_simulated() -> None:
    got = bill([held(0, 1, is_simulated=True)], [], [ON_DEMAND, SPOT], now_ms=HOUR)

    assert ((ON_DEMAND,), True) == (got.prices, got.is_simulated)


def test_by_attempt_all_lines_are_keyed_by_attempt() -> None:
    epochs = [span(4, 0, 1), span(5, 1, 2), span(5, 3, 4, attempt=2)]

    got = bill(
        [held(0, 2), held(2, 4, attempt=2)], epochs, [ON_DEMAND], now_ms=0, is_by_attempt=True
    )

    assert (
        line(Class.EPOCH, 1, 16, 110_080_000),
        line(Class.RESTART, 2, 8, 55_040_000),
        line(Class.EPOCH, 2, 8, 55_040_000),
    ) == got.lines


def test_an_empty_bill_is_priced() -> None:
    assert (Bill(), True) == (bill([], [], [], now_ms=0), Bill().is_priced)


times = st.integers(0, 10**9)
holdings = st.lists(
    st.builds(
        lambda attempt, replica, gpus, start, length, model, capacity: Holding(
            attempt, replica, gpus, start, start + length, model, capacity
        ),
        st.integers(1, 3),
        st.integers(0, 4),
        st.integers(0, 8),
        times,
        st.integers(0, 10**8),
        st.sampled_from(["H100", "A100"]),
        st.sampled_from(["spot", "on-demand"]),
    ),
    max_size=12,
)
epochs = st.lists(
    st.builds(EpochSpan, st.integers(1, 3), st.integers(0, 6), times, st.none() | times),
    max_size=12,
)
price_tables = st.lists(
    st.builds(
        PriceRow,
        st.sampled_from(["H100", "A100"]),
        st.sampled_from(["spot", "on-demand"]),
        times,
        st.integers(0, 10**8),
    ),
    max_size=8,
    unique_by=lambda row: (row.gpu_model, row.capacity_type, row.from_ms),
)


@given(holdings, epochs, price_tables, st.sets(st.integers(1, 3)))
def test_lines_add_up_to_the_totals_and_lose_no_time(hs, es, ps, failed) -> None:
    got = bill(hs, es, ps, now_ms=0, failed_attempts=failed)

    assert sum(h.gpus * (h.end_ms - h.start_ms) for h in hs) == got.gpu_ms
    assert got.gpu_ms == sum(item.gpu_ms for item in got.lines)
    if got.is_priced:
        assert got.micro_usd == sum(item.micro_usd for item in got.lines)
        assert got.micro_usd >= 0
    else:
        assert any(item.micro_usd is None for item in got.lines)
    each, total = seconds([item.gpu_ms for item in got.lines])
    assert total == sum(each) == sum(reversed(each))


@given(holdings, epochs, price_tables, st.randoms(use_true_random=False))
def test_the_order_of_what_is_known_is_irrelevant(hs, es, ps, rng: random.Random) -> None:
    want = bill(hs, es, ps, now_ms=0)

    shuffled = [rng.sample(items, len(items)) for items in (hs, es, ps)]

    assert want == bill(*shuffled, now_ms=0)


@given(holdings, epochs, price_tables, times)
def test_cutting_a_holding_in_two_changes_no_total(hs, es, ps, at) -> None:
    whole = bill(hs, es, ps, now_ms=0)
    parts = [
        Holding(h.attempt, h.replica, h.gpus, start, end, h.gpu_model, h.capacity_type)
        for h in hs
        for start, end in (
            (h.start_ms, max(h.start_ms, min(at, h.end_ms))),
            (max(h.start_ms, min(at, h.end_ms)), h.end_ms),
        )
    ]

    got = bill(parts, es, ps, now_ms=0)

    assert whole == got


@given(st.lists(st.integers(0, 10**12), max_size=20), st.integers(1, 10**7))
def test_parts_are_off_by_less_than_one_and_add_up_to_the_rounded_sum(amounts, unit) -> None:
    got = spread(amounts, unit)

    assert (sum(amounts) + unit // 2) // unit == sum(got)
    assert all(abs(part * unit - amount) < unit for part, amount in zip(got, amounts, strict=True))


@pytest.mark.parametrize(
    ("micro_usd", "want"),
    [
        (None, "unpriced"),
        (0, "$0.00"),
        (1, "$0.000001"),
        (123_456, "$0.123456"),
        (1_000_000, "$1.00"),
        (1_234_567_890, "$1,234.57"),
        (-2_005_000, "-$2.01"),
    ],
)
def test_money_is_written_with_as_many_digits_as_matter(micro_usd, want) -> None:
    assert want == usd(micro_usd)
