"""State that needs no torch: kept as JSON and arrays, or refused when it is saved."""

import io
from typing import Any

import numpy as np
import pytest

from muster_sdk import trees
from muster_sdk.errors import SaveFailed

KEPT: dict[str, tuple[Any, Any]] = {
    "numbers, text and nothing": ({"a": 1, "b": 2.5, "c": "x", "d": None, "e": True},) * 2,
    "lists in mappings in lists": ([{"a": [1, [2]]}],) * 2,
    "a tuple comes back as a list": ({"a": (1, 2)}, {"a": [1, 2]}),
    "a NumPy number is a number": ({"a": np.float64(0.5)}, {"a": 0.5}),
    "infinity": ({"a": float("inf")},) * 2,
}


def through_a_file(tree: Any) -> Any:
    file = io.BytesIO()
    trees.write(tree, file)
    return trees.read(io.BytesIO(file.getvalue()), "part-0.npz")


@pytest.mark.parametrize("claim", KEPT)
def test_what_is_kept(claim: str) -> None:
    tree, want = KEPT[claim]

    assert want == through_a_file(tree)


def test_arrays_keep_their_type_and_shape() -> None:
    arrays = {"weights": np.ones((2, 3), np.float16), "more": [np.arange(4, dtype=np.int8)]}

    found = through_a_file(arrays)

    assert [(np.float16, (2, 3)), (np.int8, (4,))] == [
        (array.dtype, array.shape) for array in (found["weights"], found["more"][0])
    ]
    assert (found["weights"] == 1).all()


REFUSED: dict[str, tuple[Any, str]] = {
    "an object": (
        {"a": [object()]},
        "a[0] cannot be saved, its type is object: save numbers, text",
    ),
    "an array of objects": (
        {"a": np.array([object()])},
        "a cannot be saved, its type is ndarray: save numbers",
    ),
    "a key that JSON would turn into text": (
        {"a": {1: 2}},
        "a has the key 1: only text is kept as a key",
    ),
}


@pytest.mark.parametrize("claim", REFUSED)
def test_what_cannot_be_kept_is_refused_by_its_place(claim: str) -> None:
    tree, want = REFUSED[claim]

    with pytest.raises(SaveFailed) as refused:
        through_a_file(tree)

    assert str(refused.value).startswith(want)


def test_a_function_has_no_state() -> None:
    with pytest.raises(SaveFailed) as refused:
        trees.state_of("model", len)

    assert "model cannot be saved: <built-in function len> has no state_dict()" == str(
        refused.value
    )


def test_a_file_that_would_run_code_is_not_read() -> None:
    file = io.BytesIO()
    np.savez(file, tree=np.array([object()]))

    with pytest.raises(ValueError, match="allow_pickle=False"):
        trees.read(io.BytesIO(file.getvalue()), "part-0.npz")


def test_the_size_of_a_tree_is_that_of_its_arrays() -> None:
    assert 24 + 8 == trees.bytes_of({"a": [np.zeros(3)], "b": (np.zeros(1), "text")})
