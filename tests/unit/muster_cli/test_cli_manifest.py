import io

import pytest

from muster.errors import InvalidSpec, NotFound
from muster_cli import manifest

JOB = "apiVersion: muster.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: a}\n"
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: script}\n"

BAD = {
    "YAML that is not": ("a: [1", "f.yaml:1:6: this is not YAML"),
    "a tab": ("a:\n\tb: 1", "f.yaml:2:1: this is not YAML"),
    "a key twice": (JOB + "kind: TrainingJob\n", "f.yaml:4:1: this is not YAML: the key 'kind'"),
    "nothing": ("", "f.yaml: there is no object in it"),
    "only comments": ("# a\n---\n", "f.yaml: there is no object in it"),
    "a list": ("- 1", "f.yaml:1: must be an object with apiVersion and kind, is a list"),
    "no kind": (JOB.replace("kind: TrainingJob\n", ""), "f.yaml:1: kind: must be set"),
    "no apiVersion": (
        "kind: TrainingJob\nmetadata: {name: a}",
        "f.yaml:1: apiVersion: must be set",
    ),
    "another version": (
        JOB.replace("v1alpha1", "v9"),
        "f.yaml:1: apiVersion: must be muster.dev/v1alpha1 for a TrainingJob, is muster.dev/v9",
    ),
    "no name": ("apiVersion: v1\nkind: ConfigMap", "f.yaml:1: metadata.name: must be set"),
    "a second document": (JOB + "---\na: 1\n", "f.yaml:5: apiVersion: must be set"),
}


@pytest.mark.parametrize("claim", BAD)
def test_it_is_refused_with_its_place(claim):
    content, message = BAD[claim]

    with pytest.raises(InvalidSpec) as refused:
        manifest.parse(content, "f.yaml")

    assert str(refused.value).startswith(message)


def test_a_file_may_hold_several_objects():
    script, job = manifest.parse(f"{CONFIG_MAP}---\n{JOB}---\n", "f.yaml")

    assert (False, "script", "f.yaml:1") == (script.is_job, script.name, script.where)
    assert (True, "a", "f.yaml:5") == (job.is_job, job.name, job.where)


def test_a_dash_is_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(JOB))

    (job,) = manifest.read("-")

    assert "standard input:1" == job.where


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(NotFound, match=r"no\.yaml: No such file"):
        manifest.read(str(tmp_path / "no.yaml"))


def test_a_file_that_is_no_text_is_refused(tmp_path):
    (tmp_path / "x").write_bytes(b"\xff\xfe\x00")

    with pytest.raises(InvalidSpec, match="not text in UTF-8"):
        manifest.read(str(tmp_path / "x"))
