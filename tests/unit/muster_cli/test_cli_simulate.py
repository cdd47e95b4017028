"""`muster simulate`: what it prints, its exit codes, and the chart."""

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from muster.simulation.expectations import What
from muster.simulation.play import play
from muster.simulation.reading import FIELDS, NODE, SETTINGS, scenario_of
from muster.simulation.reading_jobs import JOB
from muster.simulation.reading_queues import QUOTA
from muster_cli import gantt, yaml_file
from muster_cli.gantt_spans import Span, held_gpus, spans, up_gpus

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"
PAGE = Path(__file__).resolve().parents[3] / "docs" / "scenarios.md"
TEXT = """\
name: y
about: A scenario for tests.
cluster:
  nodes:
    - {count: 2, prefix: n, gpus: 8}
queues: [{name: on}, {name: no}]
jobs:
  - {name: v, queue: on, replicas: 8, minReplicas: 4, nodes: [n1, n1, n1, n1, n1, n1, n1, n1]}
  - {name: low, queue: on, replicas: 8, duration: 1h}
  - {name: h, queue: on, submit: 10m, priority: 1, replicas: 10, duration: 10m}
  - {name: w, queue: no, submit: 15m, gpusPerReplica: 8}
until: 2h
events:
  - {at: 1h30m, node: n2, becomes: down}
  - {at: 1h40m, node: n2, becomes: up}
  - {at: 1h45m, queue: no, set: {paused: true, limit: 4}}
  - {at: 1h50m, job: v, set: {suspend: true}}
expect:
  - {job: h, startedAt: 10m}
  - {job: low, evictions: 1}
"""


@pytest.fixture
def scenario(tmp_path):
    """A file with the scenario, and changes made to its text."""

    def write(*changes):
        text = TEXT
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        file = tmp_path / "s.yaml"
        file.write_text(text)
        return str(file)

    return write


WRONG = ("startedAt: 10m", "startedAt: 11m")


def test_the_outcome_is_one_json_object(muster, scenario):
    done = muster("simulate", scenario(), "-o", "json")

    found = json.loads(done.out)
    assert (0, "y", 7200.0, 2) == (done.code, found["name"], found["end"], found["evictions"])
    assert ["v", "low", "h", "w"] == list(found["jobs"])
    assert "failures" not in found


def test_the_outcome_is_yaml(muster, scenario):
    done = muster("simulate", scenario(), "-o", "yaml")

    assert [600.0] == yaml.safe_load(done.out)["jobs"]["h"]["starts"]


def test_people_get_a_table(muster, scenario):
    done = muster("simulate", scenario())

    lines = done.out.splitlines()
    assert "y A scenario for tests." == lines[0]
    (row,) = [line.split() for line in lines if line.startswith("low")]
    assert ["low", "on", "Running", "0s", "0s", "+1", "–", "0s", "1", "0", "n1×8"] == row[:11]
    assert "ended at 2h; 2 evictions; utilization" in done.out
    assert "evicted for h" not in done.out


def test_a_wide_table_tells_the_story_too(muster, scenario):
    assert "evicted for h" in muster("simulate", scenario(), "-o", "wide").out


def test_a_check_that_holds_says_so_and_prints_nothing(muster, scenario):
    done = muster("simulate", scenario(), "--check")

    assert (0, "") == (done.code, done.out)
    assert "all of 2 expectations hold" in done.err


def test_a_check_that_fails_names_each_expectation_with_its_line(muster, scenario):
    file = scenario(WRONG)

    done = muster("simulate", file, "--check")

    want = f"{file}:19: expect[0]: job h: startedAt must be 11m, is 10m"
    assert (1, [want]) == (done.code, done.out.splitlines())
    assert f"muster: {file}: 1 of what must hold does not" == done.err.strip()


def test_a_check_that_fails_is_json_too(muster, scenario):
    done = muster("simulate", scenario(WRONG), "--check", "-o", "json")

    (failure,) = json.loads(done.out)["failures"]
    assert (1, True) == (done.code, failure.endswith("startedAt must be 11m, is 10m"))


def test_without_check_expectations_play_no_part(muster, scenario):
    assert 0 == muster("simulate", scenario(WRONG)).code


def test_until_ends_it_early_and_leaves_later_expectations_out(muster, scenario):
    later = ("{job: low, evictions: 1}", "{job: low, evictions: 9, at: 1h}")

    done = muster("simulate", scenario(later), "--check", "--until", "30m")

    assert (0, True) == (done.code, "1 expectations of later times" in done.err)


def test_the_example_of_the_documents_holds():
    _, text = PAGE.read_text().split("```yaml\n", 1)

    played = play(scenario_of(yaml_file.parse(text.split("```")[0], "scenarios.md").value))

    assert ((), ()) == (played.shortfalls, played.violations)


def test_the_documents_name_every_field():
    page = PAGE.read_text()
    fields = {field for read in (FIELDS, SETTINGS, NODE, QUOTA, JOB, What) for field in read}

    assert [] == sorted(field for field in fields if not re.search(rf"`[^`]*\b{field}\b", page))


BAD = {
    "a field of the wrong type": (
        ("replicas: 10,", "replicas: ten,"),
        ":10: jobs[2].replicas: must be a whole number, is 'ten'",
    ),
    "a field that is not there": (
        ("{name: w, queue: no,", "{queue: no,"),
        ":11: jobs[3].name: is missing",
    ),
    "a field that nobody knows": (
        ("until: 2h", "untill: 2h"),
        ":12: untill: is not a field here; known: name,",
    ),
    "what is no YAML": (("until: 2h", "until: [2h"), ":13:7: this is not YAML: expected ',' or"),
    "a job where there is no room": (
        ("low, queue: on, replicas: 8", "low, queue: on, nodes: [n1]"),
        ":9: jobs[1].nodes: n1 has no room for it at 0s; choose other nodes",
    ),
}


@pytest.mark.parametrize("claim", BAD)
def test_a_bad_file_is_refused_in_one_line(muster, scenario, claim):
    change, message = BAD[claim]
    file = scenario(change)

    done = muster("simulate", file, "--check")

    assert (2, "", 1) == (done.code, done.out, len(done.err.splitlines()))
    assert done.err.startswith(f"muster: {file}{message}")


USAGE = {
    "no such file": (["no.yaml"], "no.yaml: No such file or directory"),
    "a bad end": (["FILE", "--until", "soon"], "--until: must be a duration such as 90s"),
    "a chart of another kind": (
        ["FILE", "--plot", "x.pdf"],
        "--plot: must end in .svg or .png, is x.pdf",
    ),
    "a chart in no folder": (["FILE", "--plot", "/no/x.svg"], "/no/x.svg: cannot be written"),
}


@pytest.mark.parametrize("claim", USAGE)
def test_wrong_usage_is_told(muster, scenario, claim):
    words, message = USAGE[claim]
    file = scenario()

    done = muster("simulate", *(file if word == "FILE" else word for word in words))

    assert (2, True) == (done.code, done.err.startswith(f"muster: {message}"))


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_a_chart_is_written(muster, scenario, tmp_path, suffix):
    file, twice = tmp_path / f"a.{suffix}", tmp_path / f"b.{suffix}"

    done = muster("simulate", scenario(), "--plot", str(file))
    muster("simulate", scenario(), "--plot", str(twice))

    assert (0, True) == (done.code, f"{file} written" in done.err)
    assert {"svg": b"<?xml", "png": b"\x89PNG\r"}[suffix] == file.read_bytes()[:5]
    assert file.read_bytes() == twice.read_bytes()


def test_the_chart_says_what_is_in_it(scenario, tmp_path):
    file = tmp_path / "x.svg"

    gantt.write(play(scenario_of(yaml_file.read(scenario()).value)), file)

    text = file.read_text()
    words = ["v", "h", "n2 down", "n2 up", "queue no: paused, limit", "v suspended", "2 evictions"]
    words += ["on", "waiting", "evicted", "replicas that it lacks", "GPUs that are up", "1h30m"]
    assert [] == [word for word in words if word not in text]


@pytest.mark.parametrize("file", sorted(SCENARIOS.rglob("*.yaml")), ids=lambda file: file.stem)
def test_every_scenario_can_be_drawn(file):
    assert gantt.chart(play(scenario_of(yaml_file.read(str(file)).value)))


def test_a_chart_without_jobs_can_be_drawn():
    assert gantt.chart(play(scenario_of({"name": "empty"})))


def test_what_a_chart_shows_adds_up(scenario):
    played = play(scenario_of(yaml_file.read(scenario()).value))
    of_h = [event for event in played.timeline if event.job == "h"]

    assert [Span(600.0, 1200.0, 10)] == spans(of_h, played.end)
    times, held = held_gpus(played, played.end)
    area = sum(
        (later - at) * sum(gpus[n] for gpus in held.values())
        for n, (at, later) in enumerate(pairwise(times))
    )
    _, up = up_gpus(played, played.end)
    assert [16, 8, 16, 16] == up
    assert played.simulation.world.used_gpu_seconds == area
