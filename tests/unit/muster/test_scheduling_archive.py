"""What is written down comes back as it was, and gives the same plan."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.errors import InvalidSpec
from muster.scheduling.archive import (
    Inputs,
    Record,
    dumps,
    dumps_plan,
    dumps_record,
    dumps_step,
    loads,
    loads_record,
    loads_step,
)
from muster.scheduling.archive import planned as replayed
from muster.scheduling.cluster import Cluster, Objects
from muster.scheduling.codec import Codec
from muster.scheduling.plan import Plan
from muster.scheduling.policy import Policy
from random_clusters import tried, worlds
from small_clusters import BLOCKS, BY_MODEL, MODELS, gang, holding, nodes

SMALL = Inputs(
    Cluster.of(
        levels=BLOCKS,
        nodes=[*MODELS, *nodes("n1 n2", rack="r1", block="b")],
        queues=BY_MODEL,
        gangs=[holding(gang("team/a", 2, 4), "n1 n2"), gang("team/b", 9, required="rack")],
    ).objects(),
    Policy(notice=30.0),
    1_796_117_400.25,
)
DECIDED = Record("2026-1", SMALL, replayed(SMALL))


def plain(value: Any) -> Any:
    """The value in what Python can compare: nan is not equal to itself, and 1 is equal to 1.0."""
    if is_dataclass(value):
        return [type(value), *(plain(getattr(value, field.name)) for field in fields(value))]
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return [tuple, *map(plain, value)]
    # A zero that is a default is not written down, whatever its sign.
    return type(value), repr(value + 0.0 if isinstance(value, float) else value)


@given(st.from_type(Objects), st.from_type(Policy), st.floats())
@tried(100)
def test_whatever_was_written_comes_back(objects: Objects, policy: Policy, now: float) -> None:
    inputs = Inputs(objects, policy, now)

    assert plain(inputs) == plain(loads(dumps(inputs)))


@given(st.from_type(Plan), st.text())
@tried(100)
def test_so_does_every_plan(plan: Plan, name: str) -> None:
    record = Record(name, SMALL, plan)

    assert plain(record) == plain(loads_record(dumps_record(record)))


@given(worlds())
@tried(100)
def test_the_plan_is_the_same_byte_for_byte(world: Any) -> None:
    inputs = Inputs(world.cluster().objects(), Policy(), 0.0)

    assert dumps_plan(replayed(inputs)) == dumps_plan(replayed(loads(dumps(inputs))))


def test_a_decision_is_a_snapshot_too() -> None:
    text = dumps_record(DECIDED)

    assert SMALL == loads(text)
    assert DECIDED == loads_record(text.encode())
    assert DECIDED.plan == replayed(loads(text))


@given(worlds(), worlds())
@tried(100)
def test_a_decision_told_by_what_changed_is_the_same(first: Any, second: Any) -> None:
    before, after = (
        Record(name, inputs := Inputs(world.cluster().objects(), Policy(), 1.0), replayed(inputs))
        for name, world in (("1", first), ("2", second))
    )

    assert after == loads_step(dumps_step(after, before), before)


def test_it_says_only_what_changed_and_since_which() -> None:
    objects = SMALL.objects
    later = replace(SMALL, objects=replace(objects, gangs=objects.gangs[1:], changed=7.0))
    record = Record("2026-2", later, DECIDED.plan)
    written = json.loads(dumps_step(record, DECIDED))

    assert {"gone": [["gangs", "team/a"]], "changed": 7.0} == written["step"]["changes"]
    assert record == loads_step(json.dumps(written), DECIDED)
    with pytest.raises(InvalidSpec, match=r"step\.after: must be 2026-2, is '2026-1'"):
        loads_step(json.dumps(written), record)


def test_what_is_the_default_is_not_written() -> None:
    written = json.loads(dumps(SMALL))

    assert {"name", "gpus", "labels"} == set(written["snapshot"]["objects"]["nodes"][-1])
    assert 30.0 == written["snapshot"]["policy"]["notice"]


def test_a_default_that_was_changed_since_counts_as_it_was() -> None:
    written = json.loads(dumps(SMALL))
    written["defaults"]["Policy"]["replace_failed_for"] = 7.0

    assert 7.0 == loads(json.dumps(written)).policy.replace_failed_for


def test_a_field_that_is_newer_than_the_file_has_its_default() -> None:
    written = json.loads(dumps(SMALL))
    del written["defaults"]["Policy"]["reservation"]
    written["defaults"]["Policy"]["of_a_later_version"] = 1

    assert SMALL == loads(json.dumps(written))


def test_a_snapshot_has_no_plan_to_compare() -> None:
    with pytest.raises(InvalidSpec, match="must be decision, is 'snapshot'"):
        loads_record(dumps(SMALL))


def changed(path: str, value: Any) -> str:
    """The small snapshot with something else at *path*; `...` takes it out."""
    written = json.loads(dumps_record(DECIDED))
    at, *rest = path.split("/")
    inner, steps = written, [at, *rest]
    for step in steps[:-1]:
        inner = inner[int(step) if step.isdigit() else step]
    last = int(steps[-1]) if steps[-1].isdigit() else steps[-1]
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    return json.dumps(written)


GANG = "decision/inputs/objects/gangs/0"
WRONG = {
    "no JSON": ("{", "is not JSON"),
    "no object": ("[1]", "must be an object"),
    "somebody else's file": ('{"kind": "List"}', "muster: must be snapshot or decision"),
    "a word that is none of ours": (changed("muster", ["decision"]), "muster: must be"),
    "another version": (changed("version", 2), "version: must be 1, is 2"),
    "no defaults": (changed("defaults", ...), "defaults: must be an object"),
    "no value": (changed("decision", ...), "decision: must be an object, is missing"),
    "a wrong default": (
        changed("defaults/Gang/priority", "high"),
        "defaults.Gang.priority: must be a whole number, is 'high'",
    ),
    "a missing field": (
        changed(f"{GANG}/replicas", ...),
        "decision.inputs.objects.gangs[0].replicas: is missing",
    ),
    "a field that is none": (
        changed(f"{GANG}/colour", "red"),
        "decision.inputs.objects.gangs[0].colour: is not a field of a Gang",
    ),
    "a number in words": (
        changed(f"{GANG}/needs/gpus", "two"),
        "decision.inputs.objects.gangs[0].needs.gpus: must be a whole number, is 'two'",
    ),
    "a flag in words": (
        changed(f"{GANG}/is_suspended", "no"),
        "decision.inputs.objects.gangs[0].is_suspended: must be true or false, is 'no'",
    ),
    "a time in words": (
        changed("decision/inputs/now", "noon"),
        "decision.inputs.now: must be a number, is 'noon'",
    ),
    "a text that is a number": (
        changed(f"{GANG}/key", 7),
        "decision.inputs.objects.gangs[0].key: must be a text, is 7",
    ),
    "one value for many": (
        changed(f"{GANG}/placement", "n1"),
        "decision.inputs.objects.gangs[0].placement: must be a list, is 'n1'",
    ),
    "an order that there is not": (
        changed("decision/inputs/objects/queues/0/order", "lifo"),
        "decision.inputs.objects.queues[0].order: must be one of fifo, attained-service, "
        "shortest-remaining, is 'lifo'",
    ),
    "a limit that is none": (
        changed("decision/inputs/objects/queues/0/limit_by_model/H100", None),
        "decision.inputs.objects.queues[0].limit_by_model.H100: must be a whole number",
    ),
    "too few values": (
        changed("decision/inputs/objects/foreign", [["a", "n1"]]),
        "decision.inputs.objects.foreign[0]: must hold 3 values, holds 2",
    ),
    "a decision that there is not": (
        changed("decision/plan/decisions/0/is", "Sleep"),
        "decision.plan.decisions[0].is: must be one of Preempt, Withdraw, Admit",
    ),
}


@pytest.mark.parametrize("claim", WRONG)
def test_a_file_that_is_not_one_of_ours_is_refused_by_the_field(claim: str) -> None:
    text, words = WRONG[claim]

    with pytest.raises(InvalidSpec) as refused:
        loads(text)

    assert str(refused.value).startswith(words)


@dataclass(frozen=True, slots=True)
class Odd:
    """A value with a field that has no form in JSON."""

    thing: complex


@dataclass(frozen=True, slots=True)
class Keyed:
    """A value whose keys are no texts."""

    by_pair: dict[tuple[str, int], float]


def test_keys_that_are_no_texts_are_written_as_pairs() -> None:
    value = Keyed({("a", 1): 0.5, ("b", 2): float("inf")})
    written = Codec().encode(Keyed, value)

    assert {"by_pair": [[["a", 1], 0.5], [["b", 2], "inf"]]} == written
    assert value == Codec().decode(Keyed, written)


def test_what_has_no_form_is_a_defect_of_ours() -> None:
    with pytest.raises(TypeError, match="complex"):
        Codec().encode(Odd, Odd(1j))
