"""Why a gang waits: the code of the constraint that binds, and a sentence with the numbers.

The questions are asked in the order of precedence, of what is left when a cycle has decided
everything else. A sentence says nothing that differs between gangs with the same question, so that
it is worked out once for all of them.
"""

from collections.abc import Collection

import numpy as np

from muster.scheduling.amounts import GPUS, UNBOUNDED, Amounts, taken_by
from muster.scheduling.fit import Mask
from muster.scheduling.outlook import Outlook
from muster.scheduling.placement import find, request_of
from muster.scheduling.plan import WaitReason
from muster.scheduling.quota import Excess, Held, excess, excess_by_model
from muster.scheduling.room import Counts, Field, Verdict, counted
from muster.scheduling.snapshot import Question, TopologyRequest
from muster.scheduling.state import Ask, State
from muster.scheduling.tree import ROOT, Layer
from muster.scheduling.trial import Trial
from muster.scheduling.wording import amount_of, gpus_of, number_of, replicas_of

Reason = tuple[WaitReason, str]


def obstacle(question: Question, trial: Trial) -> Reason | None:
    """What somebody has to change before such a gang can be considered at all."""
    snapshot = trial.snapshot
    if question.is_suspended:
        return WaitReason.SUSPENDED, "the job is suspended"
    if not snapshot.quotas.is_known(question.queue):
        return WaitReason.UNKNOWN_QUEUE, f"there is no queue {question.queue}"
    paused = snapshot.quotas.paused(question.queue)
    if paused is not None:
        return WaitReason.SUSPENDED, f"queue {paused} is paused"
    if question.held_back:
        return WaitReason.DEPENDENCY, question.held_back
    for level in (question.topology.required, question.topology.part_required):
        if level is not None and snapshot.tree.layer_of(level) is None:
            message = f"the cluster has no topology level {level}"
            return WaitReason.UNKNOWN_TOPOLOGY_LEVEL, message
    return None


def explain(ask: Ask, state: State, outlook: Outlook) -> Reason:
    """Why a gang with this question does not start on what a cycle leaves."""
    question = ask.question
    obvious = obstacle(question, state.trial)
    if obvious is not None:
        return obvious
    reason, message = _kept(ask, state)
    if reason is not WaitReason.INSUFFICIENT_CAPACITY:
        return reason, message
    by_model = state.snapshot.quotas.is_by_model
    if (not by_model and outlook.is_entitled_but_for_its_share(ask)) or (
        state.is_share_alone_in_the_way(ask)
    ):
        return WaitReason.QUEUE_SHARE, _entitled(question, message)
    return reason, message


def _kept(ask: Ask, state: State) -> Reason:
    """The reason, rights aside; that of an earlier cycle where all it follows from is the same."""
    question, trial, snapshot = ask.question, state.trial, state.snapshot
    quotas = snapshot.quotas
    if quotas.is_by_model or question.user or trial.is_split:
        return _about_capacity(ask, state)
    limited = tuple(trial.held.total.get(name, 0) for name, _ in quotas.limits(question.queue))
    stamp = (trial.fingerprint(), snapshot.capacity_version, limited)
    kept = snapshot.memo.reasons.get(question)
    if kept is not None and kept[0] == stamp and kept[1] is quotas:
        return kept[2]
    return snapshot.memo.reasons.put(question, (stamp, quotas, _about_capacity(ask, state)))[2]


def _about_capacity(ask: Ask, state: State) -> Reason:
    question, trial = ask.question, state.trial
    for reason, ask_why in _IN_ORDER_OF_PRECEDENCE:
        message = ask_why(question, trial)
        if message is not None:
            return reason, message
    if state.placed(ask) is not None:
        return WaitReason.RESERVED, _RESERVED
    for reason, ask_why in _ABOUT_ROOM:
        message = ask_why(question, trial)
        if message is not None:
            return reason, message
    shortage = _shortage(question, trial)
    if shortage is None:
        return WaitReason.FRAGMENTED, _pieces(question, trial)
    return WaitReason.INSUFFICIENT_CAPACITY, shortage


def is_never(question: Question, trial: Trial) -> bool:
    """Whether the cluster, even empty, or a limit can never hold such a gang."""
    return _no_nodes(question, trial) is not None or _never(question, trial) is not None


_RESERVED = (
    "what it needs is free, but reserved for a gang ahead of it; a job that declares a maxRunTime "
    "that is over before then, or that is preemptible, may go first"
)


def _entitled(question: Question, shortage: str) -> str:
    return (
        f"{shortage}; to take it from others would put queue {question.queue} above its fair share"
    )


def _no_nodes(question: Question, trial: Trial) -> str | None:
    columns, rules = trial.snapshot.columns, question.rules
    if columns.mask(rules, lasting=True).any():
        return None
    causes = [
        f"{number_of(number, 'node')}: {cause}" for cause, number in columns.causes(rules).items()
    ]
    return "no node matches" + (f" ({'; '.join(causes)})" if causes else "; there are none")


def _never(question: Question, trial: Trial) -> str | None:
    """Down and cordoned nodes count as if they were up, other people's pods as if gone."""
    snapshot, gpus = trial.snapshot, question.replicas * question.needs.gpus
    found = excess(snapshot.quotas, Held(), question.queue, gpus, question.user)
    if found is not None:
        whose = f"each user in queue {found.queue}" if found.user else f"queue {found.queue}"
        return f"needs {gpus_of(gpus)}; the limit of {whose} is {found.limit}"
    barred = excess_by_model(snapshot.quotas, Held(), question.queue, gpus)
    verdicts = snapshot.memo.verdicts(snapshot.capacity_version)
    key = (question.needs, question.rules, question.topology, question.replicas, *sorted(barred))
    verdict = verdicts.get(key)
    if verdict is None:
        verdict = verdicts.put(key, Verdict(_never_on_nodes(question, trial, barred)))
    return verdict.message


def _never_on_nodes(question: Question, trial: Trial, barred: Collection[str]) -> str | None:
    snapshot = trial.snapshot
    mask = snapshot.columns.mask(question.rules, lasting=True)
    allowed = mask & ~snapshot.columns.of_models(sorted(barred))
    field = counted(snapshot.tree, question.needs, snapshot.capacity, allowed)
    if _fits(question, field):
        return None
    if barred and _fits(question, counted(snapshot.tree, question.needs, snapshot.capacity, mask)):
        return f"needs {_wanted(question)}; the limits on {', '.join(sorted(barred))} are lower"
    if field.total >= question.replicas:
        return f"{_narrowest(question, field)}, even empty"
    scarce = _scarce(question, snapshot.capacity, allowed)
    return f"needs {_wanted(question)}{scarce}; the empty cluster has room for {field.total}"


def _scarce(question: Question, capacity: Amounts, mask: Mask) -> str:
    """What else than GPUs keeps most replicas out, and how much of it each of them needs."""
    room = {
        # More than all replicas in one place would tell nothing, and add up to too much.
        resource: int(np.minimum(capacity[resource][mask] // amount, question.replicas).sum())
        for resource, amount in enumerate(taken_by(question.needs))
        if amount
    }
    fewest = min(room, key=room.__getitem__)
    if fewest == GPUS or room[fewest] >= question.replicas:
        return ""
    each = amount_of(fewest, taken_by(question.needs)[fewest])
    return f" with {each} each"


def _limit(question: Question, trial: Trial) -> str | None:
    quotas, gpus = trial.snapshot.quotas, question.replicas * question.needs.gpus
    for held in (trial.held, trial.held_now):
        found = excess(quotas, held, question.queue, gpus, question.user)
        if found is not None:
            return _beyond(found, gpus)
    barred = _limits_in_the_way(question, trial)
    columns = trial.snapshot.columns
    may_use = columns.mask(question.rules, lasting=True)
    wanted = [m for m in sorted(barred) if (may_use & columns.of_models([m])).any()]
    if not wanted:
        return None
    is_all_barred = not (may_use & ~columns.of_models(wanted)).any()
    if is_all_barred or _fits(question, trial.field(question.needs, question.rules)):
        return _beyond(barred[wanted[0]], gpus)
    return None


def _limits_in_the_way(question: Question, trial: Trial) -> dict[str, Excess]:
    """By GPU model: now, and when everybody has left who was asked to."""
    quotas, gpus = trial.snapshot.quotas, question.replicas * question.needs.gpus
    after = excess_by_model(quotas, trial.held, question.queue, gpus)
    return after | excess_by_model(quotas, trial.held_now, question.queue, gpus)


def _topology(question: Question, trial: Trial) -> str | None:
    topology = question.topology
    if topology.required is None and topology.part_size is None:
        return None
    field = _field(question, trial)
    if not _fits(question, field, TopologyRequest()):
        return None
    return _narrowest(question, field)


def _pieces(question: Question, trial: Trial) -> str:
    field = _field(question, trial)
    free = f"{int(field.spare[0][0])} GPUs are free" if question.needs.gpus else "enough is free"
    return f"needs {_wanted(question)}; {free} in all, in pieces that hold {field.total}"


_IN_ORDER_OF_PRECEDENCE = (
    (WaitReason.NO_MATCHING_NODES, _no_nodes),
    (WaitReason.NEVER_FITS, _never),
    (WaitReason.QUEUE_LIMIT, _limit),
)
_ABOUT_ROOM = ((WaitReason.TOPOLOGY_UNSATISFIED, _topology),)


def _shortage(question: Question, trial: Trial) -> str | None:
    """The first resource of which less is free in all than the gang needs."""
    mask = _allowed(question, trial)
    for resource, amount in enumerate(taken_by(question.needs)):
        needed = amount * question.replicas
        free = _sum(trial.free, resource, mask)
        if free < needed:
            text = f"needs {amount_of(resource, needed)}; {amount_of(resource, free)} free"
            return text + _out_of_service(question, trial)
    return None


def _out_of_service(question: Question, trial: Trial) -> str:
    snapshot = trial.snapshot
    lasting = snapshot.columns.mask(question.rules, lasting=True)
    number = int(np.count_nonzero(lasting & ~trial.mask(question.rules)))
    return f" ({number_of(number, 'node')} not ready or cordoned)" if number else ""


def _sum(amounts: Amounts, resource: int, mask: Mask) -> int:
    # Not in one numpy sum: a few unbounded nodes would overflow it.
    free = np.maximum(amounts[resource][mask], 0)
    return UNBOUNDED if (free > UNBOUNDED // 2).any() else int(free.sum())


def _allowed(question: Question, trial: Trial) -> Mask:
    return trial.mask(question.rules) & ~trial.snapshot.columns.of_models(_barred(question, trial))


def _field(question: Question, trial: Trial) -> Field:
    return trial.field(question.needs, question.rules, _barred(question, trial))


def _barred(question: Question, trial: Trial) -> list[str]:
    return sorted(_limits_in_the_way(question, trial))


def _fits(question: Question, field: Field, topology: TopologyRequest | None = None) -> bool:
    request = request_of(
        question.topology if topology is None else topology,
        field.tree,
        replicas=question.replicas,
        gpus=question.needs.gpus,
    )
    return find(field, request) is not None


def _narrowest(question: Question, field: Field) -> str:
    """Which level has no domain with enough room, and how much its roomiest one has."""
    topology, replicas = question.topology, question.replicas
    is_whole = topology.required is not None and not _fits(
        question, field, TopologyRequest(required=topology.required)
    )
    if topology.part_size is not None and not is_whole:
        return _parts(question, topology.part_size, field)
    name = topology.required or ""
    layer, counts = _domains(name, field)
    most = int(np.argmax(counts))
    title = layer.titles[most]
    return f"needs {replicas} replicas in one {name}; the roomiest, {title}, holds {counts[most]}"


def _parts(question: Question, size: int, field: Field) -> str:
    required, level = question.topology.required, question.topology.part_required or ""
    layer, counts = _domains(level, field)
    around = field.tree.layers[ROOT if required is None else _number(required, field)]
    room = int(np.add.reduceat(counts // size, layer.of_node[around.starts]).max())
    parts = number_of(-(-question.replicas // size), "part")
    within = f", all in one {required}" if required else ""
    wanted = f"{parts} of {number_of(size, 'replica')}, each in one {level}{within}"
    return f"needs {wanted}; there is room for {room}"


def _domains(level: str, field: Field) -> tuple[Layer, Counts]:
    number = _number(level, field)
    layer = field.tree.layers[number]
    return layer, np.where(layer.is_domain, field.counts[number], 0)


def _number(level: str, field: Field) -> int:
    number = field.tree.layer_of(level)
    assert number is not None, "an unknown level is found out before"
    return number


def _wanted(question: Question) -> str:
    return replicas_of(question.replicas, question.needs)


def _beyond(found: Excess, gpus: int) -> str:
    model = f" {found.model}" if found.model else ""
    limit = f"{found.held} of at most {found.limit}{model}"
    whose = f"{found.user} holds" if found.user else f"queue {found.queue} holds"
    where = f" in queue {found.queue}" if found.user else ""
    return f"needs {gpus_of(gpus)}; {whose} {limit}{where}"
