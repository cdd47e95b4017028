from contextlib import suppress
from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.errors import InvalidSpec
from muster.parse import bytes_of, millis, seconds_of, whole
from muster.parse.quantity import LARGEST

# (text, in thousandths, in whole units), as `Quantity.MilliValue` and `Quantity.Value` give them.
KUBERNETES = {
    "a whole number": ("2", 2000, 2),
    "thousandths": ("1500m", 1500, 2),
    "a fraction": ("0.5", 500, 1),
    "a fraction without its zero": (".5", 500, 1),
    "a number with a bare point": ("5.", 5000, 5),
    "a plus sign": ("+2", 2000, 2),
    "leading zeros": ("007", 7000, 7),
    "nothing": ("0", 0, 0),
    "nothing of a suffix": ("0Gi", 0, 0),
    "a hundred billionths round up to something": ("100n", 1, 1),
    "millionths": ("2500u", 3, 1),
    "a lower-case exponent": ("1e3", 1_000_000, 1000),
    "an upper-case exponent": ("1E3", 1_000_000, 1000),
    "a negative exponent": ("25e-1", 2500, 3),
    "an exponent with a plus": ("1e+2", 100_000, 100),
    "exa, not an exponent": ("1E", 1000 * 10**18, 10**18),
    "kilo": ("3k", 3_000_000, 3000),
    "mega": ("1M", 10**9, 10**6),
    "kibi": ("1Ki", 1_024_000, 1024),
    "gibi": ("2Gi", 2 * 2**30 * 1000, 2 * 2**30),
    "half a gibi": ("0.5Gi", 2**29 * 1000, 2**29),
    "a part of a byte": ("0.3Ki", 307_200, 308),
    "a YAML integer": (4, 4000, 4),
    "a YAML fraction": (0.25, 250, 1),
    "more than there is": ("9e30", LARGEST, LARGEST),
    "an exponent beyond reason": ("1e9999", LARGEST, LARGEST),
    "a fraction beyond reason": ("1e-9999", 1, 1),
}


@pytest.mark.parametrize("claim", KUBERNETES)
def test_quantities_mean_what_kubernetes_means(claim: str) -> None:
    text, thousandths, units = KUBERNETES[claim]
    assert (min(thousandths, LARGEST), units) == (millis(text), whole(text))
    assert units == bytes_of(text)


NO_QUANTITY = {
    "an empty string": "",
    "a word": "two",
    "a suffix alone": "Gi",
    "a point alone": ".",
    "two points": "1.2.3",
    "an unknown suffix": "1GB",
    "a capital kilo": "1K",
    "two suffixes": "1mm",
    "a space": "1 Gi",
    "an exponent without a number": "1e",
    "an exponent and a suffix": "1e3Ki",
    "a truth value": True,
    "a mapping": {"cpu": 1},
    "nothing": None,
    "no number": "nan",
    "no end": float("inf"),
    "digits of another script": "٣",
    "digits without end": "9" * 5000,
}


@pytest.mark.parametrize("claim", NO_QUANTITY)
def test_what_is_no_quantity_is_refused_with_its_path(claim: str) -> None:
    with pytest.raises(InvalidSpec, match=r"^spec\.cpu: .*is no quantity; write it as 2, 500m"):
        millis(NO_QUANTITY[claim], "spec.cpu")


@pytest.mark.parametrize("text", ["-1", "-500m", "-0.5Gi", -2])
def test_a_negative_amount_is_refused(text: object) -> None:
    with pytest.raises(InvalidSpec, match=r"^memory: must not be negative, is -"):
        bytes_of(text, "memory")


SIZES = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(1000),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}
NUMBERS = st.one_of(
    st.integers(0, 10**12).map(str),
    st.tuples(st.integers(0, 10**6), st.integers(0, 10**9)).map(lambda p: f"{p[0]}.{p[1]:09d}"),
)


@given(NUMBERS, st.sampled_from(sorted(SIZES)))
def test_an_amount_is_exact_and_rounded_up(number: str, suffix: str) -> None:
    exact = Fraction(number) * SIZES[suffix]
    assert min(ceil(exact * 1000), LARGEST) == millis(number + suffix)
    assert min(ceil(exact), LARGEST) == whole(number + suffix)


@given(NUMBERS, st.integers(-30, 30))
def test_an_exponent_moves_the_point(number: str, exponent: int) -> None:
    exact = Fraction(number) * Fraction(10) ** exponent
    assert min(ceil(exact * 1000), LARGEST) == millis(f"{number}e{exponent}")


@given(st.integers(0, 2**50))
def test_an_amount_that_was_written_out_is_read_back(amount: int) -> None:
    assert amount == millis(f"{amount}m") == whole(amount) == bytes_of(str(amount))


@given(st.text(max_size=40))
def test_any_text_is_a_quantity_or_refused(text: str) -> None:
    with suppress(InvalidSpec):
        assert 0 <= millis(text) <= LARGEST


DURATIONS = {
    "hours and minutes": ("1h30m", 5400),
    "seconds": ("90s", 90),
    "days": ("2d", 172_800),
    "every unit": ("1d1h1m1s1000ms", 90_062),
    "a part of a second counts as one": ("500ms", 1),
    "nothing": ("0s", 0),
    "a bare number": ("30", 30),
    "a YAML number": (30, 30),
}


@pytest.mark.parametrize("claim", DURATIONS)
def test_durations_are_seconds(claim: str) -> None:
    text, want = DURATIONS[claim]
    assert want == seconds_of(text)


@pytest.mark.parametrize("text", ["", "soon", "1x", "m", "5m1h", "-1s", "1.5h", None, True])
def test_what_is_no_duration_is_refused_with_its_path(text: object) -> None:
    with pytest.raises(InvalidSpec, match=r"^wait: .* is no duration; write it as 1h30m"):
        seconds_of(text, "wait")
