"""Times as milliseconds and as texts."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.times import ms_at, ms_of, text_of


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2026-12-01T09:30:00Z", 1_796_117_400_000),
        ("2026-12-01T10:30:00+01:00", 1_796_117_400_000),
        ("2026-12-01T09:30:00.123456789Z", 1_796_117_400_123),
        ("1969-12-31T23:59:59.999Z", -1),
    ],
)
def test_a_text_becomes_milliseconds(text: str, want: int) -> None:
    assert want == ms_of(text)


@pytest.mark.parametrize("text", ["", "soon", "2026-12-01T09:30:00", "2026-12-01"])
def test_a_text_without_a_zone_is_no_time(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        ms_of(text)


@given(st.integers(0, 4_102_444_800_000))
def test_milliseconds_come_back_as_they_were(milliseconds: int) -> None:
    assert milliseconds == ms_of(text_of(milliseconds))


def test_whole_seconds_are_written_without_a_fraction() -> None:
    assert "2026-12-01T09:30:00Z" == text_of(ms_at(datetime(2026, 12, 1, 9, 30, tzinfo=UTC)))
