"""One pass from a snapshot to a plan."""

from muster.scheduling.plan import Admit, Decision, Plan, Wait, WaitReason
from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import Gang, Snapshot


def plan_cycle(snapshot: Snapshot, policy: Policy, now: float) -> Plan:  # noqa: ARG001
    """What starts, and why everything else does not."""
    free = {n.name: n.gpus for n in snapshot.nodes if n.is_ready and not n.is_cordoned}
    for gang in snapshot.gangs:
        for name in gang.placement or ():
            if name in free:
                free[name] -= gang.needs.gpus
    for name, needs in snapshot.foreign:
        if name in free:
            free[name] -= needs.gpus
    pending = sorted(
        (g for g in snapshot.gangs if g.is_pending),
        key=lambda g: (-g.priority, g.submitted, g.key),
    )
    decisions: list[Decision] = []
    for gang in pending:
        nodes = None if gang.is_suspended else _fill(gang, free)
        if nodes is None:
            reason = (
                WaitReason.SUSPENDED if gang.is_suspended else WaitReason.INSUFFICIENT_CAPACITY
            )
            message = f"needs {gang.min_replicas * gang.needs.gpus} GPUs"
            decisions.append(Wait(gang.key, reason, message, 1 + len(decisions)))
            continue
        for name in nodes:
            free[name] -= gang.needs.gpus
        decisions.append(Admit(gang.key, nodes, f"on {len(set(nodes))} nodes"))
    return Plan(tuple(decisions))


def _fill(gang: Gang, free: dict[str, int]) -> tuple[str, ...] | None:
    nodes: list[str] = []
    for name, gpus in free.items():
        room = gpus // gang.needs.gpus if gang.needs.gpus else gang.min_replicas
        nodes += [name] * min(room, gang.min_replicas - len(nodes))
    return tuple(nodes) if len(nodes) == gang.min_replicas else None
