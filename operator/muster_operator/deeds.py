"""A plan's deeds, taken as done in the cache before any of them is written.

Writing follows job by job: see `reconcile`. What one instant decides is put together here: a gang
that is started and has to leave again before its start was written was never started.
"""

import logging
from collections.abc import Callable
from dataclasses import replace

from muster.claims import Ask, Asked, Claim
from muster.decisions import Decision
from muster.moments import whole_ms
from muster.scheduling.plan import Admit, Deed, Grow, Preempt, Right, Victim, Withdraw
from muster.scheduling.snapshot import Displaced
from muster_operator.cache import Cache
from muster_operator.metrics import Metrics
from muster_operator.records import JobRecord
from muster_operator.telling import line

_log = logging.getLogger(__name__)


class Deeds:
    """Notes what is to be written for each job; *mark* has it looked at."""

    def __init__(self, cache: Cache, metrics: Metrics, mark: Callable[[str], None]) -> None:
        self._cache = cache
        self._metrics = metrics
        self._mark = mark
        self._asks = 0

    def take(self, deed: Deed, now: float, notice: float) -> bool:
        """Count *deed* as done; whether that changed anything. *notice* is in seconds."""
        record = self._cache.by_key(deed.gang)
        if record is None or record.job is None or record.is_committing:
            return False  # what is being written now is seen first
        match deed:
            case Admit():
                is_done = self._admit(record, deed, now)
            case Grow():
                is_done = self._grow(record, deed, now)
            case Preempt():
                is_done = self._preempt(record, deed, now, notice)
            case Withdraw():
                is_done = self._withdraw(record, now)
            case _:
                # Gangs of ours never lack replicas: one that loses any is restarted whole.
                is_done = False
        what = type(deed).__name__.lower()
        if is_done:
            self._metrics.decisions.labels(what, "").inc()
        else:
            _log.warning(line("not-carried-out", deed=what, job=deed.gang))
        return is_done

    def _admit(self, record: JobRecord, deed: Admit, now: float) -> bool:
        if not self._cache.waits(record):
            return False
        record.words = None
        self._decide(record, replace(self._before(record, now), start=deed, displaced=None))
        return True

    def _grow(self, record: JobRecord, deed: Grow, now: float) -> bool:
        decision = self._before(record, now)
        if decision.start is not None:
            start = decision.start
            more = replace(
                start,
                nodes=(*start.nodes, *deed.nodes),
                behind=tuple(sorted({*start.behind, *deed.behind})),
            )
            self._decide(record, replace(decision, start=more))
            return True
        attempt = record.status.current
        if attempt is None or attempt.outcome is not None:
            return False
        if decision.growth is not None:
            behind = tuple(sorted({*decision.growth.behind, *deed.behind}))
            deed = Grow(deed.gang, (*decision.growth.nodes, *deed.nodes), behind)
        self._decide(record, replace(decision, growth=deed))
        return True

    def _preempt(self, record: JobRecord, deed: Preempt, now: float, notice: float) -> bool:
        self._asks += 1
        at = whole_ms(now)
        found = (self._ask(victim, deed.gang) for victim in deed.victims)
        asked = tuple(each for each in found if each is not None)
        name = f"{record.uid[:8]}-{int(at * 1000):x}-{self._asks % 1000}"
        asks = (Ask(name, at, whole_ms(now + notice), asked),) if asked else ()
        claim = Claim(deed.nodes, deed.why, asks, self._took(record, deed))
        decision = self._before(record, now)
        if decision.claim is not None:
            claim = decision.claim.extended(claim)
        self._decide(record, replace(decision, claim=claim))
        return True

    def _ask(self, victim: Victim, claimant: str) -> Asked | None:
        """Whom to ask, and for what; `None` where nothing of it has been written yet."""
        record = self._cache.by_key(victim.gang)
        if record is None or record.job is None:
            return None
        size = 0 if victim.ranks is None else min(victim.ranks)
        if record.decision is not None and not record.is_committing:
            self._cut_unwritten(record, record.decision, size, claimant)
        placement = record.decided.placement
        if placement is None or len(placement.nodes) <= size:
            return None
        ranks = victim.ranks
        if ranks is not None:
            ranks = tuple(rank for rank in ranks if rank < len(placement.nodes))
        return Asked(victim.gang, record.uid, placement.attempt, ranks, victim.right.value)

    def _cut_unwritten(
        self, record: JobRecord, decision: Decision, size: int, claimant: str
    ) -> None:
        """Take back replicas from *size* on of a start or growth that is not written."""
        placement = record.status.placement
        if decision.start is not None:
            left = decision.start.nodes[:size]
            start = replace(decision.start, nodes=left) if left else None
            displaced = None if left else Displaced(claimant, self._cache.account.changed)
            decision = replace(decision, start=start, displaced=displaced)
        elif decision.growth is not None and placement is not None:
            left = decision.growth.nodes[: max(0, size - len(placement.nodes))]
            growth = replace(decision.growth, nodes=left) if left else None
            decision = replace(decision, growth=growth)
        self._decide(record, decision)

    def _took(self, record: JobRecord, deed: Preempt) -> tuple[str, ...]:
        """The other queues from which it takes at its reserved time."""
        assert record.job is not None
        queues = set()
        for victim in deed.victims:
            other = self._cache.by_key(victim.gang)
            if victim.right is Right.RESERVATION and other is not None and other.job is not None:
                queues.add(other.job.queue)
        return tuple(sorted(queues - {record.job.queue}))

    def _withdraw(self, record: JobRecord, now: float) -> bool:
        if record.claim is None:
            return False
        decision = replace(self._before(record, now), claim=None)
        self._decide(record, replace(decision, withdraws=record.status.claim is not None))
        return True

    def _before(self, record: JobRecord, now: float) -> Decision:
        """What this instant has decided for the job so far."""
        return record.decision or Decision(whole_ms(now), self._cache.account.changed)

    def _decide(self, record: JobRecord, decision: Decision) -> None:
        is_empty = decision == Decision(decision.at, decision.changed)
        self._cache.decide(record, None if is_empty else decision)
        self._mark(record.uid)
