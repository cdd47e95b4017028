"""YAML 1.2 as plain values, with the line of each."""

import io

import pytest

from muster.errors import InvalidSpec, NotFound
from muster_cli import yaml_file

VALUES = {
    "y": "y",
    "n": "n",
    "yes": "yes",
    "on": "on",
    "Off": "Off",
    "1:30": "1:30",
    "1_000": "1_000",
    "2026-12-01": "2026-12-01",
    "=": "=",
    "true": True,
    "False": False,
    "null": None,
    "~": None,
    "": None,
    "0": 0,
    "-7": -7,
    "010": 10,
    "0o17": 15,
    "0x1F": 31,
    "1.5": 1.5,
    ".5": 0.5,
    "1e3": 1000.0,
    "1h30m": "1h30m",
    "'1'": "1",
    '"true"': "true",
    "<<": "<<",
}
BAD = {
    "an open bracket": ("a: [1", "f.yaml:1:6: this is not YAML: expected ',' or ']'"),
    "a tab": ("a:\n\tb: 1", "f.yaml:2:1: this is not YAML: found character"),
    "a key twice": ("a: 1\nb:\n  c: 1\n  c: 2", "f.yaml:4:3: this is not YAML: the key 'c' app"),
    "a key that is a list": (
        "[a]: 1",
        "f.yaml:1:1: this is not YAML: a key must be a single word",
    ),
    "a tag": ("a: !b c", "f.yaml:1:4: this is not YAML: has the tag !b, and no tags are read"),
    "two documents": ("a: 1\n---\nb: 2", "f.yaml:2:1: this is not YAML: expected a single docume"),
    "an alias of itself": ("a: &x [*x]", "f.yaml:1:4: this is not YAML: holds too much"),
    "an unknown alias": ("a: *x", "f.yaml:1:4: this is not YAML: found undefined alias"),
    "nothing": ("", "f.yaml: there is nothing in it"),
    "a character that no text may have": ("a: \x00", "f.yaml: this is not YAML: unacceptable"),
}


@pytest.mark.parametrize("text", VALUES)
def test_a_word_is_read_as_in_yaml_1_2(text):
    found = yaml_file.parse(f"a: {text}", "f.yaml").value

    assert {"a": VALUES[text]} == found
    assert type(VALUES[text]) is type(found["a"])


@pytest.mark.parametrize("claim", BAD)
def test_it_is_refused_with_its_place(claim):
    text, message = BAD[claim]

    with pytest.raises(InvalidSpec) as refused:
        yaml_file.parse(text, "f.yaml")

    assert message == str(refused.value)[: len(message)]


def test_a_bomb_of_aliases_is_refused():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]

    with pytest.raises(InvalidSpec, match="holds too much"):
        yaml_file.parse("\n".join(lines), "f.yaml")


TEXT = """\
name: x
jobs:
  - {name: a,
     replicas: 2}
  - name: b
    nodes:
      - n1
"""
PLACES = {
    "jobs[0].replicas": 4,
    "jobs[1]": 5,
    "jobs[1].nodes[0]": 7,
    "jobs[1].nodes[3]": 6,
    "jobs[1].queue": 5,
    "jobs[7].name": 2,
    "settings.notice": 1,
    "": 1,
}


@pytest.mark.parametrize("path", PLACES)
def test_an_error_gets_the_line_of_its_field_or_of_what_is_around_it(path):
    file = yaml_file.parse(TEXT, "f.yaml")

    located = str(file.located(InvalidSpec(path, "is wrong")))

    assert f"f.yaml:{PLACES[path]}: {path}{': ' if path else ''}is wrong" == located


def test_a_dash_is_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("a: 1"))

    assert ("standard input", {"a": 1}) == (
        (file := yaml_file.read("-")).source,
        file.value,
    )


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(NotFound, match=r"no\.yaml: No such file"):
        yaml_file.read(str(tmp_path / "no.yaml"))


def test_a_file_that_is_no_text_is_refused(tmp_path):
    (tmp_path / "x").write_bytes(b"\xff\xfe\x00")

    with pytest.raises(InvalidSpec, match="not text in UTF-8"):
        yaml_file.read(str(tmp_path / "x"))
