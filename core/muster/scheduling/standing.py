"""Where each queue stands: what it holds, is guaranteed, has borrowed, and what waits in it.

Of every queue with all below it, in the order of the tree, so that a list of them reads as one.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from muster.scheduling.fair_share import ROOT, Shares
from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import Queue, Snapshot
from muster.scheduling.trial import Trial
from muster.scheduling.usage import decayed

Quota = int | Mapping[str, int] | None
"""GPUs in all or by model; `None` means that there is none."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One queue, with all below it. Amounts are GPUs."""

    queue: Queue
    depth: int
    """How many queues are above it."""
    usage: int
    """Held now."""
    usage_by_model: Mapping[str, int]
    decayed: float
    """What shares count: the same without a half-life."""
    share: float
    """How far above or below its guarantee it is; where quota is by model, the largest of them."""
    pending: int
    """What all replicas of its pending jobs ask for."""
    borrowed: int
    """Held beyond the guarantee, which others may reclaim."""


def standings(snapshot: Snapshot, policy: Policy, now: float) -> tuple[Standing, ...]:
    """All queues, each behind the one above it, siblings by name."""
    shares = Shares(Trial(snapshot), policy, now)
    pending = _pending(snapshot)
    queues = snapshot.quotas.queues
    by_model: dict[str, dict[str, int]] = {}
    for (name, model), gpus in sorted(snapshot.held.by_model.items()):
        by_model.setdefault(name, {})[model] = gpus
    return tuple(
        Standing(
            queue=queues[name],
            depth=depth,
            usage=snapshot.held.total.get(name, 0),
            usage_by_model=by_model.get(name, {}),
            decayed=_decayed(snapshot, policy, now, name),
            share=_share(shares, queues[name]),
            pending=pending.get(name, 0),
            borrowed=_borrowed(snapshot, queues[name]),
        )
        for name, depth in _in_order(shares, queues)
    )


def _in_order(shares: Shares, queues: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Every queue once, with its depth; those whose parents form a ring come last."""
    seen: set[str] = set()

    def walk(names: Iterable[str], depth: int) -> Iterator[tuple[str, int]]:
        for name in names:
            if name not in seen:
                seen.add(name)
                yield name, depth
                yield from walk(shares.children(name), depth + 1)

    yield from walk(shares.children(ROOT), 0)
    yield from walk(sorted(queues), 0)


def _decayed(snapshot: Snapshot, policy: Policy, now: float, queue: str) -> float:
    held = snapshot.held.total.get(queue, 0)
    if not policy.usage_half_life:
        return held
    seconds = max(now - snapshot.usage_at, 0.0)
    return decayed(snapshot.usage.get(queue, 0.0), held, seconds, policy.usage_half_life)


def _pending(snapshot: Snapshot) -> dict[str, int]:
    waiting: dict[str, int] = {}
    for queue, lane in snapshot.pending.items():
        gpus = sum(pending.gang.replicas * pending.gang.needs.gpus for pending in lane)
        for name in snapshot.quotas.lineage(queue):
            waiting[name] = waiting.get(name, 0) + gpus
    return waiting


def _share(shares: Shares, queue: Queue) -> float:
    models: Iterable[str | None] = sorted(queue.guaranteed_by_model) or (None,)
    return max(shares.share(queue.name, model) for model in models)


def _borrowed(snapshot: Snapshot, queue: Queue) -> int:
    held = snapshot.held
    if not queue.guaranteed_by_model:
        return max(0, held.total.get(queue.name, 0) - queue.guaranteed)
    known = {model: gpus for (name, model), gpus in held.by_model.items() if name == queue.name}
    return sum(
        max(0, gpus - queue.guaranteed_by_model.get(model, 0)) for model, gpus in known.items()
    )
