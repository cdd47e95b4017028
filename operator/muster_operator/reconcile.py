"""One job's next step: commit what was decided for it, or follow its life cycle, once.

Status first, deeds second, stories last. Whatever fails is tried again from what is then known;
nothing is remembered that the objects do not say.
"""

import logging
from collections.abc import Callable
from dataclasses import replace

from muster.decisions import Decision
from muster.job_status import JobStatus, Phase
from muster.lifecycle import next_step
from muster.restarts import REASONS, Cause
from muster.scheduling.sanity import orphan_words
from muster.steps import Create, Delete, Rules, Step, Story
from muster_kube import ApiError, StaleVersion
from muster_operator.admission import Admission
from muster_operator.cache import Cache
from muster_operator.carry_out import CarryOut, Refused
from muster_operator.metrics import Metrics
from muster_operator.ports import free_port
from muster_operator.records import JobRecord, Words
from muster_operator.settings import Settings
from muster_operator.status_writer import StatusWriter
from muster_operator.stories import Stories
from muster_operator.telling import line
from muster_operator.words import told_of
from muster_operator.work_queue import WorkQueue

_log = logging.getLogger(__name__)
_REFRESHES_PER_SECOND = 20
_RETRY_SECONDS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class Reconciler:
    """Takes the steps. `queue` decides which job's is next."""

    def __init__(
        self,
        settings: Settings,
        cache: Cache,
        writer: StatusWriter,
        admission: Admission,
        carry_out: CarryOut,
        stories: Stories,
        metrics: Metrics,
        clock: Callable[[], float],
    ) -> None:
        self._settings = settings
        self._rules: Rules = settings.rules
        self._cache = cache
        self._writer = writer
        self._admission = admission
        self._carry_out = carry_out
        self._stories = stories
        self._metrics = metrics
        self._clock = clock
        self.queue = WorkQueue(self.step, metrics)

    async def step(self, uid: str) -> None:
        """Bring the job one step further."""
        record = self._cache.jobs.get(uid)
        if record is None:
            return
        try:
            try:
                if record.decision is None or await self._commit(record):
                    await self._follow(record)
            except StaleVersion:
                await self._writer.refresh(record)
                self._again(record)
            else:
                record.failures = 0
        except ApiError as error:
            self._metrics.errors.labels("step").inc()
            _log.warning(line("step-failed", job=record.key, problem=error))
            self._again(record)

    def _again(self, record: JobRecord) -> None:
        """Try later, with a growing pause."""
        pause = _RETRY_SECONDS[min(record.failures, len(_RETRY_SECONDS) - 1)]
        record.failures += 1
        record.not_before = self._clock() + pause
        self.queue.mark_in(record.uid, pause)

    # The commit

    async def _commit(self, record: JobRecord) -> bool:
        """Write what was decided, before any of it is carried out. That write is the decision.

        False where it came to nothing; the gang then waits, or stays, as it is.
        """
        decision, job = record.decision, record.job
        assert decision is not None
        before, record.is_committing = record.status, True
        try:
            if job is None or not _may_be(record, decision):
                return False
            pods = len(decision.nodes)
            words = await self._admission.refusal(record, job, pods) if pods else None
            if words is not None:
                await self._refuse(record, words)
                return False
            port = free_port(self._settings, job.uid, before.attempt, self._cache.ports())
            each = job.gpus_per_replica
            status = decision.applied(before, gpus_per_replica=each, port=port)
            if not await self._writer.write(record, status):
                self._admission.settled(record)
                return False
        finally:
            record.is_committing = False
            self._cache.decide(record, None)
        record.refusals = 0
        for victim in self._cache.victims_of(before, status):
            self.queue.mark(victim)
        self._tell_of(record, decision, status)
        return True

    def _tell_of(self, record: JobRecord, decision: Decision, status: JobStatus) -> None:
        """The log lines and stories of a decision that is written."""
        for word, story, facts in told_of(decision, status):
            _log.info(line(word, job=record.key, **facts))
            self._stories.tell(record, story)

    async def _refuse(self, record: JobRecord, words: str) -> None:
        """Nothing was committed: back off, and say why."""
        record.refusals += 1
        pause = self._rules.refused.pause(record.refusals)
        if record.status.placement is not None:
            # A running gang that was to grow goes on as it is.
            larger = replace(record.status, retry_at=self._clock() + pause, claim=None)
            await self._writer.write(record, larger)
            _log.info(line("growth-refused", job=record.key, pause_s=pause, why=words))
            return
        restarting = record.status.phase is Phase.RESTARTING
        status = replace(
            record.status,
            claim=None,
            phase=Phase.RESTARTING if restarting else Phase.PENDING,
            gang=record.status.gang or _gang_of(record),
            reason=REASONS[Cause.REFUSED],
            message=words,
            queue_position=None,
            predicted_start=None,
            waits_for="",
            retry_at=self._clock() + pause,
        )
        if await self._writer.write(record, status):
            self._metrics.refused.inc()
            self.queue.mark_in(record.uid, pause)
            _log.info(line("refused", job=record.key, pause_s=pause, why=words))
            self._stories.tell(record, Story(status.reason, words, is_warning=True))

    # The life cycle

    async def _follow(self, record: JobRecord) -> None:
        """Take the step that the facts ask for."""
        now = self._clock()
        self._cache.settle(record)
        if record.not_before > now:
            self.queue.mark_in(record.uid, record.not_before - now)
        before = record.status
        step = next_step(self._cache.scene(record, now, self._rules))
        step = replace(step, status=self._with_words(record, step.status, now))
        if self._cache.is_released(record):
            step = replace(step, status=replace(step.status, is_released=True))
        if not await self._writer.write(record, step.status):
            self.queue.mark(record.uid)
            return
        if step.status.placement is not None and step.status.placement.keeps is not None:
            record.refusal = None  # what was refused is given back
        self._tell(record, before, step)
        await self._do(record, step, now)
        if step.wake_at is not None:
            self.queue.mark_in(record.uid, max(step.wake_at - self._clock(), 0.01))

    async def _do(self, record: JobRecord, step: Step, now: float) -> None:
        for deed in step.deeds:
            if isinstance(deed, Create) and record.job is None:
                continue  # a spec that cannot be read any more creates nothing
            try:
                await self._carry_out.do(record, deed, now)
            except Refused as refusal:
                record.refusal = str(refusal)
                self.queue.mark(record.uid)
            finally:
                if isinstance(deed, Create):
                    self._admission.settled(record)
        if step.deeds and all(isinstance(deed, Delete) for deed in step.deeds):
            _log.info(line("deleted-pods", job=record.key, pods=len(step.deeds)))

    def _with_words(self, record: JobRecord, status: JobStatus, now: float) -> JobStatus:
        """*status* with why the job waits, if it does; unchanged reasons are refreshed seldom."""
        if status.placement is not None and record.job is not None:
            return _with_queue(status, record.job.queue, record.objection)
        if status.is_final or status.placement or status.phase is Phase.SUSPENDED:
            return status
        words = record.objection or (record.words if self._cache.waits(record) else None)
        if words is None or record.is_deleted:
            return status
        if words.reason == status.reason:
            # With very many jobs each waits longer for its turn, so that all of them together
            # do not keep the API server busy with positions in a queue.
            share = len(self._cache.jobs) / _REFRESHES_PER_SECOND
            due = record.words_written_at + max(self._settings.message_refresh, share)
            if now < due:
                shown = Words(
                    status.reason,
                    status.message,
                    status.queue_position,
                    status.predicted_start,
                    status.waits_for,
                )
                if shown != words:
                    self.queue.mark_in(record.uid, due - now, is_urgent=False)
                return status
        record.words_written_at = now
        return replace(
            status,
            phase=status.phase or Phase.PENDING,
            gang=status.gang or _gang_of(record),
            reason=words.reason,
            message=words.message,
            queue_position=words.position,
            predicted_start=words.predicted_start,
            waits_for=words.waits_for,
            retry_at=None,
        )

    def _tell(self, record: JobRecord, before: JobStatus, step: Step) -> None:
        """The story and the log line of a step whose status is written."""
        for story in step.stories:
            self._stories.tell(record, story)
            _log.info(line(story.reason.lower(), job=record.key, why=story.message))
        after = step.status
        if before.phase is Phase.PREEMPTING and after.phase is Phase.RUNNING:
            words = "nobody needs its place any more"
            self._stories.tell(record, Story("Spared", words))
            _log.info(line("spared", job=record.key))
        if after.reason != before.reason and after.placement is None and not step.stories:
            word = "Queued" if record.objection is None else after.reason
            text = (
                f"{after.reason}: {after.message}" if record.objection is None else after.message
            )
            told = Story(word, text, is_warning=record.objection is not None)
            self._stories.tell(record, told)
        ended = after.attempts[-1] if after.attempts else None
        if ended and ended.outcome and ended.ended_at and after.attempts != before.attempts:
            self._metrics.attempts_ended.labels(ended.outcome.value).inc()
            if ended.outcome.value == "Refused":
                self._metrics.refused.inc()


def _with_queue(status: JobStatus, queue: str, objection: Words | None) -> JobStatus:
    """*status* of a gang that runs, with what it means that its queue is gone, if it is."""
    placement, words = status.placement, orphan_words(queue)
    if status.phase is not Phase.RUNNING or status.directive or placement is None:
        return status
    if objection is not None and objection.reason == "UnknownQueue":
        return replace(status, message=words)
    return replace(status, message=placement.why) if status.message == words else status


def _may_be(record: JobRecord, decision: Decision) -> bool:
    """Whether the job is still as it was when this was decided."""
    job, status = record.job, record.status
    if job is None or record.is_deleted or job.suspend or status.is_final:
        return False
    if decision.start is not None:
        return status.placement is None
    if decision.growth is not None:
        attempt = status.current
        return attempt is not None and attempt.outcome is None
    return True


def _gang_of(record: JobRecord) -> str:
    return f"0/{record.job.replicas}" if record.job else ""
