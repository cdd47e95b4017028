"""The answers as plain objects, as the API sends and the command prints them.

One place for both: the keys are a contract with scripts outside. Times become RFC 3339 in UTC.
Names of jobs go through *shown*: whoever may not see a job reads no more than that there is one.
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any, Final

from muster.cost import PriceRow
from muster.money import usd
from muster.scheduling.cluster import Objects
from muster.scheduling.fragments import fragmented_gpus, free_gpus, held_by
from muster.scheduling.plan import Victim, WaitReason
from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import Node, Snapshot
from muster.scheduling.standing import Standing, standings
from muster.scheduling.tree import natural
from muster.times import text_of
from muster.whatif.dry_run import DryRun
from muster.whatif.explanation import Explanation
from muster.whatif.losses import cost_of_loss

Json = dict[str, Any]
Shown = Callable[[str], str]


def as_they_are(name: str) -> str:
    """The name of a job as it is."""
    return name


def time_of(seconds: float | None) -> str | None:
    """A time in seconds since the epoch as text."""
    return None if seconds is None else text_of(round(seconds * 1000))


_NEVER: Final = "as things are it never starts"
_UNKNOWN: Final[Mapping[str, str]] = {
    WaitReason.SUSPENDED: "it starts only after somebody has resumed it",
    WaitReason.DEPENDENCY: "nobody can know when the job that it comes after succeeds",
    WaitReason.NO_MATCHING_NODES: _NEVER,
    WaitReason.NEVER_FITS: _NEVER,
    WaitReason.UNKNOWN_QUEUE: _NEVER,
    WaitReason.UNKNOWN_TOPOLOGY_LEVEL: _NEVER,
}


def unknown_because(code: str) -> str:
    """Why nobody can say when a job with this code starts."""
    return _UNKNOWN.get(
        code,
        "nobody can know when the jobs end that it waits for: they declare no maxRunTime and "
        "report no ETA, or are overdue",
    )


def explanation_view(found: Explanation, shown: Shown = as_they_are) -> Json:
    """`muster explain`."""
    return {
        "code": found.code,
        "message": found.message,
        "queue_position": found.position,
        "predicted_start": time_of(found.predicted_start),
        "unknown_because": unknown_because(found.code) if found.predicted_start is None else None,
        "waits_for": shown(found.waits_for) if found.waits_for else None,
        "changes": [
            {
                "change": change.what,
                "starts": change.starts,
                "edits": [
                    {"kind": edit.kind, "name": edit.name, "spec": dict(edit.spec)}
                    for edit in change.edits
                ],
                "evicts": [shown(victim.gang) for victim in change.victims],
            }
            for change in found.changes
        ],
        "changes_complete": found.is_complete,
        "evicts": [shown(victim.gang) for victim in found.victims],
    }


def dry_run_view(
    found: DryRun,
    objects: Objects,
    prices: Sequence[PriceRow] | None,
    now: float,
    shown: Shown = as_they_are,
) -> Json:
    """`muster submit --dry-run`. Without a price list nothing is said of money."""
    return {
        "verdict": found.verdict.value,
        "code": found.reason.value if found.reason else None,
        "message": found.message,
        "queue_position": found.position,
        "predicted_start": time_of(found.predicted_start),
        "waits_for": shown(found.waits_for) if found.waits_for else None,
        "placement": list(found.placement),
        "victims": [_victim(victim, objects, prices, now, shown) for victim in found.victims],
        "delayed": [
            {
                "job": shown(delay.gang),
                "from": time_of(delay.before),
                "to": time_of(delay.after),
            }
            for delay in found.delayed
        ],
    }


def _victim(
    victim: Victim,
    objects: Objects,
    prices: Sequence[PriceRow] | None,
    now: float,
    shown: Shown,
) -> Json:
    micro_usd = None if prices is None else cost_of_loss(victim, objects, prices, now)
    return {
        "job": shown(victim.gang),
        "replicas": None if victim.ranks is None else len(victim.ranks),
        "right": victim.right.value,
        "lost_gpu_seconds": victim.lost_gpu_seconds,
        "micro_usd": micro_usd,
        "cost": usd(micro_usd),
    }


def queues_view(snapshot: Snapshot, policy: Policy, now: float) -> Json:
    """`muster queues`: the tree, each queue behind the one above it."""
    return {"items": [_queue(standing) for standing in standings(snapshot, policy, now)]}


def _queue(standing: Standing) -> Json:
    queue = standing.queue
    return {
        "name": queue.name,
        "parent": queue.parent,
        "depth": standing.depth,
        "weight": _whole(queue.weight),
        "guaranteed": dict(queue.guaranteed_by_model) or queue.guaranteed,
        "limit": dict(queue.limit_by_model) or queue.limit,
        "usage": standing.usage,
        "usage_by_model": dict(standing.usage_by_model),
        "decayed_usage": _whole(standing.decayed),
        "share": None if standing.share == inf else _whole(standing.share),
        "pending_gpus": standing.pending,
        "borrowed": standing.borrowed,
        "order": queue.order.value,
        "paused": queue.is_paused,
    }


def nodes_view(snapshot: Snapshot, objects: Objects, shown: Shown = as_they_are) -> Json:
    """`muster nodes`: by topology, with who holds what."""
    free, held, lost = free_gpus(snapshot), held_by(snapshot), fragmented_gpus(snapshot)
    levels = [(level.name, level.label) for level in objects.levels]
    by_name = {node.name: node for node in objects.nodes}
    items = []
    for name in snapshot.tree.names:
        node = by_name[name]
        holders: dict[str, int] = {}
        for job, gpus in sorted(held.get(name, {}).items(), key=lambda each: natural(each[0])):
            holders[shown(job)] = holders.get(shown(job), 0) + gpus
        items.append(
            {
                "name": name,
                "domains": {
                    level: node.labels[label] for level, label in levels if label in node.labels
                },
                "gpus": node.gpus,
                "free": free[name],
                "held_by": holders,
                "fragmented": lost.get(name, 0),
                "bad_gpus": node.bad_gpus,
                "gpu_model": node.gpu_model,
                "capacity_type": node.capacity_type,
                "state": _state(node),
            }
        )
    return {
        "items": items,
        "levels": [level for level, _ in levels],
        "gpus": sum(node.gpus for node in objects.nodes),
        "free_gpus": sum(free.values()),
        "fragmented_gpus": sum(lost.values()),
    }


def _state(node: Node) -> str:
    if not node.is_ready:
        return "down"
    if node.is_draining:
        return "drained"
    return "cordoned" if node.is_cordoned else "up"


def _whole(value: float) -> float | int:
    """A number that is whole without its point."""
    return int(value) if float(value).is_integer() else value


def shown_to(namespaces: Mapping[str, bool]) -> Shown:
    """Names of jobs in the namespaces that somebody may see; of others only the namespace."""

    def shown(name: str) -> str:
        namespace, slash, _ = name.partition("/")
        return name if not slash or namespaces.get(namespace) else f"{namespace}/…"

    return shown
