"""Who leaves for whom, as values."""

from dataclasses import replace

import pytest

from muster.claims import (
    Ask,
    Asked,
    Claim,
    Directive,
    claim_of,
    directive_of,
    raw_of_claim,
    raw_of_directive,
)

FIRST = Ask("c1", 1.0, 61.0, (Asked("team/a", "u-a", 3, (2, 3), "surplus"),))
SECOND = Ask("c2", 2.0, 62.0, (Asked("team/b", "u-b", 1, None, "priority"),))
CLAIM = Claim(("n1", "n2"), "2 jobs leave", (FIRST, SECOND), ("b",))


def test_a_claim_is_the_same_once_it_was_written() -> None:
    assert claim_of(raw_of_claim(CLAIM)) == CLAIM
    assert claim_of(raw_of_claim(None)) is None
    assert claim_of({}) is None
    assert claim_of({"nodes": ["n1"]}) == Claim(("n1",))


def test_everybody_who_was_asked_is_named_with_the_decision() -> None:
    want = [(FIRST, FIRST.victims[0]), (SECOND, SECOND.victims[0])]

    assert want == list(CLAIM.victims())


def test_a_further_decision_keeps_what_was_asked_before() -> None:
    before = Claim(("n1",), "1 job leaves", (FIRST,), ("b",))
    after = Claim(("n2",), "1 more", (SECOND,), ("a",))

    assert before.extended(after) == Claim(("n2",), "1 more", (FIRST, SECOND), ("a", "b"))


DIRECTIVE = Directive("d1", "checkpoint", 60.0, 1.5)


def test_a_directive_is_the_same_once_it_was_written() -> None:
    assert directive_of(raw_of_directive(DIRECTIVE)) == DIRECTIVE
    assert directive_of(raw_of_directive(None)) is None


@pytest.mark.parametrize("raw", [None, {}, {"kind": "checkpoint"}])
def test_a_directive_without_an_id_is_none(raw: dict[str, str] | None) -> None:
    assert directive_of(raw) is None


def test_the_words_of_a_claim_are_bounded() -> None:
    raw = raw_of_claim(replace(CLAIM, why="x" * 5000))

    assert raw is not None
    assert 1024 == len(raw["why"])
