"""The next step of a job: as a table, and as laws over every combination of facts."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.endings import seen_or_told
from muster.job_status import Attempt, JobStatus, Outcome, Phase
from muster.lifecycle import next_step, placed
from muster.losses import PodFacts
from muster.restarts import Budgets, Cause, Loss, NodeState, Restarts
from muster.steps import Create, Delete, Expire, JobFacts, Release, Rules, Scene, Step, Story

NOW = 1000.0
RULES = Rules()
PENDING = JobStatus(phase=Phase.PENDING)
STARTING = placed(PENDING, ("n1", "n2"), "2 GPUs", gpus=2, port=20_000, now=NOW - 10)
RUNNING = replace(
    STARTING.with_attempt(replace(STARTING.attempts[0], running_at=NOW - 5)),
    phase=Phase.RUNNING,
    gang="2/2",
)
SEEN = JobFacts(seen=frozenset({0, 1}))


def pod(replica: int, phase: str = "Running", attempt: int = 1, **facts: object) -> PodFacts:
    name = f"p-{attempt}-{replica}"
    return PodFacts(name, f"u-{attempt}-{replica}", attempt, replica, phase, **facts)  # type: ignore[arg-type]


def failed(replica: int, code: int = 1, **facts: object) -> PodFacts:
    return pod(replica, "Failed", loss=Loss(exit_code=code), message="boom", **facts)


def step(status: JobStatus, *pods: PodFacts, job: JobFacts = SEEN, now: float = NOW) -> Step:
    return next_step(Scene(job, status, pods, now, RULES))


def ended(status: JobStatus, outcome: Outcome, **counts: int) -> JobStatus:
    """*status* with the end of its attempt decided."""
    attempt = replace(status.attempts[-1], outcome=outcome, cause="Why", message="boom")
    return replace(status.with_attempt(attempt), restarts=Restarts(**counts))


DELETED = JobFacts(deleted_at=NOW - 1)
HELD = JobFacts(deleted_at=NOW - 1, is_held=True)
FAILED = replace(
    RUNNING, phase=Phase.FAILED, placement=None, finished_at=NOW - 100, reason="UserError"
)

# The claim: the scene, the phase after it, whether the placement is still there, and the deeds.
TABLE = {
    "a job that holds nothing waits": (
        (PENDING,),
        {},
        (Phase.PENDING, False, ()),
    ),
    "leftovers of an earlier attempt go": (
        (PENDING, pod(0), pod(1, "Failed")),
        {},
        (Phase.PENDING, False, (Delete("p-1-0", "u-1-0"), Delete("p-1-1", "u-1-1"))),
    ),
    "what is on its way out is not deleted again": (
        (PENDING, pod(0, deleting_since=NOW)),
        {},
        (Phase.PENDING, False, ()),
    ),
    "a waiting job can be suspended": (
        (PENDING,),
        {"job": JobFacts(is_suspended=True)},
        (Phase.SUSPENDED, False, ()),
    ),
    "a suspended one can be resumed": (
        (replace(PENDING, phase=Phase.SUSPENDED),),
        {},
        (Phase.PENDING, False, ()),
    ),
    "a suspended one rests": (
        (replace(PENDING, phase=Phase.SUSPENDED),),
        {"job": JobFacts(is_suspended=True)},
        (Phase.SUSPENDED, False, ()),
    ),
    "a placement without pods is carried out": (
        (STARTING,),
        {"job": JobFacts()},
        (Phase.STARTING, True, (Create(),)),
    ),
    "a missing pod is created": (
        (STARTING, pod(0)),
        {"job": JobFacts(seen=frozenset({0}))},
        (Phase.STARTING, True, (Create(),)),
    ),
    "but not beside one of an earlier attempt": (
        (STARTING, pod(1, attempt=0, deleting_since=NOW)),
        {"job": JobFacts()},
        (Phase.STARTING, True, ()),
    ),
    "a gang that starts is waited for": (
        (STARTING, pod(0), pod(1, "Pending")),
        {},
        (Phase.STARTING, True, ()),
    ),
    "a gang runs when all of it does": (
        (STARTING, pod(0), pod(1)),
        {},
        (Phase.RUNNING, True, ()),
    ),
    "or has, in part, already ended well": (
        (STARTING, pod(0), pod(1, "Succeeded")),
        {},
        (Phase.RUNNING, True, ()),
    ),
    "a gang that runs is left alone": (
        (RUNNING, pod(0), pod(1)),
        {},
        (Phase.RUNNING, True, ()),
    ),
    "a gang succeeds when all of it has": (
        (RUNNING, pod(0, "Succeeded"), pod(1, "Succeeded")),
        {},
        (Phase.SUCCEEDED, False, ()),
    ),
    "even if nobody saw it run": (
        (STARTING, pod(0, "Succeeded"), pod(1, "Succeeded")),
        {},
        (Phase.SUCCEEDED, False, ()),
    ),
    "one that fails takes the gang with it": (
        (RUNNING, failed(0), pod(1)),
        {},
        (Phase.RESTARTING, True, (Delete("p-1-1", "u-1-1"),)),
    ),
    "if all have failed, the restart needs no wait": (
        (RUNNING, failed(0), failed(1)),
        {},
        (Phase.RESTARTING, False, (Delete("p-1-0", "u-1-0"), Delete("p-1-1", "u-1-1"))),
    ),
    "with no budget left the gang is taken down first": (
        (RUNNING, failed(0), pod(1)),
        {"job": replace(SEEN, budgets=Budgets(user=0))},
        (Phase.RUNNING, True, (Delete("p-1-1", "u-1-1"),)),
    ),
    "and the job fails when nothing of it runs": (
        (ended(RUNNING, Outcome.FAILED, user=4), failed(0)),
        {},
        (Phase.FAILED, False, ()),
    ),
    "a pod that vanished while it ran is lost": (
        (RUNNING, pod(0)),
        {"job": JobFacts()},
        (Phase.RESTARTING, True, (Delete("p-1-0", "u-1-0"),)),
    ),
    "a pod that was seen and vanished is lost": (
        (STARTING, pod(0)),
        {},
        (Phase.RESTARTING, True, (Delete("p-1-0", "u-1-0"),)),
    ),
    "an attempt that ends waits for its last pod": (
        (ended(RUNNING, Outcome.LOST), pod(0, deleting_since=NOW)),
        {},
        (Phase.RUNNING, True, ()),
    ),
    "by force, where its node is gone": (
        (ended(RUNNING, Outcome.LOST), pod(0, deleting_since=NOW, node_state=NodeState.GONE)),
        {},
        (Phase.RUNNING, True, (Delete("p-1-0", "u-1-0", by_force=True),)),
    ),
    "not yet, where its node is silent": (
        (
            ended(RUNNING, Outcome.LOST),
            pod(0, deleting_since=NOW - 59, node_state=NodeState.UNREACHABLE),
        ),
        {},
        (Phase.RUNNING, True, ()),
    ),
    "by force, where it has been silent for long": (
        (
            ended(RUNNING, Outcome.LOST),
            pod(0, deleting_since=NOW - 60, node_state=NodeState.UNREACHABLE),
        ),
        {},
        (Phase.RUNNING, True, (Delete("p-1-0", "u-1-0", by_force=True),)),
    ),
    "a refused gang is taken back": (
        (STARTING, pod(0, "Pending")),
        {"job": replace(SEEN, refusal="exceeded quota")},
        (Phase.STARTING, True, (Delete("p-1-0", "u-1-0"),)),
    ),
    "and waits for another try": (
        (ended(STARTING, Outcome.REFUSED),),
        {},
        (Phase.PENDING, False, ()),
    ),
    "a pod that its kubelet refuses is a refusal": (
        (STARTING, pod(0, "Failed", loss=Loss(reason="OutOfcpu")), pod(1)),
        {},
        (Phase.STARTING, True, (Delete("p-1-1", "u-1-1"),)),
    ),
    "a suspended gang is stopped": (
        (RUNNING, pod(0), pod(1)),
        {"job": replace(SEEN, is_suspended=True)},
        (Phase.RUNNING, True, (Delete("p-1-0", "u-1-0"), Delete("p-1-1", "u-1-1"))),
    ),
    "and then suspended": (
        (ended(RUNNING, Outcome.SUSPENDED),),
        {"job": JobFacts(is_suspended=True)},
        (Phase.SUSPENDED, False, ()),
    ),
    "a deleted job is stopped": (
        (RUNNING, pod(0), pod(1)),
        {"job": HELD},
        (Phase.RUNNING, True, (Delete("p-1-0", "u-1-0"), Delete("p-1-1", "u-1-1"))),
    ),
    "and then cancelled": (
        (ended(RUNNING, Outcome.CANCELLED),),
        {"job": HELD},
        (Phase.CANCELLED, False, ()),
    ),
    "a deleted job without a gang is cancelled": (
        (PENDING,),
        {"job": HELD},
        (Phase.CANCELLED, False, ()),
    ),
    "one that has just succeeded has succeeded": (
        (RUNNING, pod(0, "Succeeded"), pod(1, "Succeeded")),
        {"job": HELD},
        (Phase.SUCCEEDED, False, ()),
    ),
    "nothing is created for a deleted job": (
        (STARTING,),
        {"job": HELD},
        (Phase.CANCELLED, False, ()),
    ),
    "a deleted job waits for its last pod": (
        (FAILED, pod(0, deleting_since=NOW)),
        {"job": HELD},
        (Phase.FAILED, False, ()),
    ),
    "the recorder has its time": (
        (replace(FAILED, finished_at=NOW - 29),),
        {"job": HELD},
        (Phase.FAILED, False, ()),
    ),
    "and no more than that": (
        (FAILED,),
        {"job": replace(HELD, deleted_at=NOW - 30)},
        (Phase.FAILED, False, (Release(),)),
    ),
    "a job that nobody holds goes by itself": (
        (FAILED,),
        {"job": DELETED},
        (Phase.FAILED, False, ()),
    ),
    "what is over stays over without its pods": (
        (FAILED,),
        {},
        (Phase.FAILED, False, ()),
    ),
    "its pods that ended stay for their logs": (
        (FAILED, failed(0), pod(1)),
        {},
        (Phase.FAILED, False, (Delete("p-1-1", "u-1-1"),)),
    ),
    "it stays as long as it was asked to": (
        (FAILED,),
        {"job": JobFacts(ttl_seconds=101)},
        (Phase.FAILED, False, ()),
    ),
    "and no longer": (
        (FAILED,),
        {"job": JobFacts(ttl_seconds=100)},
        (Phase.FAILED, False, (Expire(),)),
    ),
    "a final phase gives back a placement that was left": (
        (replace(FAILED, placement=STARTING.placement),),
        {},
        (Phase.FAILED, False, ()),
    ),
    "a placement of no attempt is given up with its pods": (
        (replace(STARTING, attempts=()), pod(0)),
        {"job": HELD},
        (Phase.STARTING, True, (Delete("p-1-0", "u-1-0"),)),
    ),
}


@pytest.mark.parametrize("claim", TABLE)
def test_next(claim: str) -> None:
    scene, more, want = TABLE[claim]
    got = step(*scene, **more)  # type: ignore[arg-type]

    assert want == (got.status.phase, got.status.placement is not None, got.deeds)


def test_a_gang_that_runs_has_its_time_on_record() -> None:
    got = step(STARTING, pod(0), pod(1))

    assert NOW == got.status.attempts[0].running_at == got.status.started_at
    assert "2/2" == got.status.gang
    assert (Story("Running", "attempt 1: all 2 replicas run"),) == got.stories


def test_a_success_ends_when_its_last_pod_did_if_nobody_was_there() -> None:
    pods = [pod(r, "Succeeded", started_at=900.0 + r, finished_at=950.0 + r) for r in (0, 1)]
    early = replace(STARTING.with_attempt(replace(STARTING.attempts[0], decided_at=890.0)))
    got = step(early, *pods)

    assert (901.0, 951.0) == (got.status.attempts[0].running_at, got.status.finished_at)


def test_pods_cannot_have_run_before_they_were_placed() -> None:
    attempt = Attempt(1, decided_at=500.25)

    assert 500.25 == seen_or_told(NOW, [500.0], attempt)
    assert NOW == seen_or_told(NOW, [NOW - 1], attempt)
    assert NOW == seen_or_told(NOW, [None, 10.0], attempt)
    assert NOW == seen_or_told(NOW, [], attempt)


def test_a_failure_is_counted_once_and_tells_its_last_words() -> None:
    first = step(RUNNING, failed(0), pod(1))
    second = step(first.status, failed(0), pod(1, deleting_since=NOW))
    third = step(second.status, failed(0))

    assert first.status == second.status
    assert [1, 1, 1] == [s.status.restarts.user for s in (first, second, third)]
    assert "replica 0: exit code 1: boom" == third.status.message
    assert (Outcome.FAILED, "UserError") == (
        third.status.attempts[0].outcome,
        third.status.attempts[0].cause,
    )
    assert NOW == third.status.attempts[0].ended_at
    assert ["ReplicaFailed"] == [s.reason for s in first.stories]
    assert ["Restarting"] == [s.reason for s in third.stories]


def test_restarts_that_lead_nowhere_come_ever_later() -> None:
    status, pauses = PENDING, []
    for _ in range(4):
        status = placed(status, ("n1",), "", gpus=1, port=1, now=NOW)
        got = step(status, pod(0, "Failed", attempt=status.attempt), job=JobFacts())
        status = got.status
        pauses.append((status.retry_at or NOW) - NOW)

        assert got.wake_at == status.retry_at

    assert [0.0, 5.0, 10.0, 20.0] == pauses


def test_an_attempt_that_ran_for_long_starts_the_row_anew() -> None:
    status = placed(PENDING, ("n1",), "", gpus=1, port=1, now=NOW - 100)
    status = step(status, pod(0, "Failed"), job=JobFacts()).status
    status = placed(status, ("n1",), "", gpus=1, port=1, now=NOW - 100)
    long = replace(status.attempts[-1], running_at=NOW - 90)
    got = step(status.with_attempt(long), pod(0, "Failed", attempt=2), job=JobFacts())

    assert got.status.retry_at is None


def test_refusals_come_ever_later_too_and_cost_nothing() -> None:
    status, pauses = PENDING, []
    for _ in range(3):
        status = placed(status, ("n1",), "", gpus=1, port=1, now=NOW)
        status = step(status, job=JobFacts(refusal="exceeded quota")).status
        pauses.append((status.retry_at or NOW) - NOW)

    assert [5.0, 10.0, 20.0] == pauses
    assert Restarts() == status.restarts
    assert ("AdmissionRefused", "exceeded quota") == (status.reason, status.message)


def test_a_pause_is_waited_for_and_not_beyond() -> None:
    pausing = replace(PENDING, retry_at=NOW + 5)

    assert NOW + 5 == step(pausing).wake_at
    assert step(pausing, now=NOW + 5).wake_at is None


def test_a_refusal_after_a_loss_is_the_first_in_its_row() -> None:
    status = placed(PENDING, ("n1",), "", gpus=1, port=1, now=NOW)
    status = step(status, pod(0, "Failed"), job=JobFacts()).status
    status = placed(status, ("n1",), "", gpus=1, port=1, now=NOW)
    status = step(status, job=JobFacts(refusal="exceeded quota")).status

    assert NOW + 5.0 == status.retry_at


def test_what_hinders_a_start_is_told_once() -> None:
    waiting = pod(1, "Pending", waiting="ErrImagePull: no such image")
    first = step(STARTING, pod(0), waiting)
    second = step(first.status, pod(0), waiting)

    assert "replica 1: ErrImagePull: no such image" == first.status.message
    assert first.status == second.status
    assert NOW - 10 + RULES.start_deadline == first.wake_at


STUCK = {
    "a start has a deadline": ({}, RULES.start_deadline, Outcome.LOST, "not all replicas ran"),
    "with the words of the kubelet": (
        {"waiting": "ErrImagePull"},
        RULES.start_deadline,
        Outcome.LOST,
        "replica 1: ErrImagePull",
    ),
    "a node without room has a shorter one": (
        {"waiting": "Unschedulable: full", "is_unschedulable": True},
        RULES.unschedulable_wait,
        Outcome.REFUSED,
        "Unschedulable: full",
    ),
}


@pytest.mark.parametrize("claim", STUCK)
def test_nothing_waits_for_ever(claim: str) -> None:
    facts, seconds, outcome, words = STUCK[claim]
    early = step(STARTING, pod(0), pod(1, "Pending", **facts), now=NOW - 11 + seconds)
    late = step(STARTING, pod(0), pod(1, "Pending", **facts), now=NOW - 10 + seconds)

    assert early.status.attempts[0].outcome is None
    assert outcome is late.status.attempts[0].outcome
    assert words in late.status.attempts[0].message


def test_a_pod_on_a_silent_node_is_looked_at_again_in_time() -> None:
    silent = pod(0, deleting_since=NOW - 10, node_state=NodeState.UNREACHABLE)
    got = step(ended(RUNNING, Outcome.LOST), silent)

    assert NOW + 50 == got.wake_at


def test_a_new_attempt_is_one_whole_decision() -> None:
    status = replace(PENDING, attempt=3, round=5, retry_at=NOW, queue_position=2)
    got = placed(status, ("n1", "n1", "n2"), "why", gpus=12, port=20_007, now=NOW)

    assert got.placement is not None
    assert (4, 6, None, None) == (got.attempt, got.round, got.retry_at, got.queue_position)
    assert (4, ("n1", "n1", "n2"), 20_007) == (
        got.placement.attempt,
        got.placement.nodes,
        got.placement.port,
    )
    assert Attempt(4, NOW, ("n1", "n1", "n2"), 3, 12) == got.current


# Laws

PODS = st.sampled_from(
    [
        None,
        pod(0, "Pending"),
        pod(0),
        pod(0, "Succeeded"),
        failed(0),
        pod(0, "Failed", loss=Loss(reason="OutOfcpu")),
        pod(0, deleting_since=NOW),
        pod(0, node_state=NodeState.GONE),
        pod(0, deleting_since=NOW, node_state=NodeState.UNREACHABLE),
    ]
)
OUTCOMES = st.sampled_from([None, *Outcome])


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    """Any combination of facts, possible or not."""
    status = draw(st.sampled_from([JobStatus(), PENDING, STARTING, RUNNING, FAILED]))
    status = replace(status, phase=draw(st.sampled_from([status.phase, *Phase])))
    outcome = draw(OUTCOMES)
    if outcome is not None and status.current is not None:
        status = ended(status, outcome, user=draw(st.integers(0, 5)))
    pods = []
    for replica in range(2):
        drawn = draw(PODS)
        if drawn is not None:
            attempt = draw(st.sampled_from([1, 1, 1, 2]))
            name = f"p-{attempt}-{replica}"
            pods.append(
                replace(drawn, replica=replica, attempt=attempt, name=name, uid=f"u-{name}")
            )
    job = JobFacts(
        is_suspended=draw(st.booleans()),
        deleted_at=draw(st.sampled_from([None, NOW - 1, NOW - 100])),
        is_held=draw(st.booleans()),
        ttl_seconds=draw(st.sampled_from([None, 10, 10_000])),
        budgets=Budgets(user=draw(st.integers(0, 5))),
        refusal=draw(st.sampled_from([None, "no"])),
        seen=frozenset(draw(st.sets(st.integers(0, 1)))),
    )
    return Scene(job, status, tuple(pods), NOW, RULES)


@given(scenes())
def test_laws_of_every_step(scene: Scene) -> None:
    got = next_step(scene)
    before, after = scene.status, got.status

    # What is over stays over.
    if before.is_final:
        assert before.phase is after.phase
    # Nothing is created for what is deleted, suspended, over or ending.
    if Create() in got.deeds:
        assert scene.job.deleted_at is None
        assert not scene.job.is_suspended
        assert not after.is_final
        assert after.current is not None
        assert after.current.outcome is None
    # GPUs are given back only when no pod can hold any, and a job ends only without them.
    if before.placement is not None and after.placement is None and not before.is_final:
        assert scene.is_clear
    if after.is_final and not before.is_final:
        assert after.placement is None
        assert after.finished_at is not None
    # Counters never go back, and count one end at most.
    spent = [
        a - b
        for a, b in zip(
            (after.restarts.user, after.restarts.infrastructure, after.restarts.preemption),
            (before.restarts.user, before.restarts.infrastructure, before.restarts.preemption),
            strict=True,
        )
    ]
    assert min(spent) >= 0
    assert sum(spent) <= 1
    # No pod is deleted twice in one step.
    names = [deed.name for deed in got.deeds if isinstance(deed, Delete)]
    assert len(set(names)) == len(names)


@given(scenes())
def test_steps_come_to_rest(scene: Scene) -> None:
    """With the same pods, a few steps lead to one that changes nothing: no loop of writes."""
    status = scene.status
    for _ in range(4):
        after = next_step(scene.with_status(status)).status
        if after == status:
            return
        status = after
    pytest.fail(f"still changing: {status}")


def test_every_pair_of_pods_has_a_step() -> None:
    phases = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
    for first, second in product(phases, phases):
        for status in (PENDING, STARTING, RUNNING, FAILED):
            assert step(status, pod(0, first), pod(1, second)).status.phase is not None


def test_causes_lead_to_their_outcomes() -> None:
    losses = {
        Cause.USER: (Loss(exit_code=1), Outcome.FAILED),
        Cause.INFRASTRUCTURE: (Loss(exit_code=137), Outcome.LOST),
        Cause.PREEMPTION: (Loss(reason="NodeShutdown"), Outcome.LOST),
        Cause.REFUSED: (Loss(reason="NodeAffinity"), Outcome.REFUSED),
    }
    for loss, outcome in losses.values():
        got = step(RUNNING, pod(0, "Failed", loss=loss), pod(1, "Succeeded"))

        assert outcome is got.status.attempts[0].outcome
