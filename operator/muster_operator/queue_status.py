"""The status of queues and topologies: what is used and asked for, and what is wrong with them.

Looked at now and then, and written only where it says something else than before; a decayed usage
is written when it has moved by a hundredth or a minute has passed. What cannot be written now is
written at the next look.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from muster import wire
from muster.moments import seconds_of, text_of
from muster.scheduling.sanity import (
    VALID,
    WITHIN_LIMIT,
    Capacity,
    Finding,
    queue_findings,
    topology_findings,
)
from muster.scheduling.snapshot import Snapshot
from muster.status_raw import transition
from muster_kube import QUEUES, TOPOLOGIES, ApiError, ApiNotFound, Kube, Resource, StaleVersion
from muster_operator.cache import Cache
from muster_operator.metrics import Metrics
from muster_operator.surroundings import Surroundings
from muster_operator.telling import line

_log = logging.getLogger(__name__)
_STALE_SECONDS: Final = 60.0
_MOVED: Final = 0.01

Raw = Mapping[str, Any]


class QueueStatus:
    """Writes them."""

    def __init__(
        self, kube: Kube, cache: Cache, metrics: Metrics, clock: Callable[[], float], every: float
    ) -> None:
        """Looks every *every* seconds."""
        self._kube = kube
        self._cache = cache
        self._metrics = metrics
        self._clock = clock
        self._every = every

    async def run(self) -> None:
        """Look for ever. Start it once every cache has synced."""
        while True:
            try:
                await self.write()
            except Exception:
                # A mistake in one status must not stop the jobs that run: told, and tried again.
                _log.exception("queue-status-failed")
                self._metrics.errors.labels("queue-status").inc()
            await asyncio.sleep(self._every)

    async def write(self) -> None:
        """Write each status that says something else than before."""
        around = self._cache.around
        self._cache.account.pass_time()
        snapshot = self._cache.cluster.snapshot()
        queues = {name: around.quotas_of[name] for name in sorted(around.quotas_of)}
        found = queue_findings(queues, snapshot.held, Capacity.of(snapshot.nodes))
        for name, raw in around.raw_of("queues").items():
            status = self._use(name, snapshot, raw.get("status") or {})
            findings = _unreadable(around, "queues", name) or found.get(name, ())
            kinds = (VALID, WITHIN_LIMIT)
            await self._put(QUEUES, name, raw, status | self._conditions(raw, findings, kinds))
        for name, raw in around.raw_of("topologies").items():
            findings = _unreadable(around, "topologies", name)
            if name == wire.DEFAULT_TOPOLOGY and not findings:
                findings = topology_findings(around.levels, snapshot.nodes)
            await self._put(TOPOLOGIES, name, raw, self._conditions(raw, findings, (VALID,)))

    def _use(self, name: str, snapshot: Snapshot, known: Raw) -> dict[str, Any]:
        """What the jobs of a queue hold and ask for."""
        lane = snapshot.pending.get(name, ())
        gpus = sum(p.question.replicas * p.question.needs.gpus for p in lane)
        by_model = {m: g for (q, m), g in sorted(snapshot.held.by_model.items()) if q == name}
        before = known.get("usage") or {}
        usage: dict[str, Any] = {
            "held": snapshot.held.total.get(name, 0),
            "heldByModel": _without(before.get("heldByModel"), by_model),
        }
        if snapshot.usage_at:
            usage |= _decayed(name, snapshot, before)
        return {"usage": usage, "pending": {"jobs": len(lane), "gpus": gpus}}

    def _conditions(
        self, raw: Raw, findings: tuple[Finding, ...], kinds: tuple[str, ...]
    ) -> dict[str, Any]:
        known = {c["type"]: c for c in (raw.get("status") or {}).get("conditions") or ()}
        generation, now = raw["metadata"].get("generation") or 0, self._clock()
        conditions = []
        for kind in kinds:
            mine = [finding for finding in findings if finding.type == kind]
            conditions.append(
                {
                    "type": kind,
                    "status": "False" if mine else "True",
                    "reason": mine[0].reason if mine else kind,
                    "message": "; ".join(finding.message for finding in mine),
                    "observedGeneration": generation,
                    "lastTransitionTime": transition(known.get(kind), now, holds=not mine),
                }
            )
        return {"observedGeneration": generation, "conditions": conditions}

    async def _put(self, resource: Resource, name: str, raw: Raw, status: Raw) -> None:
        known = raw.get("status") or {}
        change = {key: value for key, value in status.items() if _shown(value) != known.get(key)}
        if not change:
            return
        metadata = {key: raw["metadata"][key] for key in ("uid", "resourceVersion")}
        path = resource.path(name=name, subresource="status")
        body = {"metadata": metadata, "status": change}
        try:
            answer = await self._kube.patch(path, body, fieldManager=wire.OPERATOR_MANAGER)
        except (ApiNotFound, StaleVersion):
            return  # its news is on the way
        except ApiError as error:
            self._metrics.errors.labels("queue-status").inc()
            _log.warning(line("status-not-written", kind=resource.kind, name=name, problem=error))
            return
        self._cache.around_changed(resource.plural, answer)
        for condition in change.get("conditions", ()):
            if condition["status"] == "False":
                facts = {"kind": resource.kind, "name": name, "reason": condition["reason"]}
                _log.warning(line("unsound", **facts, why=condition["message"]))


def _unreadable(around: Surroundings, kind: str, name: str) -> tuple[Finding, ...]:
    problem = around.unreadable.get((kind, name))
    if problem is None:
        return ()
    effect = {
        "queues": "until it is mended its waiting jobs wait as if there were no such queue",
        "topologies": "until it is mended there are no levels but node",
    }
    return (Finding(VALID, "InvalidSpec", f"{problem}; {effect[kind]}"),)


def _decayed(name: str, snapshot: Snapshot, before: Raw) -> dict[str, Any]:
    """The decayed usage; the one that is written where it has hardly moved since."""
    value = round(snapshot.usage.get(name, 0.0), 4)
    written, as_of = before.get("value"), seconds_of(before.get("asOf"))
    if written is not None and as_of is not None:
        is_recent = snapshot.usage_at - as_of < _STALE_SECONDS
        if is_recent and abs(value - written) <= _MOVED * max(abs(value), abs(written)):
            return {key: before[key] for key in ("value", "byModel", "asOf") if key in before}
    by_model = {
        model: round(usage, 4)
        for (queue, model), usage in sorted(snapshot.usage_by_model.items())
        if queue == name
    }
    return {"value": value, "byModel": by_model, "asOf": text_of(snapshot.usage_at)}


def _without(known: Raw | None, values: Mapping[str, int]) -> dict[str, int | None]:
    """*values*, and nothing for what is written besides: a merge patch then removes it."""
    return {**dict.fromkeys(known or {}), **values}


def _shown(value: Any) -> Any:
    """*value* as it reads once it is written: without what is absent."""
    if isinstance(value, dict):
        return {key: _shown(inner) for key, inner in value.items() if inner is not None}
    return value
