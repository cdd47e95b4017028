"""A gang that has to leave, step by step."""

from dataclasses import replace

import pytest

from job_scenes import NOW, PENDING, RUNNING, SEEN, STARTING, pod
from muster.claims import Departure, Directive
from muster.job_status import JobStatus, Outcome, Phase
from muster.lifecycle import next_step
from muster.scheduling.snapshot import Displaced, Leaving
from muster.steps import Create, Delete, JobFacts, Rules, Scene, Step

WHOLE = Departure("c1", "team/high", None, NOW + 60)
SURPLUS = Departure("c2", "team/other", (1,), NOW + 60)
RUNS = (pod(0), pod(1))
BOTH_GO = (Delete("p-1-0", "u-1-0"), Delete("p-1-1", "u-1-1"))


def step(
    status: JobStatus, *asked: Departure, now: float = NOW, job: JobFacts = SEEN, notice: float = 0
) -> Step:
    facts = replace(job, departures=asked, changed=900.0)
    pods = RUNS if status.phase is not Phase.STARTING else (pod(0), pod(1, "Pending"))
    return next_step(Scene(facts, status, pods, now, Rules(notice=notice)))


def saved(status: JobStatus, at: float) -> JobStatus:
    return replace(status, saved_at=at)


def test_it_is_asked_to_save_and_says_for_whom() -> None:
    got = step(RUNNING, WHOLE)

    assert (Phase.PREEMPTING, "Preempting") == (got.status.phase, got.status.reason)
    assert "asked to save a checkpoint and leave for team/high" == got.status.message
    assert Directive("c1", "checkpoint", NOW + 60, NOW) == got.status.directive
    assert (Leaving("team/high", None, NOW + 60),) == got.status.leaving
    assert (NOW + 60, ()) == (got.wake_at, got.deeds)
    assert ["Preempting"] == [story.reason for story in got.stories]


def test_it_is_asked_once() -> None:
    asked = step(RUNNING, WHOLE).status
    again = step(asked, WHOLE, now=NOW + 5)

    assert (asked, ()) == (again.status, again.stories)


def test_a_checkpoint_from_before_it_was_asked_does_not_answer() -> None:
    asked = step(saved(RUNNING, NOW - 1), WHOLE).status

    assert asked == step(asked, WHOLE, now=NOW + 5).status


ENDS = {
    "it has saved": (RUNNING, NOW + 5, NOW + 4, "its checkpoint is saved"),
    "its notice is over": (RUNNING, NOW + 60, None, "its notice is over"),
    "it did not run yet": (STARTING, NOW, None, "it did not run yet"),
}


@pytest.mark.parametrize("claim", ENDS)
def test_it_leaves_when(claim: str) -> None:
    status, now, saved_at, words = ENDS[claim]
    asked = step(status, WHOLE).status if status is RUNNING else status
    if saved_at is not None:
        asked = saved(asked, saved_at)
    got = step(asked, WHOLE, now=now)

    assert Outcome.PREEMPTED is got.status.attempts[-1].outcome
    assert f"makes room for team/high; {words}" == got.status.attempts[-1].message
    assert (Phase.PREEMPTING, True) == (got.status.phase, got.status.placement is not None)
    assert (Displaced("team/high", 900.0), True) == (
        got.status.displaced,
        got.status.is_returning,
    )
    assert 1 == got.status.restarts.preemption
    assert got.deeds == BOTH_GO
    assert "Evicted" == got.stories[0].reason


def test_it_goes_back_to_its_queue_when_its_pods_are_gone() -> None:
    leaving = step(saved(step(RUNNING, WHOLE).status, NOW + 4), WHOLE, now=NOW + 5).status
    gone = next_step(Scene(SEEN, leaving, (), NOW + 10, Rules()))
    status = gone.status

    assert (Phase.PENDING, "Preempted", None) == (status.phase, status.reason, status.placement)
    assert (Displaced("team/high", 900.0), True) == (status.displaced, status.is_returning)
    assert (None, ()) == (status.directive, status.leaving)
    # Two GPUs from the decision on, and the work until the checkpoint.
    assert (40.0, 9.0) == (status.attained, status.ran)
    assert status.retry_at is None


def test_it_stays_when_nobody_asks_any_more() -> None:
    asked = step(RUNNING, WHOLE).status
    got = step(asked)

    assert (Phase.RUNNING, "Running", None, ()) == (
        got.status.phase,
        got.status.reason,
        got.status.directive,
        got.status.leaving,
    )
    assert got.deeds == ()


def test_a_gang_that_starts_goes_on_starting_when_nobody_asks_any_more() -> None:
    asked = replace(STARTING, phase=Phase.PREEMPTING, leaving=(Leaving("team/high"),))
    got = next_step(Scene(JobFacts(), asked, (), NOW, Rules()))

    assert (Phase.STARTING, (Create(),)) == (got.status.phase, got.deeds)


def test_of_several_the_last_decision_is_asked_for_and_the_first_deadline_counts() -> None:
    later = Departure("c3", "team/later", None, NOW + 90)
    got = step(step(RUNNING, WHOLE).status, WHOLE, later)

    assert got.status.directive is not None
    assert ("c3", NOW + 60) == (got.status.directive.id, got.wake_at)
    assert "leave for team/high, team/later" in got.status.message


def test_surplus_is_asked_for_while_it_runs_on() -> None:
    got = step(RUNNING, SURPLUS)

    assert (Phase.RUNNING, "Running") == (got.status.phase, got.status.reason)
    assert "asked to save a checkpoint and give up 1 replica for team/other" == got.status.message
    assert (Leaving("team/other", (1,), NOW + 60),) == got.status.leaving


def test_surplus_of_several_is_counted_once() -> None:
    wide = Departure("c4", "team/wide", (0, 1), NOW + 70)

    assert "give up 2 replicas" in step(RUNNING, SURPLUS, wide).status.message


def test_a_suspended_gang_saves_first() -> None:
    suspended = replace(SEEN, is_suspended=True)
    asked = step(RUNNING, job=suspended, notice=30)

    assert ("Suspending", NOW + 30) == (asked.status.reason, asked.wake_at)
    assert asked.status.directive is not None
    waiting = step(asked.status, job=suspended, notice=30, now=NOW + 1)
    assert (asked.status, ()) == (waiting.status, waiting.stories)
    done = step(saved(asked.status, NOW + 2), job=suspended, notice=30, now=NOW + 3)
    assert Outcome.SUSPENDED is done.status.attempts[-1].outcome
    over = step(asked.status, job=suspended, notice=30, now=NOW + 30)
    assert Outcome.SUSPENDED is over.status.attempts[-1].outcome


def test_a_gang_that_starts_is_suspended_at_once() -> None:
    got = step(STARTING, job=replace(SEEN, is_suspended=True), notice=30)

    assert Outcome.SUSPENDED is got.status.attempts[-1].outcome


def test_a_gang_that_has_no_place_for_checkpoints_is_suspended_at_once() -> None:
    job = replace(SEEN, is_suspended=True, has_checkpoints=False)

    assert Outcome.SUSPENDED is step(RUNNING, job=job, notice=30).status.attempts[-1].outcome


def test_one_that_is_resumed_in_time_stays() -> None:
    asked = step(RUNNING, job=replace(SEEN, is_suspended=True), notice=30).status
    got = step(asked, notice=30)

    assert ("Running", None) == (got.status.reason, got.status.directive)


def test_a_job_that_holds_nothing_is_not_asked() -> None:
    got = next_step(Scene(replace(SEEN, departures=(WHOLE,)), PENDING, (), NOW, Rules()))

    assert PENDING == got.status
