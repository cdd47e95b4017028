"""The order in which manifests go into an API server, and where things lie."""

from pathlib import Path

import pytest

from muster.errors import InvalidSpec, NotFound
from muster_local import resources
from muster_local.apply import manifests_in, read, staged
from muster_local.places import cache_directory, home_directory
from muster_local.versions import project_of, projects


def test_what_others_need_comes_first() -> None:
    kinds = ["ConfigMap", "Queue", "ClusterRoleBinding", "ServiceAccount", "Namespace"]
    kinds += ["ClusterRole", "CustomResourceDefinition"]

    stages = staged({"kind": kind, "metadata": {"name": kind}} for kind in kinds)

    assert [
        ["Namespace", "CustomResourceDefinition"],
        ["ServiceAccount", "ClusterRole"],
        ["ConfigMap", "Queue", "ClusterRoleBinding"],
    ] == [[each["kind"] for each in stage] for stage in stages]


def test_the_chart_holds_what_a_cluster_needs() -> None:
    kinds = {manifest["kind"] for manifest in manifests_in(resources.chart())}

    assert {"CustomResourceDefinition", "Namespace", "Queue", "Topology"} <= kinds


def test_a_file_that_is_not_yaml_is_named(tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text("a: [")

    with pytest.raises(InvalidSpec, match=r"broken\.yaml: not YAML"):
        read(tmp_path / "broken.yaml")


def test_all_programs_are_pinned_and_have_a_build() -> None:
    for project in projects():
        module = (resources.builds() / project.name / "go.mod").read_text()
        root = next(iter(project.components.values()))
        required = next(
            line.split() for line in module.splitlines() if f"{project.version}" in line.split()
        )

        assert project.version == required[-1]
        assert root.startswith(required[-2])
        assert (resources.builds() / project.name / "go.sum").is_file()


def test_a_program_that_is_not_pinned_is_refused_by_name() -> None:
    with pytest.raises(NotFound, match="no program 'helm' is pinned; there are etcd"):
        project_of("helm")


def test_places_follow_their_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MUSTER_CACHE", raising=False)
    monkeypatch.delenv("MUSTER_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/x/cache")
    monkeypatch.setenv("XDG_STATE_HOME", "/x/state")
    assert (Path("/x/cache/muster"), Path("/x/state/muster")) == (
        cache_directory(),
        home_directory(),
    )

    monkeypatch.setenv("MUSTER_CACHE", "/c")
    monkeypatch.setenv("MUSTER_HOME", "/h")
    assert (Path("/c"), Path("/h")) == (cache_directory(), home_directory())
