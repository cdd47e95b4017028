"""Reading a trace, its statistics, and small replays whose outcome is known by hand."""

import gzip
from pathlib import Path

import pytest

from muster.errors import InvalidSpec, NotFound
from muster.scheduling.snapshot import Order
from muster_local.bench.traces import figures
from muster_local.bench.traces.figures import Fate
from muster_local.bench.traces.reading import TraceJob, quotas, read_tenants, read_trace
from muster_local.bench.traces.replay import Setting, alone, run
from muster_local.progress import quiet

HEADER = "job_id,submit_s,duration_s,num_gpus,tenant\n"


@pytest.fixture
def write(tmp_path: Path):
    def write(text: str, name: str = "trace.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
        return path

    return write


@pytest.mark.parametrize("name", ["trace.csv", "trace.csv.gz"])
def test_jobs_are_read_by_submission(write, name):
    path = write(HEADER + "b,7,2.5,8,x\na,3,10,1,y\n", name)

    assert (TraceJob("a", 3, 10, 1, "y"), TraceJob("b", 7, 2.5, 8, "x")) == read_trace(path)


def test_a_trace_needs_no_tenant_and_may_have_more_columns(write):
    path = write("job_id,submit_s,duration_s,num_gpus,model\na,3,10,1,bert\n")

    assert (TraceJob("a", 3, 10, 1),) == read_trace(path)


WRONG_TRACES = {
    "a column is missing": (
        "job_id,submit_s,num_gpus\n",
        "trace.csv, line 1: has no column duration_s; a trace needs job_id, submit_s, ",
    ),
    "it has no jobs": (HEADER, "trace.csv: has no jobs"),
    "a time is no number": (
        HEADER + "a,1,1,1,x\nb,soon,1,1,x\n",
        "trace.csv, line 3, submit_s: must be a number from 0, is 'soon'",
    ),
    "a duration is negative": (HEADER + "a,1,-1,1,x\n", "line 2, duration_s: must be a number"),
    "a duration never ends": (HEADER + "a,1,inf,1,x\n", "line 2, duration_s: must be a number"),
    "a job has no GPU": (HEADER + "a,1,1,0,x\n", "num_gpus: must be a whole number from 1, is 0"),
    "half a GPU": (HEADER + "a,1,1,0.5,x\n", "num_gpus: must be a whole number from 1, is 0.5"),
    "a line is too short": (HEADER + "a,1\n", "line 2, duration_s: must be a number from 0"),
    "a job is there twice": (HEADER + "a,1,1,1,x\na,2,1,1,x\n", "job_id: 'a' is there twice"),
}


@pytest.mark.parametrize("claim", WRONG_TRACES)
def test_a_trace_is_refused_with_the_line_where(write, claim):
    text, want = WRONG_TRACES[claim]

    with pytest.raises(InvalidSpec) as refused:
        read_trace(write(text))

    assert want in str(refused.value)


def test_a_file_that_is_not_there_is_not_found(tmp_path):
    with pytest.raises(NotFound, match=r"gone\.csv does not exist"):
        read_trace(tmp_path / "gone.csv")


def test_a_broken_archive_is_bad_input(write):
    path = write("", "cut.csv")
    path.write_bytes(gzip.compress(b"job_id")[:-4])

    with pytest.raises(InvalidSpec, match=r"is no csv or csv\.gz file that can be read"):
        read_trace(path)


def test_tenants_are_read_with_their_nodes(write):
    assert {"a": 64, "b": 8} == read_tenants(write("vc,node num\na,64\nb,8\n\n"))


@pytest.mark.parametrize("text", ["vc,nodes\n", "vc,nodes\na,many\n", "vc,nodes\na,1\na,2\n"])
def test_tenants_without_nodes_are_refused(write, text):
    with pytest.raises(InvalidSpec):
        read_tenants(write(text))


QUOTAS = {
    "even parts": ({"a": 1, "b": 1}, 8, {"a": 4, "b": 4}),
    "the largest remainder gets what is left": (
        {"a": 64, "b": 32, "c": 8},
        16,
        {"a": 10, "b": 5, "c": 1},
    ),
    "of equal remainders the first": ({"a": 1, "b": 1, "c": 1}, 8, {"a": 3, "b": 3, "c": 2}),
}


@pytest.mark.parametrize("claim", QUOTAS)
def test_quotas(claim):
    nodes, gpus, want = QUOTAS[claim]

    assert want == quotas(nodes, gpus)


def fate(submitted: float, finished: float | None, waited: float, gpus: int = 1) -> Fate:
    held = 0.0 if finished is None else (finished - submitted - waited) * gpus
    return Fate("t", gpus, submitted, finished, waited, 0.0, 0, held)


def test_statistics_count_the_jobs_that_ended():
    fates = [fate(0, 10, 2), fate(5, 105, 90, gpus=8), fate(6, None, 0, gpus=64)]

    assert [10, 100] == figures.completions(fates)
    assert 46 == figures.mean_wait(fates)
    assert 90 == figures.mean_wait(fates, 8)
    assert 0 == figures.mean_wait(fates, 65)
    assert 105 == figures.makespan(fates)


def replayed(write, text: str, setting: Setting, tenants: str | None = None):
    file = None if tenants is None else write(tenants, "tenants.csv")
    return run(write(HEADER + text), file, setting, quiet)


def test_two_jobs_on_one_gpu_follow_each_other(write):
    # The second comes at 10, waits until 100, and ends at 150.
    found = replayed(write, "a,0,100,1,x\nb,10,50,1,x\n", Setting(1, 1))

    assert (2, 0, 0) == (found.jobs, found.unfinished, found.preemptions)
    assert (120, 45, 150) == (found.mean_jct_s, found.mean_wait_s, found.makespan_s)
    assert (1.0, 0.0) == (found.utilization, found.mean_wait_8gpu_s)


def test_durations_are_cut(write):
    found = replayed(write, "a,0,100,1,x\n", Setting(1, 1, cut=30.0))

    assert 30 == found.mean_jct_s


def test_a_job_that_never_fits_is_unfinished_and_does_not_stop_the_others(write):
    found = replayed(write, "a,0,100,9,x\nb,0,50,1,x\n", Setting(1, 8))

    assert (2, 1, 50) == (found.jobs, found.unfinished, found.mean_jct_s)


def test_a_tenant_alone_has_its_quota_and_nothing_else():
    jobs = [TraceJob("a", 0, 100, 8, "x"), TraceJob("b", 0, 50, 4, "x")]

    fates = alone(jobs, 12, Setting(64, 8))

    assert [100, 50] == [fate.finished for fate in fates]


def test_a_tenant_without_a_quota_is_named(write):
    with pytest.raises(InvalidSpec, match=r"has no line for tenant 'y' of trace\.csv"):
        replayed(write, "a,0,100,1,y\n", Setting(1, 8), tenants="vc,nodes\nx,1\n")


def test_each_tenant_is_compared_with_itself_alone(write):
    # Each tenant has one of the two GPUs, and borrows the other while that is idle.
    trace = "a,0,100,1,x\nb,0,100,1,x\nc,500,100,1,y\n"

    found = replayed(write, trace, Setting(1, 2), tenants="vc,nodes\nx,8\ny,8\nidle,0\n")

    assert ["x", "y", "idle"] == [tenant.tenant for tenant in found.tenants]
    assert [(0, 50), (0, 0), (0, 0)] == [
        (t.mean_wait_s, t.alone_mean_wait_s) for t in found.tenants
    ]
    assert [200, 100, 0] == [tenant.gpu_seconds for tenant in found.tenants]
    assert ["", "", ""] == [tenant.reason for tenant in found.tenants]


@pytest.mark.parametrize("flag", ["nodes", "gpus"])
def test_a_cluster_without_gpus_is_refused_by_the_name_of_its_flag(flag):
    with pytest.raises(InvalidSpec, match=f"--{flag}: must be at least 1, is 0"):
        Setting(**({"nodes": 1, "gpus": 1} | {flag: 0}))


def test_the_setting_is_told_with_the_figures(write):
    setting = Setting(1, 2, Order.ATTAINED_SERVICE, 300.0, has_limits=False)

    found = replayed(write, "a,0,100,1,x\n", setting)

    assert ("trace", 1, 2, "attained-service") == (
        found.trace,
        found.nodes,
        found.gpus,
        found.order,
    )
    assert ("none", None, 300) == (found.limits, found.cut_s, found.restart_cost_s)
