"""What somebody may ask a local cluster to be."""

import pytest

from muster.errors import InvalidSpec
from muster_local.shape import Options, Shape, checked_name, shape_of

ACCEPTED = {
    "a new cluster takes the defaults": (Options(), None, Shape()),
    "one node needs no second rack": (Options(nodes=1), None, Shape(nodes=1, racks=1)),
    "KWOK nodes can be all there is": (
        Options(nodes=0, kwok_nodes=500),
        None,
        Shape(nodes=0, racks=1, kwok_nodes=500),
    ),
    "what is there stays when nothing is asked": (
        Options(),
        Shape(nodes=7, gpus=2, gpu_model="A100"),
        Shape(nodes=7, gpus=2, gpu_model="A100"),
    ),
    "a cluster can grow": (
        Options(nodes=6, kwok_nodes=10, with_scheduler=True),
        Shape(nodes=4),
        Shape(nodes=6, kwok_nodes=10, has_scheduler=True),
    ),
    "a scheduler that is there stays": (
        Options(),
        Shape(has_scheduler=True),
        Shape(has_scheduler=True),
    ),
    "the platform comes when it is no longer refused": (
        Options(),
        Shape(has_platform=False),
        Shape(has_platform=True),
    ),
    "the platform that is there stays": (
        Options(no_platform=True),
        Shape(has_platform=True),
        Shape(has_platform=True),
    ),
}

REFUSED = {
    "no node at all": (Options(nodes=0), None, "--nodes: must be at least 1, is 0"),
    "less than no node": (Options(nodes=-3), None, "--nodes: must be at least 1, is -3"),
    "more processes than a machine bears": (
        Options(nodes=201),
        None,
        "--nodes: must be at most 200, is 201",
    ),
    "negative GPUs": (Options(gpus=-1), None, "--gpus: must be at least 0, is -1"),
    "no rack": (Options(racks=0), None, "--racks: must be at least 1, is 0"),
    "an empty rack": (Options(nodes=2, racks=3), None, "--racks: must be at most 2, is 3"),
    "negative KWOK nodes": (
        Options(kwok_nodes=-1),
        None,
        "--kwok-nodes: must be at least 0, is -1",
    ),
    "a model that no label can hold": (
        Options(gpu_model="H 100"),
        None,
        "--gpu-model: 'H 100' cannot be a label; take H100, say",
    ),
    "fewer nodes than there are": (
        Options(nodes=2),
        Shape(nodes=4),
        "--nodes: the local cluster default exists with 4; run `muster local down --name default`"
        " first",
    ),
    "other GPUs than there are": (
        Options(name="a", gpus=4),
        Shape(),
        "--gpus: the local cluster a exists with 8; run `muster local down --name a` first",
    ),
}


@pytest.mark.parametrize(("options", "before", "want"), ACCEPTED.values(), ids=ACCEPTED)
def test_accepted(options: Options, before: Shape | None, want: Shape) -> None:
    assert want == shape_of(options, before)


@pytest.mark.parametrize(("options", "before", "message"), REFUSED.values(), ids=REFUSED)
def test_refused(options: Options, before: Shape | None, message: str) -> None:
    with pytest.raises(InvalidSpec) as caught:
        shape_of(options, before)

    assert message == str(caught.value)


@pytest.mark.parametrize("name", ["", "A", "-a", "a-", "a/b", "..", "a b", "a" * 31, "a\n"])
def test_a_name_that_is_no_directory_context_and_label_is_refused(name: str) -> None:
    with pytest.raises(InvalidSpec, match="--name"):
        checked_name(name)


@pytest.mark.parametrize("name", ["a", "default", "team-2", "0", "a" * 30])
def test_a_plain_name_is_accepted(name: str) -> None:
    assert name == checked_name(name)
