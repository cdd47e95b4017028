"""Where programs come from, in which order, and what is said when none of the ways works."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from muster.errors import Unavailable
from muster_local.binaries import Missing, find, find_all
from muster_local.binaries.place import placing
from muster_local.binaries.present import cached_path
from muster_local.binaries.search import Way, Ways
from muster_local.progress import Tell, quiet
from muster_local.versions import Project, project_of

ETCD = project_of("etcd")


@pytest.fixture(autouse=True)
def nothing_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSTER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)


def program(path: Path, says: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    return path


def works(content: str) -> Way:
    def way(project: Project, component: str, draft: Path, tell: Tell) -> None:
        draft.write_text(f"{content} {component}")

    return way


def fails(why: str, seen: list[str] | None = None) -> Way:
    def way(project: Project, component: str, draft: Path, tell: Tell) -> None:
        if seen is not None:
            seen.append(component)
        draft.write_text("half")
        raise Unavailable(why)

    return way


NOWHERE = Ways(fails("no network"), fails("no go"))


def test_the_assets_directory_comes_before_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))
    first = program(tmp_path / "assets" / "etcd", "etcd Version: 3.6.1")
    program(tmp_path / "path" / "etcd", "etcd Version: 3.6.16")

    assert first == find("etcd", ways=NOWHERE)


def test_path_comes_before_the_cache(tmp_path: Path) -> None:
    first = program(tmp_path / "path" / "kube-apiserver", "Kubernetes v1.37.0")
    program(cached_path(project_of("kube-apiserver"), "kube-apiserver"), "")

    assert first == find("kube-apiserver", ways=NOWHERE)


def test_another_minor_version_is_not_taken(tmp_path: Path) -> None:
    program(tmp_path / "path" / "kube-apiserver", "Kubernetes v1.36.5")
    cached = program(cached_path(project_of("kube-apiserver"), "kube-apiserver"), "")

    assert cached == find("kube-apiserver", ways=NOWHERE)


def test_the_cache_comes_before_the_download() -> None:
    cached = program(cached_path(ETCD, "etcd"), "")

    assert cached == find("etcd", ways=Ways(works("downloaded"), works("built")))


def test_the_download_comes_before_the_build() -> None:
    path = find("etcd", ways=Ways(works("downloaded"), works("built")))

    assert "downloaded etcd" == path.read_text()
    assert 0o755 == path.stat().st_mode & 0o777


def test_the_build_is_the_last_way_and_replaces_what_the_download_left() -> None:
    path = find("etcd", ways=Ways(fails("no network"), works("built")))

    assert "built etcd" == path.read_text()


def test_what_was_made_is_found_the_next_time() -> None:
    made = find("etcd", ways=Ways(works("downloaded"), works("built")))

    assert made == find("etcd", ways=NOWHERE)


def test_when_no_way_works_each_is_named_with_its_reason(tmp_path: Path) -> None:
    old = program(tmp_path / "path" / "etcd", "etcd Version: 3.5.9")

    with pytest.raises(Missing) as caught:
        find("etcd", ways=NOWHERE)

    assert (
        f"there is no etcd {ETCD.version}. installed: {old} is v3.5.9, not v3.6. "
        f"cached: no {cached_path(ETCD, 'etcd')}. downloaded: no network. built: no go. "
        "Name a directory that holds it in KUBEBUILDER_ASSETS, or let this machine download"
    ) == str(caught.value)


def test_nothing_half_made_is_left() -> None:
    with pytest.raises(Missing):
        find("etcd", ways=NOWHERE)

    left = {file.name for file in cached_path(ETCD, "etcd").parent.iterdir()}

    assert {".etcd.lock"} == left


def test_a_project_whose_download_failed_is_not_asked_for_its_next_program() -> None:
    asked: list[str] = []

    find_all(
        ["kube-apiserver", "kube-scheduler", "etcd"],
        ways=Ways(fails("no network", asked), works("built")),
    )

    assert ["kube-apiserver", "etcd"] == asked


def test_a_program_that_does_not_tell_its_version_is_not_taken(tmp_path: Path) -> None:
    program(tmp_path / "path" / "etcd", "who knows")

    with pytest.raises(Missing, match="etcd does not tell its version"):
        find("etcd", ways=NOWHERE)


def test_two_processes_do_not_make_the_same_program_twice(tmp_path: Path) -> None:
    path = tmp_path / "etcd"
    waits = threading.Event()
    drafts: list[Path | None] = []
    enter: Callable[[], None] = waits.set

    def second() -> None:
        with placing(path, lambda _: enter()) as draft:
            drafts.append(draft)

    other = threading.Thread(target=second)
    with placing(path, quiet) as draft:
        assert draft is not None
        other.start()
        assert waits.wait(10)
        draft.touch()
        draft.replace(path)
    other.join(10)

    assert [None] == drafts
