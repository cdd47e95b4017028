"""Each rule that holds in every scenario is seen to be broken by a scheduler that breaks it."""

from math import inf

import pytest

from muster.scheduling.cluster import Cluster
from muster.scheduling.plan import Admit, Grow, Plan, Preempt, Requeue, Right, Victim, Wait
from muster.scheduling.plan import WaitReason as Reason
from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import Gang, Needs, Node, Queue
from muster.simulation.drive import Simulation, Unsettled
from muster.simulation.invariants import Invariants
from muster.simulation.job import Work
from muster.simulation.world import Becomes

AT_ONCE = Policy(leaves_at_once=True)


def admit(gang, *nodes):
    return Admit(gang, nodes, "")


def preempt(gang, victim, *nodes, ranks=None):
    return Preempt(gang, nodes, (Victim(victim, ranks, Right.PRIORITY, 0),), "")


def gang(name, replicas=1, gpus=1, submitted=0.0, **fields):
    return Gang(
        name,
        replicas,
        fields.pop("min_replicas", replicas),
        Needs(gpus),
        submitted,
        sequence=fields.pop("sequence", 0),
        **fields,
    )


class Script:
    """A scheduler that does what it is told, one plan a cycle; then nothing for ever."""

    def __init__(self, *plans):
        self.plans = list(plans)

    def __call__(self, snapshot, policy, now):
        del snapshot, policy, now
        return Plan(self.plans.pop(0)) if self.plans else Plan()


def broken(
    script, gangs, *, policy=AT_ONCE, queues=(), prepare=lambda simulation: None, until=inf
):
    """What the rules say of that course of events."""
    nodes = [Node("n1", 2, gpu_model="H100"), Node("n2", 2)]
    rules = Invariants()
    simulation = Simulation(
        Cluster.of(nodes=nodes, queues=queues), policy, watchers=(rules,), planner=script
    )
    for each in gangs:
        simulation.submit(each, Work(600.0))
    prepare(simulation)
    simulation.run(until)
    rules.close(simulation)
    return rules.violations


def test_lawful_decisions_break_nothing():
    script = Script((admit("a", "n1"),), (), (preempt("b", "a", "n1"), admit("b", "n1")))

    assert [] == broken(script, [gang("a", gpus=2), gang("b", gpus=2, submitted=60.0)])


def test_a_gang_is_never_partly_placed():
    found = broken(Script((admit("a", "n1"),)), [gang("a", replicas=2)])

    assert "at 0s: a is partly placed: 1 of 2 replicas" == found[0]


def test_a_gang_never_has_more_replicas_than_it_asked_for():
    found = broken(Script((admit("a", "n1"), Grow("a", ("n2",)))), [gang("a")])

    assert "at 0s: a is partly placed: 2 of 1 replicas" == found[0]


def test_a_gang_that_lost_a_node_may_lack_it_for_a_while_only():
    def lose_n2_and_suspend(simulation):
        simulation.node_becomes(10.0, "n2", Becomes.DOWN)
        simulation.suspend(110.0, "a")

    # A scheduler that neither replaces nor requeues.
    script = Script((admit("a", "n1", "n2"),))

    found = broken(
        script,
        [gang("a", replicas=2), gang("b", submitted=100.0)],
        policy=Policy(notice=30.0),
        prepare=lose_n2_and_suspend,
    )

    message = "a is partly placed: 1 of 2 replicas"
    assert [f"at {when}: {message}" for when in ("1m10s", "1m40s", "1m50s")] == found


def test_no_node_is_exceeded():
    found = broken(Script((admit("a", "n1", "n1"),)), [gang("a", replicas=2, gpus=2)])

    assert ["at 0s: node n1 holds more than it has"] == found


def test_nothing_is_placed_on_a_node_that_is_down():
    found = broken(
        Script((admit("a", "n1"),)),
        [gang("a")],
        prepare=lambda simulation: simulation.node_becomes(0.0, "n1", Becomes.DOWN),
    )

    assert "at 0s: node n1 is down and holds replicas" == found[0]


LIMITS = {
    "in all": (Queue("default", limit=1), "queue default holds 2 of 1 GPUs"),
    "for a model": (
        Queue("default", limit_by_model={"H100": 1}),
        "queue default holds 2 of 1 H100",
    ),
    "for a user": (
        Queue("default", per_user_limit=1),
        "ada holds 2 of 1 GPUs in queue default",
    ),
}


@pytest.mark.parametrize("claim", LIMITS)
def test_no_limit_is_exceeded(claim):
    queue, message = LIMITS[claim]

    found = broken(Script((admit("a", "n1"),)), [gang("a", gpus=2, user="ada")], queues=[queue])

    assert [f"at 0s: {message}"] == found


def test_the_limit_of_a_parent_binds_its_children():
    found = broken(
        Script((admit("a", "n1"),)),
        [gang("a", gpus=2, queue="q")],
        queues=[Queue("org", limit=1), Queue("q", parent="org")],
    )

    assert ["at 0s: queue org holds 2 of 1 GPUs"] == found


def test_a_limit_that_is_lowered_takes_nothing_away():
    found = broken(
        Script((admit("a", "n1"),)),
        [gang("a", gpus=2)],
        queues=[Queue("default", limit=2)],
        prepare=lambda simulation: simulation.set_queue(10.0, "default", {"limit": 1}),
    )

    assert [] == found


def test_nobody_is_evicted_for_a_job_that_does_not_start():
    found = broken(
        Script((admit("a", "n1"),), (), (preempt("b", "a", "n1"),)),
        [gang("a", gpus=2), gang("b", gpus=2, submitted=60.0)],
    )

    assert ["at 1m: a was evicted for b, which does not start"] == found


def test_with_a_notice_the_claimant_may_start_later_but_must_start():
    notice = Policy(notice=30.0)
    gangs = [gang("a", gpus=2), gang("b", gpus=2, submitted=60.0)]
    ask = (preempt("b", "a", "n1"),)

    lawful = broken(
        Script((admit("a", "n1"),), (), ask, (), (admit("b", "n1"),)), gangs, policy=notice
    )
    lawless = broken(Script((admit("a", "n1"),), (), ask), gangs, policy=notice)

    assert ([], ["at 1m30s: a was evicted for b, which never starts"]) == (lawful, lawless)


def test_a_claimant_that_somebody_suspends_need_not_start():
    found = broken(
        Script((admit("a", "n1"),), (), (preempt("b", "a", "n1"),)),
        [gang("a", gpus=2), gang("b", gpus=2, submitted=60.0)],
        policy=Policy(notice=30.0),
        prepare=lambda simulation: simulation.suspend(70.0, "b"),
    )

    assert [] == found


def test_whose_victims_are_still_leaving_at_the_end_owes_nothing_yet():
    script = Script(
        (admit("a", "n1"), admit("c", "n2")),
        (),
        (preempt("b", "a", "n1", "n2"),),
        (),
        (preempt("b", "c", "n1", "n2"),),
    )
    gangs = [
        gang("a", gpus=2),
        gang("c", gpus=2),
        gang("b", gpus=2, submitted=60.0),
        gang("d", submitted=80.0),
    ]

    assert [] == broken(script, gangs, policy=Policy(notice=30.0), until=100.0)


def test_only_so_many_violations_are_told():
    gangs = [gang(f"g{n}", replicas=2) for n in range(200)]

    found = broken(Script(tuple(admit(each.key, "n1") for each in gangs)), gangs)

    assert 100 == len(found)


def test_jobs_of_nobody_have_no_limit_for_users():
    queues = [Queue("default", per_user_limit=1)]

    assert [] == broken(Script((admit("a", "n1"),)), [gang("a", gpus=2)], queues=queues)


def test_a_requeue_is_for_nobody():
    found = broken(
        Script((admit("a", "n1"),), (), (Requeue("a", ""),)),
        [gang("a"), gang("b", submitted=60.0)],
    )

    assert [] == found


def test_the_same_state_does_not_come_back_by_evictions():
    def a_for_b(snapshot, policy, now):
        """The two take turns once a minute, and nothing else happens."""
        del policy
        there = snapshot.running[0] if snapshot.running else None
        if there is None:
            return Plan((admit("a", "n1"),)) if not now else Plan()
        if there.run.started == now or now > 300:
            return Plan(wake_at=now + 60.0)
        other = "b" if there.key == "a" else "a"
        return Plan((preempt(other, there.key, "n1"), admit(other, "n1")))

    found = broken(a_for_b, [gang("a", gpus=2), gang("b", gpus=2)])

    message = "the same state comes back after 2 evictions, with nothing changed from outside"
    assert f"at 2m: {message}" == found[0]


def test_a_scheduler_that_never_settles_is_named_with_its_jobs():
    class Fickle:
        def __init__(self):
            self.turn = 0

        def __call__(self, snapshot, policy, now):
            self.turn += 1
            if not snapshot.running:
                return Plan((admit("a", "n1"),))
            there, other = ("a", "b") if snapshot.running[0].key == "a" else ("b", "a")
            return Plan((preempt(other, there, "n1"), admit(other, "n1")))

    with pytest.raises(Unsettled, match=r"at 0 s do not settle: (a|b) keep changing places"):
        broken(Fickle(), [gang("a", gpus=2), gang("b", gpus=2)])


def test_reasons_are_given_when_they_are_asked_for():
    asked = []

    def planner(snapshot, policy, now):
        del snapshot
        asked.append((policy.max_explained > 0, now))
        return Plan((Wait("a", Reason.FRAGMENTED, "because", 1),) if policy.max_explained else ())

    simulation = Simulation(Cluster.of(nodes=[Node("n1", 1)]), AT_ONCE, planner=planner)
    simulation.submit(gang("a"))
    simulation.run(60.0)
    simulation.explain()

    assert [(False, 0.0), (True, 0.0)] == asked
    assert Reason.FRAGMENTED == simulation.jobs["a"].wait.reason
