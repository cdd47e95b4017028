"""What a plan follows from, as JSON text: snapshots, and decisions with their inputs.

`loads(dumps(inputs)) == inputs`, and the cycle plans the same from both, byte for byte. A decision
is told by the inputs of its cycle and the plan that it made of them; `planned` makes the plan
again from the inputs alone. Files are read and written by others.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from muster.errors import InvalidSpec
from muster.fields import shown
from muster.scheduling.cluster import Cluster, Objects
from muster.scheduling.codec import Codec
from muster.scheduling.cycle import plan_cycle
from muster.scheduling.difference import Step, applied, difference
from muster.scheduling.plan import Plan
from muster.scheduling.policy import Policy

VERSION: Final = 1
"""Grows when files of before can no longer be read as they were meant."""
SNAPSHOT: Final = "snapshot"
DECISION: Final = "decision"
STEP: Final = "step"
_WHAT: Final = "muster"
"""The key that tells one of our files, and which."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """All that a plan follows from."""

    objects: Objects
    policy: Policy
    now: float
    """Seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class Record:
    """A decision: what a cycle saw, and what it made of it."""

    id: str
    """Unique, and later ones sort behind earlier ones."""
    inputs: Inputs
    plan: Plan


_KINDS: Final[Mapping[str, type]] = {SNAPSHOT: Inputs, DECISION: Record, STEP: Step}
"""What a file holds, by the word in it; the value lies under the same word."""

_FOREIGN: Final = "; this file was not written by muster"


def planned(inputs: Inputs) -> Plan:
    """The plan that follows from *inputs*."""
    cluster = Cluster.restored(inputs.objects)
    return plan_cycle(cluster.snapshot(), inputs.policy, inputs.now)


def dumps(inputs: Inputs) -> str:
    """A snapshot: the inputs of a cycle, in one line of ASCII."""
    return _written(SNAPSHOT, inputs)


def dumps_record(record: Record) -> str:
    """A decision with its inputs, in one line of ASCII."""
    return _written(DECISION, record)


def dumps_step(record: Record, before: Record) -> str:
    """A decision by what changed since the one *before*: little where the cluster is large."""
    inputs = record.inputs
    changes = difference(before.inputs.objects, inputs.objects)
    step = Step(record.id, before.id, changes, inputs.policy, inputs.now, record.plan)
    return _written(STEP, step)


def dumps_plan(plan: Plan) -> str:
    """A plan alone, to compare or to show."""
    return json.dumps(Codec().encode(Plan, plan))


def loads(text: str | bytes) -> Inputs:
    """The inputs in a snapshot or a decision. Raises `InvalidSpec`."""
    found = loads_any(text)
    return found.inputs if isinstance(found, Record) else found


def loads_any(text: str | bytes) -> Inputs | Record:
    """The snapshot or decision in *text*. Raises `InvalidSpec`."""
    found: Inputs | Record = _read(text, (SNAPSHOT, DECISION))
    return found


def loads_record(text: str | bytes) -> Record:
    """The decision in *text*. Raises `InvalidSpec`."""
    found: Record = _read(text, (DECISION,))
    return found


def loads_step(text: str | bytes, before: Record) -> Record:
    """The decision that was told by what changed since *before*. Raises `InvalidSpec`."""
    step: Step = _read(text, (STEP,))
    if step.after != before.id:
        raise InvalidSpec(f"{STEP}.after", f"must be {before.id}, is {shown(step.after)}")
    inputs = Inputs(applied(before.inputs.objects, step.changes), step.policy, step.now)
    return Record(step.id, inputs, step.plan)


def _read(text: str | bytes, kinds: Sequence[str]) -> Any:
    """The value of one of *kinds* in *text*."""
    raw = _object(text)
    what = raw.get(_WHAT)
    if not isinstance(what, str) or what not in kinds:
        problem = f"must be {' or '.join(kinds)}, is {shown(what)}"
        raise InvalidSpec(_WHAT, problem + ("" if what in list(_KINDS) else _FOREIGN))
    if raw.get("version") != VERSION:
        raise InvalidSpec("version", f"must be {VERSION}, is {shown(raw.get('version'))}")
    defaults = raw.get("defaults")
    if not isinstance(defaults, dict) or not all(isinstance(d, dict) for d in defaults.values()):
        raise InvalidSpec("defaults", "must be an object of objects")
    try:
        return Codec(defaults).decode(_KINDS[what], raw.get(what))
    except InvalidSpec as error:
        where = error.path if error.path.startswith("defaults.") else f"{what}{error.path}"
        raise InvalidSpec(where, error.problem) from None


def _written(what: str, value: object) -> str:
    codec = Codec()
    body = codec.encode(_KINDS[what], value)
    head = {_WHAT: what, "version": VERSION, "defaults": codec.defaults}
    return json.dumps({**head, what: body}, separators=(",", ":"), allow_nan=False)


def _object(text: str | bytes) -> dict[str, Any]:
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidSpec("", f"is not JSON: {' '.join(str(error).split())}") from None
    if not isinstance(raw, dict):
        raise InvalidSpec("", f"must be an object, is {shown(raw)}")
    return raw
