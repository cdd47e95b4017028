"""The `expect` lines of a scenario, from plain mappings."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from muster.errors import InvalidSpec
from muster.parse.raw import at, shown
from muster.scheduling.plan import WaitReason
from muster.simulation.entries import Entry, Names, duration_of, known, seconds_of
from muster.simulation.expectations import NEVER, UNKNOWN, Answer, Expectation, What
from muster.simulation.job import State

_OF_JOBS: Final = tuple(what for what in What if what not in (What.FREE_GPUS, What.SHARE))
_ALLOWED: Final[Mapping[str, tuple[What, ...]]] = {
    "job": _OF_JOBS,
    "queue": (What.SHARE,),
    "oneOf": (What.EVICTIONS,),
    "": (What.EVICTIONS, What.FREE_GPUS),
}
"""What may be asked, by what it is asked of."""
_TIMELESS: Final = (What.STARTED_AT, What.FINISHED_AT)


def read_expectations(
    values: Sequence[Any], names: Names, until: float | None
) -> tuple[Expectation, ...]:
    """All that must hold, in its own order; a line may ask several things of one subject."""
    return tuple(
        expectation
        for number, value in enumerate(values)
        for expectation in _line(value, at("expect", number), names, until)
    )


def _line(value: object, path: str, names: Names, until: float | None) -> Sequence[Expectation]:
    entry = Entry(value, path, ("job", "queue", "oneOf", *What, "at", "tolerance"))
    subjects = [name for name in ("job", "queue", "oneOf") if entry.has(name)]
    if len(subjects) > 1:
        raise InvalidSpec(path, f"must be about one of {' and '.join(subjects)}, not both")
    subject = subjects[0] if subjects else ""
    asked = [What(name) for name in entry.given if name in tuple(What)]
    allowed = _ALLOWED[subject]
    if not asked:
        raise InvalidSpec(path, f"says nothing to hold; known here: {', '.join(allowed)}")
    for what in asked:
        if what not in allowed:
            of = f"of a {subject}" if subject in ("job", "queue") else "here"
            raise entry.wrong(what, f"cannot be asked {of}; known: {', '.join(allowed)}")
    when = _when(entry, asked, until)
    if entry.has("tolerance") and What.SHARE not in asked:
        raise entry.wrong("tolerance", "is for share only; leave it out")
    job = queue = ""
    if subject == "job":
        job = known(entry.name("job"), names.jobs, entry.at("job"), "job")
    if subject == "queue":
        queue = known(entry.name("queue"), names.queues, entry.at("queue"), "queue")
    return [
        Expectation(
            path=path,
            what=what,
            want=want,
            at=when,
            job=job,
            queue=queue,
            one_of=_one_of(entry, names) if subject == "oneOf" else (),
            level=level,
            tolerance=entry.number("tolerance", least=0, default=0.0),
        )
        for what in asked
        for want, level in [_want(entry, what, names)]
    ]


def _when(entry: Entry, asked: Sequence[What], until: float | None) -> float | None:
    if not entry.has("at"):
        return None
    for what in asked:
        if what in _TIMELESS:
            raise entry.wrong("at", f"is not for {what}, which is a time itself; leave it out")
    when = entry.seconds("at")
    if until is not None and when is not None and when > until:
        problem = f"must not be later than until, which is {duration_of(until)}"
        raise entry.wrong("at", f"{problem}; is {duration_of(when)}")
    return when


def _one_of(entry: Entry, names: Names) -> tuple[str, ...]:
    jobs, path = entry.names("oneOf"), entry.at("oneOf")
    if not jobs:
        raise InvalidSpec(path, "must name jobs")
    for number, job in enumerate(jobs):
        known(job, names.jobs, at(path, number), "job")
    return jobs


def _want(entry: Entry, what: What, names: Names) -> tuple[Answer, str]:
    """What is wanted, and the topology level at which."""
    if what in _DOMAINS:
        field = _DOMAINS[what]
        given = Entry(entry.get(what), entry.at(what), ("level", field))
        level = known(given.name("level"), names.levels, given.at("level"), "level")
        if not given.has(field):
            raise given.wrong(field, "is missing")
        return given.whole(field), level
    return _READERS[what](entry, what, names), ""


def _whole(entry: Entry, what: What, _: Names) -> Answer:
    return entry.whole(what)


def _state(entry: Entry, what: What, _: Names) -> Answer:
    return str(entry.word(what, State))


def _reason(entry: Entry, what: What, _: Names) -> Answer:
    return str(entry.word(what, WaitReason))


def _time(entry: Entry, what: What, _: Names) -> Answer:
    word = UNKNOWN if what is What.PREDICTED_START else NEVER
    value = entry.get(what)
    if value == word:
        return word
    try:
        return seconds_of(value, entry.at(what))
    except InvalidSpec as error:
        problem = f"must be a time such as 90s, 5m or 1h30m, or {word}, is {shown(value)}"
        raise InvalidSpec(error.path, problem) from error


def _nodes(entry: Entry, what: What, names: Names) -> Answer:
    counts = entry.counts(what)
    for name in counts:
        known(name, names.nodes, at(entry.at(what), name), "node")
    return {name: count for name, count in counts.items() if count}


def _ranks(entry: Entry, what: What, names: Names) -> Answer:
    path = entry.at(what)
    # Nothing stands for a rank that is lost or has finished.
    ranks = tuple("" if node is None else node for node in entry.items(what))
    for rank, node in enumerate(ranks):
        if node != "":
            known(node, names.nodes, at(path, rank), "node")
    return ranks


def _share(entry: Entry, what: What, _: Names) -> Answer:
    return entry.number(what, least=0, default=0.0)


_DOMAINS: Final[Mapping[What, str]] = {
    What.NODES_WITHIN: "domains",
    What.RING_CROSSINGS: "count",
}
_READERS: Final[Mapping[What, Callable[[Entry, What, Names], Answer]]] = {
    What.STATE: _state,
    What.STARTED_AT: _time,
    What.FINISHED_AT: _time,
    What.EVICTIONS: _whole,
    What.REPLICAS_LOST: _whole,
    What.REPLICAS: _whole,
    What.NODES: _nodes,
    What.RANKS: _ranks,
    What.REASON: _reason,
    What.PREDICTED_START: _time,
    What.FREE_GPUS: _whole,
    What.SHARE: _share,
}
