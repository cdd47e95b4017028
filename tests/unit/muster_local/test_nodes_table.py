"""The table of process nodes, and what nodes say of themselves."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.errors import InvalidSpec, NotFound
from muster_local.nodes.registration import allocatable_of, labels_of, lease_of, node_status
from muster_local.nodes.table import FILE_NAME, NodeEntry, read_nodes, set_down, write_nodes

NODE = NodeEntry("n1", gpus=8, labels={"muster.dev/rack": "r1"}, cpus=4, memory_bytes=2**30)


@given(
    st.lists(
        st.builds(
            NodeEntry,
            name=st.text(min_size=1),
            gpus=st.integers(0, 16),
            labels=st.dictionaries(st.text(), st.text()),
            down=st.booleans(),
        ),
        unique_by=lambda entry: entry.name,
    )
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_written_is_read(tmp_path: Path, entries: list[NodeEntry]) -> None:
    write_nodes(tmp_path, entries)
    assert read_nodes(tmp_path) == tuple(entries)


def test_no_table_is_no_nodes(tmp_path: Path) -> None:
    assert read_nodes(tmp_path) == ()


WRONG = {
    "no JSON": ("[", "is not JSON"),
    "no list": ("{}", "must be a list"),
    "no name": ('[{"gpus": 1}]', "nodes.json[0]: must be an object with a name"),
    "an unknown key": ('[{"name": "a", "gpu": 1}]', "nodes.json[0].gpu: is not known"),
    "a wrong type": ('[{"name": "a", "gpus": "8"}]', "nodes.json[0].gpus: must be of type int"),
    "true for a number": ('[{"name": "a", "gpus": true}]', "gpus: must be of type int"),
    "less than nothing": ('[{"name": "a", "gpus": -1}]', "must not be negative, is -1"),
    "a name twice": ('[{"name": "a"}, {"name": "a"}]', "names a twice"),
}


@pytest.mark.parametrize("claim", WRONG)
def test_a_wrong_table_is_refused_with_the_place(tmp_path: Path, claim: str) -> None:
    text, words = WRONG[claim]
    (tmp_path / FILE_NAME).write_text(text)
    with pytest.raises(InvalidSpec) as refused:
        read_nodes(tmp_path)
    assert words in str(refused.value)


def test_a_node_can_be_set_down_and_an_unknown_one_not(tmp_path: Path) -> None:
    write_nodes(tmp_path, [NODE])
    set_down(tmp_path, "n1")
    assert read_nodes(tmp_path)[0].down
    with pytest.raises(NotFound):
        set_down(tmp_path, "n2")
    assert json.loads((tmp_path / FILE_NAME).read_text())[0]["labels"] == {"muster.dev/rack": "r1"}


def test_a_node_says_that_its_gpus_are_simulated_if_it_has_any() -> None:
    assert labels_of(NODE)["muster.dev/simulated"] == "true"
    assert "muster.dev/simulated" not in labels_of(NodeEntry("n2", gpus=0))
    assert allocatable_of(NODE)["nvidia.com/gpu"] == "8"
    assert "nvidia.com/gpu" not in allocatable_of(NodeEntry("n2", gpus=0))


def test_a_status_that_lost_its_gpus_takes_them_off() -> None:
    status = node_status(NodeEntry("n2", gpus=0), port=1, version="v1", now=0.0, ready_since=0.0)
    assert status["capacity"]["nvidia.com/gpu"] is None


def test_a_lease_goes_with_its_node() -> None:
    node = {"metadata": {"name": "n1", "uid": "u"}}
    lease = lease_of(node, seconds=40, now=0.5)
    assert lease["metadata"]["ownerReferences"][0]["uid"] == "u"
    assert lease["spec"]["renewTime"] == "1970-01-01T00:00:00.500000Z"
