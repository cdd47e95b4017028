"""The clock of the simulation, driven by calls rather than by a file."""

from dataclasses import replace
from math import inf

import pytest

from muster.errors import Conflict
from muster.scheduling.cluster import Cluster
from muster.scheduling.plan import Admit, Grow, Plan, Preempt, Right, Victim
from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import Gang, Needs, Node
from muster.simulation.drive import Simulation
from muster.simulation.job import State, Work
from muster.simulation.play import Recorder
from playing import played, story

FULL = {"gpusPerReplica": 8}


def gang(name, gpus=8, submitted=0.0, **fields):
    return Gang(name, 1, 1, Needs(gpus), submitted, **fields)


def one_node(**options):
    policy = Policy(leaves_at_once=True, max_explained=0)
    return Simulation(Cluster.of(nodes=[Node("n1", 8)]), policy, **options)


def test_a_restart_costs_what_it_is_said_to():
    simulation = one_node(restart_cost=30.0)
    simulation.submit(gang("v"), Work(600.0))
    simulation.submit(gang("h", submitted=300.0, priority=1), Work(60.0))
    simulation.run()

    v = simulation.jobs["v"]
    assert ([0.0, 360.0], 690.0) == (v.starts, v.finished)
    assert 8 * (300 + 330) == v.held_gpu_seconds


def test_an_eviction_while_a_restart_is_paid_for_loses_no_work_again():
    simulation = one_node(restart_cost=30.0)
    simulation.submit(gang("v"), Work(600.0))
    simulation.submit(gang("h", submitted=300.0, priority=1), Work(60.0))
    simulation.submit(gang("i", submitted=370.0, priority=1), Work(60.0))
    simulation.run()

    # v waits from 300 to 360 and from 370 to 430, and pays 10 s and 30 s for nothing.
    assert 600.0 + 120.0 + 40.0 == simulation.jobs["v"].finished


def test_without_kept_work_all_of_it_is_to_be_done_again():
    simulation = one_node(keeps_work=False)
    simulation.submit(gang("v"), Work(600.0))
    simulation.submit(gang("h", submitted=300.0, priority=1), Work(60.0))
    simulation.run()

    assert 360.0 + 600.0 == simulation.jobs["v"].finished
    assert 0.0 == simulation.jobs["v"].gang.ran


def test_it_can_be_driven_on_from_where_it_stopped():
    simulation = one_node()
    simulation.submit(gang("a"), Work(600.0))
    simulation.run(300.0)
    half_way = simulation.now, simulation.jobs["a"].state
    simulation.run()

    assert (300.0, State.RUNNING) == half_way
    assert (600.0, State.SUCCEEDED, 1.0) == (
        simulation.now,
        simulation.jobs["a"].state,
        simulation.utilization,
    )


def test_two_jobs_cannot_have_one_name():
    simulation = one_node()
    simulation.submit(gang("a"))

    with pytest.raises(Conflict, match="two jobs named a"):
        simulation.submit(gang("a"))


def test_a_scheduler_that_wakes_for_nothing_is_not_called_for_ever():
    calls = []

    def restless(snapshot, policy, now):
        del snapshot, policy
        calls.append(now)
        return Plan(wake_at=now + 1)

    simulation = one_node(planner=restless)
    simulation.submit(gang("a"))
    simulation.run()

    assert (101, 0.0) == (len(calls), simulation.end)


def test_a_job_started_and_displaced_in_the_same_instant_was_not_started():
    plans = [
        (Admit("a", ("n1",), ""),),
        (
            Preempt("b", ("n1",), (Victim("a", None, Right.PRIORITY, 0),), ""),
            Admit("b", ("n1",), ""),
        ),
    ]

    def script(snapshot, policy, now):
        del snapshot, policy, now
        return Plan(plans.pop(0)) if plans else Plan()

    recorder = Recorder()
    simulation = one_node(planner=script, watchers=(recorder,))
    simulation.submit(gang("a"))
    simulation.submit(replace(gang("b"), sequence=1))
    simulation.run()

    a = simulation.jobs["a"]
    assert ([], 0, State.PENDING, False) == (a.starts, a.evictions, a.state, a.gang.is_returning)
    assert ["submitted", "submitted", "started"] == [each.kind for each in recorder.events]
    assert inf == a.next_end()


def test_elastic_replicas_gained_and_taken_in_one_instant_were_not_lost():
    found = played(
        jobs=[
            {"name": "e", "replicas": 8, "minReplicas": 1},
            {"name": "f", "replicas": 4, "priority": -1},
        ],
        until="1m",
    )

    assert 0 == found.simulation.jobs["e"].replicas_lost


def scripted(*plans):
    left = list(plans)

    def planner(snapshot, policy, now):
        del snapshot, policy, now
        return Plan(left.pop(0)) if left else Plan()

    return planner


def test_what_is_taken_at_a_reserved_time_from_another_queue_is_remembered():
    victims = (Victim("a", None, Right.RESERVATION, 0),)
    plans = [(Admit("a", ("n1",), "", behind=("b",)),), (), (Preempt("b", ("n1",), victims, ""),)]
    start = [(Admit("b", ("n1",), ""),)]
    gangs = [gang("a", queue="q"), gang("b", submitted=60.0)]

    at_once = one_node(planner=scripted(*plans[:2], (*plans[2], *start[0])))
    later = Simulation(
        Cluster.of(nodes=[Node("n1", 8)]),
        Policy(notice=30.0),
        planner=scripted(*plans, (), *start),
    )
    for simulation in (at_once, later):
        for each in gangs:
            simulation.submit(each)
        simulation.run()

    took = [simulation.jobs["b"].gang.run.took for simulation in (at_once, later)]
    assert [("q",), ("q",)] == [each.queues for each in took]


def test_growth_that_is_taken_back_in_its_instant_was_not_lost():
    elastic = replace(gang("a", gpus=1), replicas=4)
    take = (Victim("a", (2, 3), Right.SURPLUS, 0),)
    simulation = one_node(
        planner=scripted(
            (Admit("a", ("n1",), ""), Grow("a", ("n1", "n1", "n1"))),
            (Preempt("b", ("n1",), take, ""), Admit("b", ("n1",), "")),
        )
    )
    simulation.submit(elastic)
    simulation.submit(gang("b", gpus=2))
    simulation.run()

    a = simulation.jobs["a"]
    assert (2, 0) == (a.gang.running, a.replicas_lost)


def test_a_job_that_is_told_to_leave_twice_leaves_once():
    found = played(
        settings={"preemptionNotice": "60s"},
        jobs=[
            {"name": "v", **FULL, "duration": "20m"},
            {"name": "h", "submit": "5m", "priority": 1, **FULL, "duration": "5m"},
        ],
        events=[{"at": "5m30s", "job": "v", "set": {"suspend": True}}],
    )

    # It left for h, and is suspended all the same.
    assert [(360.0, "v", "evicted")] == [e for e in story(found, "v") if e[2] == "evicted"]
    assert (1, True) == (
        found.simulation.jobs["v"].evictions,
        found.simulation.jobs["v"].gang.is_suspended,
    )


def test_a_job_after_one_that_has_succeeded_need_not_wait():
    found = played(
        jobs=[
            {"name": "a", "duration": "1m"},
            {"name": "b", "submit": "5m", "after": "a", "duration": "1m"},
        ]
    )

    assert 360.0 == found.simulation.jobs["b"].finished
