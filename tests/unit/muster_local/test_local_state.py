"""What is known of a cluster between two commands."""

import threading
from pathlib import Path

import pytest

from muster.errors import InvalidSpec, NotFound
from muster_local import state
from muster_local.component import Component, Identity
from muster_local.shape import Shape
from muster_local.state import Cluster


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MUSTER_HOME", str(tmp_path))
    return tmp_path


def a_cluster(home: Path, name: str = "one") -> Cluster:
    component = Component(
        "api", "platform", Identity(7, 1.5, "boot"), home / "api.log", "http://127.0.0.1:9"
    )
    return Cluster(name, home / name, Shape(nodes=3, gpu_model="A100"), (component,))


def test_what_is_saved_is_loaded(home: Path) -> None:
    state.save(a_cluster(home))

    assert a_cluster(home) == state.load("one")


def test_the_api_is_found_by_its_component(home: Path) -> None:
    assert "http://127.0.0.1:9" == a_cluster(home).api_url


def test_a_cluster_without_the_platform_has_no_api(home: Path) -> None:
    assert None is Cluster("one", home / "one", Shape()).api_url


def test_clusters_are_listed_by_name(home: Path) -> None:
    for name in ("two", "one"):
        state.save(a_cluster(home, name))
    (home / "not-one").mkdir()

    assert ["one", "two"] == state.names()


def test_an_unknown_cluster_is_none_and_required_it_is_named(home: Path) -> None:
    state.save(a_cluster(home))

    assert None is state.load("two")
    with pytest.raises(NotFound, match="no local cluster two; there are: one"):
        state.require("two")


def test_a_name_that_leads_elsewhere_is_refused(home: Path) -> None:
    with pytest.raises(InvalidSpec, match="--name"):
        state.load("../one")


@pytest.mark.parametrize("content", ["", "{}", '{"shape": {"colour": 1}, "components": []}'])
def test_a_file_that_a_power_cut_spoilt_counts_as_none(home: Path, content: str) -> None:
    state.save(a_cluster(home))
    (home / "one" / "state.json").write_text(content)

    assert None is state.load("one")


def test_only_its_owner_reads_it(home: Path) -> None:
    state.save(a_cluster(home))

    assert 0o600 == (home / "one" / "state.json").stat().st_mode & 0o777


def test_two_commands_change_a_cluster_one_after_the_other(home: Path) -> None:
    waits = threading.Event()
    order: list[str] = []

    def second() -> None:
        with state.locked(home / "one", lambda _: waits.set()):
            order.append("second")

    other = threading.Thread(target=second)
    with state.locked(home / "one"):
        other.start()
        assert waits.wait(10)
        order.append("first")
    other.join(10)

    assert ["first", "second"] == order


def test_who_waited_for_a_directory_that_was_removed_gets_a_new_one(home: Path) -> None:
    waits = threading.Event()
    found: list[bool] = []

    def second() -> None:
        with state.locked(home / "one", lambda _: waits.set()):
            found.append((home / "one").is_dir())

    other = threading.Thread(target=second)
    with state.locked(home / "one"):
        other.start()
        assert waits.wait(10)
        (home / "one").rmdir()
    other.join(10)

    assert [True] == found
