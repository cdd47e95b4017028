"""A forecast says when pending gangs start if everybody keeps to what was declared."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.scheduling.cluster import Cluster
from muster.scheduling.plan import Admit, Plan, Requeue
from muster.scheduling.policy import Policy
from muster.scheduling.snapshot import Gang, Leaving, Needs, Node, Run
from muster.simulation.forecast import Forecast, forecast
from muster.simulation.play import simulation_of
from muster.simulation.reading import scenario_of
from playing import TWO_NODES, scenario

POLICY = Policy(leaves_at_once=True)
UNKNOWN = Forecast(None, "")


def running(name, node="n1", *, started=0.0, limit=None, eta=None, gpus=8, **fields):
    run = Run(started=started, eta=eta)
    return Gang(
        name,
        1,
        1,
        Needs(gpus),
        started,
        placement=(node,),
        max_run_time=limit,
        run=run,
        **fields,
    )


def waiting(name, *, replicas=1, limit=None, gpus=8, submitted=10.0, **fields):
    return Gang(name, replicas, replicas, Needs(gpus), submitted, max_run_time=limit, **fields)


def foreseen(*gangs, nodes=1, now=100.0, policy=POLICY, **options):
    cluster = Cluster.of(nodes=[Node(f"n{n + 1}", 8) for n in range(nodes)], gangs=gangs)
    before = cluster.objects()
    found = forecast(cluster, policy, now, **options)
    assert before == cluster.objects(), "a forecast changes nothing"
    return found


def test_a_gang_starts_when_what_it_waits_for_ends():
    assert {"b": Forecast(600.0, "a")} == foreseen(running("a", limit=600.0), waiting("b"))


def test_what_a_job_reports_counts_more_than_what_it_declared():
    found = foreseen(running("a", limit=600.0, eta=300.0), waiting("b"))

    assert {"b": Forecast(300.0, "a")} == found


def test_what_earlier_runs_have_done_counts():
    found = foreseen(running("a", started=50.0, limit=600.0, ran=200.0), waiting("b"))

    assert {"b": Forecast(450.0, "a")} == found


def test_pending_gangs_start_one_after_the_other():
    found = foreseen(
        running("a", limit=600.0),
        waiting("b", limit=60.0),
        waiting("c", submitted=20.0, limit=60.0, ran=20.0),
        waiting("d", submitted=30.0),
    )

    assert found == {
        "b": Forecast(600.0, "a"),
        "c": Forecast(660.0, "b"),
        "d": Forecast(700.0, "c"),
    }


def test_the_last_to_end_is_what_a_gang_waits_for():
    found = foreseen(
        running("a", limit=300.0),
        running("c", "n2", limit=600.0, sequence=1),
        running("d", "n3", limit=600.0, sequence=2),
        waiting("b", replicas=3),
        nodes=3,
    )

    assert {"b": Forecast(600.0, "d")} == found


def test_nobody_knows_where_nothing_is_declared():
    found = foreseen(running("a"), waiting("b"), waiting("never", gpus=9))

    assert {"b": UNKNOWN, "never": UNKNOWN} == found


def test_a_job_that_is_overdue_never_ends():
    assert {"b": UNKNOWN} == foreseen(running("a", limit=50.0), waiting("b"))
    assert {"b": UNKNOWN} == foreseen(running("a", limit=500.0, eta=50.0), waiting("b"))


def test_a_gang_that_starts_by_taking_waits_for_nobody():
    found = foreseen(running("a"), waiting("b", priority=1))

    assert {"b": Forecast(100.0, "")} == found


def test_a_gang_whose_victims_are_leaving_starts_when_they_have_left():
    asked = replace(running("a", limit=600.0), leaving=(Leaving("b", None, 130.0),))
    claimant = waiting("b", priority=1, claim=("n1",))

    found = foreseen(asked, claimant, policy=Policy(notice=60.0))

    assert {"b": Forecast(130.0, "")} == found


def test_a_drained_replica_makes_room_when_it_has_left():
    drained = Node("n1", 8, is_cordoned=True, is_draining=True)
    asked = replace(running("a", limit=600.0), leaving=(Leaving("", (0,), 130.0),))
    cluster = Cluster.of(nodes=[drained, Node("n2", 8)], gangs=[asked, waiting("b", limit=60.0)])

    found = forecast(cluster, Policy(notice=60.0), 100.0)

    # Not before b, which holds n2 until then, has ended: a needs n2 as well.
    assert found["b"].starts is not None


def test_a_held_back_gang_is_foreseen_where_its_dependency_is_named():
    gangs = (running("a", gpus=1, limit=600.0), waiting("b", gpus=1, held_back="comes after a"))

    assert {"b": UNKNOWN} == foreseen(*gangs)
    assert {"b": Forecast(600.0, "a")} == foreseen(*gangs, after={"b": "a"})


def test_a_suspended_gang_does_not_start():
    assert {"b": UNKNOWN} == foreseen(waiting("b", is_suspended=True))


def test_a_forecast_ends_after_so_many_steps():
    gangs = [running("a", limit=200.0)]
    gangs += [waiting(f"b{n}", submitted=10.0 + n, limit=100.0) for n in range(10)]

    found = foreseen(*gangs, most_instants=5)

    assert [200.0, 300.0, 400.0, 500.0] == [
        found[f"b{n}"].starts for n in range(10) if found[f"b{n}"].starts is not None
    ]


def test_a_scheduler_that_does_not_settle_foresees_nothing():
    def fickle(snapshot, policy, now):
        del policy, now
        if not snapshot.running:
            return Plan((Admit("b", ("n1",), ""),))
        return Plan((Requeue("b", ""),))

    assert {"b": UNKNOWN} == foreseen(waiting("b"), planner=fickle)


def test_without_pending_gangs_there_is_nothing_to_foresee():
    assert {} == foreseen(running("a"))


JOBS = st.lists(
    st.fixed_dictionaries(
        {
            "replicas": st.integers(1, 4),
            "gpusPerReplica": st.sampled_from([1, 2, 4, 8]),
            "priority": st.integers(0, 2),
            "preemptible": st.booleans(),
            "queue": st.sampled_from(["a", "b"]),
            "duration": st.sampled_from(["1m", "2m", "5m", "8m", None]),
        }
    ),
    min_size=2,
    max_size=12,
)


@given(jobs=JOBS)
@settings(max_examples=60, deadline=None)
def test_a_forecast_comes_true_where_everybody_keeps_to_what_was_declared(jobs):
    described = [
        {"name": f"j{number}", "maxRunTime": job["duration"]} | job
        for number, job in enumerate(jobs)
    ]
    queues = [{"name": "a", "guaranteed": 8}, {"name": "b"}]
    simulation = simulation_of(
        scenario_of(scenario(cluster=TWO_NODES, queues=queues, jobs=described)), ()
    )
    simulation.run(0.0)
    waits = [job for job in simulation.jobs.values() if job.gang.is_pending]
    told = forecast(simulation.cluster, simulation.world.policy, 0.0)
    simulation.run()

    starts = {job.key: next(iter(job.starts), None) for job in waits}
    assert starts == {job.key: told[job.key].starts for job in waits}
