"""What a job would do that is not submitted yet, and the whole story of one that waits."""

from dataclasses import replace

import pytest
from hypothesis import given

from driving import Drive
from muster.scheduling.cluster import Cluster
from muster.scheduling.plan import WaitReason
from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import Queue, Run
from muster.simulation.drive import Simulation, Unsettled
from muster.whatif.dry_run import Delay, Verdict, dry_run, dry_run_in
from muster.whatif.explanation import PLACED, explained
from muster.whatif.trying import Trying, Variant
from random_clusters import tried
from random_worlds import World, worlds
from small_clusters import gang, holding, node, nodes

EIGHT = " ".join(["n1"] * 8)
HOUR = holding(gang("t/r", 8, max_run_time=3600.0, run=Run(0.0)), EIGHT)
TWO_HOURS = holding(gang("t/s", 8, max_run_time=7200.0, run=Run(0.0)), EIGHT.replace("1", "2"))
WAITING = gang("t/w", 8, submitted=1.0, max_run_time=1000.0)
BUSY = Cluster.of(nodes=nodes("n1 n2"), gangs=[HOUR, TWO_HOURS, WAITING]).objects()


def tried_out(new, objects=BUSY, **policy):
    return dry_run(objects, Policy(**policy), 10.0, new)


def test_a_job_that_fits_starts_now_and_costs_nobody_anything():
    found = tried_out(gang("t/new", 2), Cluster.of(nodes=nodes("n1")).objects(), notice=30.0)

    assert (Verdict.STARTS, 10.0, ("n1", "n1"), "2 GPUs on 1 node", (), ()) == (
        found.verdict,
        found.predicted_start,
        found.placement,
        found.message,
        found.victims,
        found.delayed,
    )


def test_a_job_that_waits_is_told_since_when_and_for_whom():
    found = tried_out(gang("t/new", 8, submitted=10.0))

    assert (Verdict.WAITS, WaitReason.INSUFFICIENT_CAPACITY, 2, 4600.0, "t/w") == (
        found.verdict,
        found.reason,
        found.position,
        found.predicted_start,
        found.waits_for,
    )
    assert ((), (), ()) == (found.placement, found.victims, found.delayed)


def test_a_job_that_takes_from_others_is_told_from_whom_and_who_starts_later():
    found = tried_out(gang("t/new", 8, submitted=10.0, priority=1), notice=30.0)

    assert (Verdict.STARTS, 40.0) == (found.verdict, found.predicted_start)
    assert [("t/r", 80)] == [(v.gang, v.lost_gpu_seconds) for v in found.victims]
    # The victim had ten of its seconds behind it, and is first in line again.
    assert (Delay("t/r", 10.0, 7200.0), Delay("t/w", 3600.0, 10790.0)) == found.delayed


def test_one_that_jumps_the_queue_moves_who_waits():
    found = tried_out(gang("t/new", 8, priority=1, max_run_time=60.0, is_preemptible=False))
    shielded = [replace(each, is_preemptible=False) for each in (HOUR, TWO_HOURS)]
    objects = Cluster.of(nodes=nodes("n1 n2"), gangs=[*shielded, WAITING]).objects()
    behind = tried_out(gang("t/new", 8, priority=1, max_run_time=60.0), objects)

    assert Verdict.STARTS == found.verdict
    assert (Verdict.WAITS, 3600.0) == (behind.verdict, behind.predicted_start)
    assert (Delay("t/w", 3600.0, 3660.0),) == behind.delayed


def test_a_job_that_nobody_knows_the_start_of_delays_others_for_ever():
    endless = gang("t/new", 8, priority=1, is_preemptible=False)
    shield = [replace(HOUR, is_preemptible=False)]
    objects = Cluster.of(nodes=nodes("n1"), gangs=[*shield, WAITING]).objects()

    assert (Delay("t/w", 3600.0, None),) == tried_out(endless, objects).delayed


def test_a_job_that_can_never_run_is_told_so():
    found = tried_out(gang("t/new", 80))

    assert (Verdict.NEVER, WaitReason.NEVER_FITS, None) == (
        found.verdict,
        found.reason,
        found.predicted_start,
    )


def test_a_limit_keeps_it_waiting_though_it_would_fit_the_cluster():
    objects = Cluster.of(nodes=nodes("n1"), queues=[Queue("q", limit=4)]).objects()

    assert Verdict.NEVER == tried_out(gang("t/new", 8, queue="q"), objects).verdict


@given(worlds())
@tried(60)
def test_the_verdict_is_what_then_happens(world):
    policy = Policy(leaves_at_once=True, reservation=world.policy.reservation)
    *others, new = world.gangs
    new = gang("t/new", new.replicas, new.needs.gpus, queue=new.queue, priority=new.priority)
    drive = Drive(World(world.nodes, world.queues, tuple(others), world.foreign, policy))
    drive.settle()
    objects = drive.cluster.objects()
    found = dry_run(objects, policy, drive.now, new)
    drive.put(new)
    first = drive.plan()
    starts = {admit.gang: admit.nodes for admit in first.admitted}

    assert starts.get("t/new", ()) == found.placement
    assert (Verdict.STARTS == found.verdict) is ("t/new" in starts)


def test_an_explanation_has_the_code_the_numbers_the_place_and_the_start():
    found = explained(BUSY, Policy(), 10.0, "t/w")

    assert ("InsufficientCapacity", "needs 8 GPUs; 0 GPUs free", 1, 3600.0, "t/r") == (
        found.code,
        found.message,
        found.position,
        found.predicted_start,
        found.waits_for,
    )


def test_it_suggests_what_would_start_the_job():
    objects = Cluster.of(nodes=[node("n1"), node("n2", 4)], gangs=[HOUR, gang("t/a", 6)]).objects()
    found = explained(objects, Policy(), 10.0, "t/a")

    assert ["ask for 4 in place of 6 replicas"] == [change.what for change in found.changes]


PLACED_ALREADY = {
    "a job that runs": ("t/r", (PLACED, "it holds 8 replicas", None, 0.0)),
    "a job that is about to start": ("t/a", (PLACED, "2 GPUs on 1 node", None, 10.0)),
}


@pytest.mark.parametrize("claim", PLACED_ALREADY)
def test_nothing_keeps(claim):
    key, want = PLACED_ALREADY[claim]
    objects = Cluster.of(nodes=nodes("n1 n2"), gangs=[HOUR, gang("t/a", 2)]).objects()
    found = explained(objects, Policy(), 10.0, key)

    assert want == (found.code, found.message, found.position, found.predicted_start)
    assert () == found.changes


def test_a_job_that_makes_others_leave_starts_when_they_have_left():
    objects = Cluster.of(nodes=nodes("n1"), gangs=[HOUR, gang("t/a", 2, priority=1)]).objects()
    found = explained(objects, Policy(notice=30.0), 10.0, "t/a")

    assert (PLACED, 40.0, ["t/r"]) == (
        found.code,
        found.predicted_start,
        [victim.gang for victim in found.victims],
    )


def test_a_search_without_time_is_incomplete_and_says_so():
    objects = Cluster.of(nodes=[node("n1"), node("n2", 4)], gangs=[HOUR, gang("t/a", 6)]).objects()
    tries = iter([True, True, True, False])
    ended = explained(objects, Policy(), 10.0, "t/a", lambda: next(tries))

    assert ("InsufficientCapacity", (), False) == (ended.code, ended.changes, ended.is_complete)
    assert explained(objects, Policy(), 10.0, "t/a").is_complete


class Restless(Simulation):
    """A scheduler that changes its mind for ever."""

    def run(self, *_, **__):
        raise Unsettled(self.now, ["t/a"])


def test_what_does_not_settle_is_no_start():
    objects = Cluster.of(nodes=nodes("n1"), gangs=[gang("t/a", 1)]).objects()
    trying = Trying(objects, Policy(), 0.0, drive=Restless)
    asked = Variant(trying.gangs["t/a"])

    assert ("n1",) == trying.start(asked).nodes
    assert (None, False) == (trying.settled(asked), trying.stays_started(asked))
    assert () == dry_run_in(trying, gang("t/new", 1), Policy()).delayed


def test_a_job_that_the_scheduler_does_not_know_has_no_explanation():
    assert explained(BUSY, Policy(), 10.0, "t/none") is None
