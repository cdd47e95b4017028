"""What may be changed about a job that waits, from the least to the most.

Each function gives variants of a gang, in the order in which they should be tried, and says in
words what to change. Whether one starts the job is not known here.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from muster.scheduling.quota import Quotas
from muster.scheduling.snapshot import NODE_LEVEL, TopologyRequest
from muster.whatif.trying import Variant


def unblocked(base: Variant, quotas: Quotas) -> Variant:
    """The job without what somebody holds it back by."""
    found, gang = base, base.gang
    if gang.is_suspended:
        gang = replace(gang, is_suspended=False)
        found = found.with_gang("resume the job", {"suspend": False}, gang)
    if gang.held_back:
        gang = replace(gang, held_back="")
        found = found.with_gang("let it not come after another job", {"after": None}, gang)
    for name in quotas.lineage(gang.queue):
        queue = quotas.queues.get(name)
        if queue is not None and queue.is_paused:
            running = replace(queue, is_paused=False)
            found = found.with_queue(f"resume queue {name}", {"paused": False}, running)
    return found


def with_replicas(base: Variant, replicas: int) -> Variant:
    """A smaller gang; an elastic one only starts smaller."""
    gang = base.gang
    if gang.min_replicas < gang.replicas:
        smaller = replace(gang, min_replicas=replicas)
        words = f"let it start with {replicas} in place of {gang.min_replicas} replicas"
        return base.with_gang(words, {"minReplicas": replicas}, smaller)
    smaller = replace(gang, replicas=replicas, min_replicas=replicas)
    words = f"ask for {replicas} in place of {gang.replicas} replicas"
    return base.with_gang(words, {"replicas": replicas, "minReplicas": replicas}, smaller)


def wider(base: Variant, levels: Sequence[str]) -> Iterator[Variant]:
    """Wider levels, one after the other, then none at all; *levels* outermost first."""
    gang, asked = base.gang, base.gang.topology
    ladder = (*levels, NODE_LEVEL)
    if asked.required is not None:
        for level in _outer(asked.required, ladder):
            topology = replace(asked, required=level)
            yield _topology(
                base,
                topology,
                f"let it lie within one {level} in place of one {asked.required}",
                {"required": level},
            )
        preferred = asked.preferred or (asked.required if asked.required in ladder else None)
        freed = replace(asked, required=None, preferred=preferred)
        words = f"let it only prefer one {asked.required}" if preferred else "require no level"
        yield _topology(base, freed, words, {"required": None, "preferred": preferred})
    if asked.part_required is not None:
        for level in _outer(asked.part_required, ladder):
            yield _topology(
                base,
                replace(asked, part_required=level),
                f"let each part lie within one {level} in place of one {asked.part_required}",
                {"perPart": {"required": level}},
            )
        whole = replace(asked, part_size=None, part_required=None)
        yield _topology(base, whole, "require no level of its parts", {"perPart": None})
    if asked.required is not None and asked.part_required is not None:
        bare = TopologyRequest(preferred=asked.preferred)
        words = "require no level at all"
        spec = {"required": None, "perPart": None}
        yield base.with_gang(words, {"topology": spec}, replace(gang, topology=bare))


def _topology(
    base: Variant, topology: TopologyRequest, words: str, spec: dict[str, object]
) -> Variant:
    return base.with_gang(words, {"topology": spec}, replace(base.gang, topology=topology))


def _outer(level: str, ladder: Sequence[str]) -> Iterator[str]:
    """The levels outside *level*, the next one first; for one that there is not, all of them."""
    place = ladder.index(level) if level in ladder else len(ladder)
    return reversed(ladder[:place])


def other_models(base: Variant, models: Iterable[str]) -> Iterator[Variant]:
    """One GPU model more, then any."""
    asked = base.gang.rules.gpu_models
    if not asked:
        return
    for model in models:
        if model not in asked:
            allowed = (*asked, model)
            rules = replace(base.gang.rules, gpu_models=allowed)
            gang = replace(base.gang, rules=rules)
            yield base.with_gang(f"also allow {model}", {"gpuModels": list(allowed)}, gang)
    gang = replace(base.gang, rules=replace(base.gang.rules, gpu_models=()))
    yield base.with_gang("allow any GPU model", {"gpuModels": None}, gang)


def any_capacity(base: Variant) -> Iterator[Variant]:
    """Capacity of any type."""
    if base.gang.rules.capacity_types:
        rules = replace(base.gang.rules, capacity_types=())
        gang = replace(base.gang, rules=rules)
        yield base.with_gang("allow any capacity type", {"capacityTypes": None}, gang)


def any_nodes(base: Variant) -> Iterator[Variant]:
    """Nodes with any labels."""
    rules = base.gang.rules
    if rules.selector or rules.terms:
        freed = replace(rules, selector=(), terms=())
        spec = {"template": {"spec": {"nodeSelector": None, "affinity": {"nodeAffinity": None}}}}
        words = "drop its node selector and node affinity"
        yield base.with_gang(words, spec, replace(base.gang, rules=freed))


def preemptible(base: Variant) -> Iterator[Variant]:
    """A job that may be asked to leave, which may go before a reservation."""
    if not base.gang.is_preemptible:
        gang = replace(base.gang, is_preemptible=True)
        yield base.with_gang("let it be preemptible", {"preemptible": True}, gang)


def with_max_run_time(base: Variant, seconds: int) -> Variant:
    """A job that says when it is over."""
    gang = replace(base.gang, max_run_time=float(seconds))
    words = f"declare a maxRunTime of {_duration(seconds)}"
    return base.with_gang(words, {"maxRunTime": f"{seconds}s"}, gang)


def _duration(seconds: int) -> str:
    """Whole minutes in words."""
    hours, minutes = divmod(seconds // 60, 60)
    return (f"{hours}h" if hours else "") + (f"{minutes}m" if minutes or not hours else "")
