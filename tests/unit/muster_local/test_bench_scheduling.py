"""The shapes of `muster bench schedule`, tiny, and what is computed from their samples."""

import random

import pytest

from muster.errors import Unavailable
from muster_cli import main
from muster_local.bench.scheduling import full_cluster, kueue_baseline, one_gang, run
from muster_local.bench.scheduling.scenes import GPUS, Scene, gpus, nodes, pending, singles
from muster_local.bench.scheduling.shapes import SHAPES
from muster_local.bench.scheduling.stopwatch import Measured, Stopwatch, measured
from muster_local.progress import quiet

CONTRACT = {"decisions", "mean_ms", "p50_ms", "p99_ms", "total_s"}


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Twenty clusters are for quantiles; here two will do."""
    monkeypatch.setattr(one_gang, "_REPEATS", 2)
    monkeypatch.setattr(full_cluster, "_ENDS", 3)


def test_the_shapes_have_the_names_of_the_contract():
    assert [
        "gangs-5000-nodes",
        "preferred-512",
        "verdict-4000-jobs",
        "reclaim-2000-gpus",
        "full-100k-gpus",
        "next-pass-100k-gpus",
        "kueue-baseline",
    ] == list(SHAPES)


def test_figures_are_in_milliseconds_of_the_decisions():
    found = Measured(4, (0.001, 0.002, 0.003, 0.010), 0.016, 0.012, {"quota_use": 0.9}).figures()

    assert {
        "decisions": 4,
        "mean_ms": 4.0,
        "p50_ms": 2.0,
        "p99_ms": 10.0,
        "total_s": 0.016,
        "cpu_s": 0.012,
        "quota_use": 0.9,
    } == found


def test_a_stopwatch_takes_one_sample_a_decision():
    watch = Stopwatch()

    assert [1, 2] == [watch.time(lambda: 1), watch.time(lambda: 2)]
    assert (2, 2) == (measured(watch).decisions, len(measured(watch).samples))


def test_gangs_start_one_by_one():
    found = one_gang.gangs_on_5000_nodes(100)

    assert 30 == found.decisions
    assert set(found.figures()) >= CONTRACT


def test_a_preferring_gang_starts_on_nodes_that_are_busy_in_parts():
    assert 2 == one_gang.preferred_512(32).decisions


def test_a_gang_that_cannot_start_gets_its_verdict():
    assert 2 == one_gang.verdict_of_4000_jobs(10).decisions


def test_a_gang_within_its_guarantee_gets_its_victims():
    assert 2 == one_gang.reclaim_of_2000_gpus(25).decisions


def test_the_pass_after_a_jobs_end_is_measured():
    found = full_cluster.next_pass(100)

    assert 1 <= found.decisions <= 3
    assert found.more["until_settled_mean_ms"] * found.decisions >= 1e3 * found.total * 0.99


def test_single_gpu_jobs_fill_their_nodes():
    scene = Scene.of(nodes(3), [], singles("q", [0, 2]))

    assert 2 * GPUS == len(scene.gangs)
    assert [0, GPUS, 0] == scene.cluster.snapshot().free[0].tolist()


def test_a_scene_made_anew_holds_the_same():
    scene = Scene.of(nodes(3), [], singles("q", [0, 2]))
    scene.submit(pending("p", "q", 1, gpus(1), 0.0))

    assert scene.cluster.snapshot().facts() == scene.anew().cluster.snapshot().facts()


def test_the_full_cluster_is_full_at_rest_and_has_jobs_waiting_in_each_queue():
    scene = full_cluster.at_rest(100)
    snapshot = scene.cluster.snapshot()

    assert 0 == snapshot.free[0].sum()
    assert 20 == len(snapshot.pending)
    assert () == full_cluster._pass(scene).deeds


def test_every_job_of_the_full_cluster_gets_its_reason():
    # A hundred are submitted; a few start, and a few leave, before it comes to rest.
    assert 90 < full_cluster.full(100).more["reasons"] < 110


def test_kueues_workloads_come_as_its_generator_makes_them():
    gangs = [gang for gang, _ in kueue_baseline._workloads(5, 6)]
    work = sum(gang.replicas * seconds for gang, seconds in kueue_baseline._workloads(1, 1))

    assert 15_000 == len(gangs)
    assert 500 == sum(gang.queue == "cq-0-cohort-0" for gang in gangs)
    assert (0.1, 60.0) == (min(g.submitted for g in gangs), max(g.submitted for g in gangs))
    assert 70 + 250 + 1_000 == pytest.approx(work)


def test_a_tenth_of_kueues_baseline_ends_with_its_quota_in_use(monkeypatch):
    few = tuple(
        kueue_baseline.Class(c.name, c.count // 10, c.interval_ms, c.runtime_ms, 0, c.units)
        for c in kueue_baseline.CLASSES
    )
    monkeypatch.setattr(kueue_baseline, "CLASSES", few)

    found = kueue_baseline.kueue_baseline(10)

    assert 150 == found.more["workloads"]
    assert 0.5 < found.more["quota_use"] <= 1


def test_a_shape_is_measured_in_a_process_of_its_own():
    found = run.run(["preferred-512"], quiet)["shapes"][0]

    assert "preferred-512" == found["shape"]
    assert set(found) >= CONTRACT | {"shape", "peak_rss_mb", "tenth_mean_ms"}
    assert 10 < found["peak_rss_mb"] < 1_000


def test_a_shape_that_fails_says_why(monkeypatch):
    monkeypatch.setattr(run, "TENTH", random.random())

    with pytest.raises(Unavailable, match="preferred-512 could not be measured: ValueError"):
        run.run(["preferred-512"], quiet)


def test_a_shape_that_is_not_there_is_refused(capsys):
    assert 2 == main.run(["bench", "schedule", "--shape", "square"])
    assert "there is no square; there are gangs-5000-nodes" in capsys.readouterr().err
