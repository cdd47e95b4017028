"""The tables of the documents are made from `build/bench.json`, and `make bench` makes that."""

import json

import pytest

from muster_local.bench import record
from muster_local.bench.published import SHAPES, TRACES
from muster_local.bench.record import PARTS, main
from muster_local.bench.scheduling import shapes
from muster_local.bench.tables import filled

SHAPE = {
    "shape": "kueue-baseline",
    "decisions": 2,
    "mean_ms": 0.51234,
    "p99_ms": 1234.5,
    "tenth_mean_ms": 0.25,
    "peak_rss_mb": 64.2,
    "workloads_per_second": 1234.5,
    "quota_use": 0.987,
}
TENANT = {
    "tenant": "ada",
    "jobs": 1200,
    "quota_gpus": 93,
    "mean_wait_s": 3.4,
    "alone_mean_wait_s": 23319.5,
    "beyond_quota": 2,
    "preemptions": 7,
    "reason": "",
}
REPLAY = {
    "trace": "muri-3",
    "nodes": 8,
    "gpus": 8,
    "order": "attained-service",
    "limits": "none",
    "restart_cost_s": 30.0,
    "mean_jct_s": 312808.4,
    "mean_wait_s": 265903.3,
    "mean_wait_8gpu_s": 328061.1,
    "preemptions": 1347,
    "tenants": [TENANT],
}
PAGE = "before\n<!-- bench:{0} -->\nold\n<!-- /bench:{0} -->\nafter\n"


def row(name, figures):
    """The last line of a table."""
    return filled(PAGE.format(name), figures).splitlines()[-3]


def test_a_shape_is_told_beside_what_others_published():
    want = (
        "| Kueue's baseline: 15,000 workloads in 5 cohorts of 6 queues, in simulated time "
        "(`kueue-baseline`) | Kueue 42.7 workloads/s end to end, quota use 56 % "
        "| 0.512 ms, 1,234 workloads/s, quota use 99 % | 1.23 s | 0.25 ms | × 2.0 | 64 MB |"
    )

    assert want == row("schedule", {"schedule": {"shapes": [SHAPE]}})


def test_a_shape_of_one_decision_has_no_p99():
    figures = {"schedule": {"shapes": [SHAPE | {"decisions": 1}]}}

    assert "| – | 0.25 ms |" in row("schedule", figures)


def test_a_replay_is_told_beside_what_others_published():
    want = (
        "| `muri-3`, 8 × 8 GPUs, 1 tenant, `attained-service`, no limits declared | 30 s "
        "| Tiresias-L 347,213 s, Themis 397,059 s (neither knows them) "
        "| 312,808 s | 265,903 s | 328,061 s | 1,347 |"
    )

    assert want == row("traces", {"traces": [REPLAY]})


def test_a_tenant_is_told_beside_itself_alone():
    want = "| `ada` | 1,200 (2 beyond its quota) | 93 GPUs | 3 s | 23,320 s | 7 | – |"

    assert want == row("tenants", {"traces": [REPLAY | {"tenants": []}, REPLAY]})


@pytest.mark.parametrize("name", ["schedule", "traces", "tenants", "other"])
def test_a_table_without_figures_stays_as_it_is(name):
    assert PAGE.format(name) == filled(PAGE.format(name), {})


def test_every_shape_and_replay_has_its_words():
    replays = {(trace, setting.order.value) for trace, _, setting in record._REPLAYS}

    assert list(shapes.SHAPES) == list(SHAPES)
    assert set(TRACES) == replays


def test_the_traces_that_are_replayed_are_there():
    assert [] == [t for t, _, _ in record._REPLAYS if not (record.TRACES / f"{t}.csv.gz").exists()]


def test_a_part_that_is_not_run_again_keeps_its_figures(tmp_path, monkeypatch):
    path = tmp_path / "build" / "bench.json"
    monkeypatch.setitem(PARTS, "schedule", lambda _: iter([{"schedule": 1}, {"schedule": 2}]))
    monkeypatch.setitem(PARTS, "traces", lambda _: iter([{"traces": 3}]))

    assert [0, 0] == [main(path, ["schedule"]), main(path, ["traces"])]
    assert {"schedule": 2, "traces": 3} == json.loads(path.read_text())


def test_a_part_that_is_not_there_is_refused(tmp_path, capsys):
    assert 2 == main(tmp_path / "bench.json", ["scheduling"])
    assert "there is no part scheduling; there are cluster, schedule, traces\n" == (
        capsys.readouterr().err
    )
