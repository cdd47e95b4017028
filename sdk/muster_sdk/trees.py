"""Training state as a file, without pickled code: what is read back can only be values.

With torch in the process the file is `torch.save`'s, read with `weights_only=True`; without it,
an `.npz` of NumPy arrays with the rest as JSON, where tuples come back as lists. Anything else is
refused when it is saved, not when it is needed.
"""

import io
import json
import sys
from collections.abc import Callable
from typing import Any, BinaryIO, Final, Protocol

from muster_sdk.errors import SaveFailed

ARRAY: Final = "muster.ndarray"
"""The only key of a mapping that stands for a NumPy array."""
PLAIN: Final = ".npz"
TORCH: Final = ".pt"


def suffix() -> str:
    """The format that this process writes."""
    return TORCH if "torch" in sys.modules else PLAIN


def state_of(name: str, value: Any) -> Any:
    """What is saved for *value*: its `state_dict()` where it has one, itself where not."""
    value = unwrapped(value)
    if hasattr(value, "state_dict"):
        return value.state_dict()
    if callable(value):
        raise SaveFailed(f"{name} cannot be saved: {value!r} has no state_dict()")
    return value


def unwrapped(value: Any) -> Any:
    """The model inside DistributedDataParallel, so that one process can resume what many saved."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.nn.parallel.DistributedDataParallel):
        return value.module
    return value


class Sink(Protocol):
    """All that writing asks of a file."""

    def write(self, block: bytes, /) -> int:
        """Write all of *block*."""

    def flush(self) -> None:
        """Pass on what is held back."""


def write(tree: Any, file: Sink) -> None:
    """Write *tree* in the format that `suffix` names."""
    if "torch" in sys.modules:
        import torch  # noqa: PLC0415 - it is there already

        torch.save(_mapped(tree, _with_tensors), file)
    else:
        _write_plain(tree, file)


def read(file: BinaryIO, name: str) -> Any:
    """What `write` wrote to the part *name*; tensors come back on the CPU."""
    if not name.endswith(TORCH):
        return _read_plain(file)
    import torch  # noqa: PLC0415 - only a script that saved with torch reads this

    tree = torch.load(file, map_location="cpu", weights_only=True)
    return _restored(tree, lambda tensor: tensor.numpy())


def bytes_of(tree: Any) -> int:
    """About how large the tree's part is: its tensors and arrays, which is nearly all of it."""
    if isinstance(tree, dict):
        return sum(bytes_of(value) for value in tree.values())
    if isinstance(tree, list | tuple):
        return sum(bytes_of(value) for value in tree)
    return int(getattr(tree, "nbytes", 0))


def unsafe_types(file: BinaryIO, name: str) -> list[str]:
    """The types in a part that `read` would refuse to build."""
    if not name.endswith(TORCH):
        return []
    import torch  # noqa: PLC0415 - this process has just written it

    return sorted(torch.serialization.get_unsafe_globals_in_checkpoint(file))


def _mapped(tree: Any, leaf: Callable[[Any, str], Any], path: str = "") -> Any:
    """*tree* with its leaves replaced; a container none of whose leaves changed stays itself.

    That keeps what torch hides in a state dict's attributes.
    """
    if isinstance(tree, dict):
        values = {key: _mapped(value, leaf, _below(path, key)) for key, value in tree.items()}
        is_same = all(values[key] is tree[key] for key in tree)
        return tree if is_same else values
    if isinstance(tree, list | tuple) and not hasattr(tree, "_fields"):
        items = [_mapped(value, leaf, f"{path}[{index}]") for index, value in enumerate(tree)]
        is_same = all(new is old for new, old in zip(items, tree, strict=True))
        return tree if is_same else type(tree)(items)
    return leaf(tree, path)


def _below(path: str, key: object) -> str:
    return f"{path}.{key}" if path else str(key)


def _restored(tree: Any, array_of: Callable[[Any], Any]) -> Any:
    if isinstance(tree, dict):
        if tree.keys() == {ARRAY}:
            return array_of(tree[ARRAY])
        for key, value in tree.items():
            tree[key] = _restored(value, array_of)
        return tree
    if isinstance(tree, list | tuple) and type(tree) in {list, tuple}:
        return type(tree)(_restored(value, array_of) for value in tree)
    return tree


def _with_tensors(value: Any, path: str) -> Any:
    """NumPy arrays as tensors, since `weights_only` reads no others."""
    numpy, torch = sys.modules["numpy"], sys.modules["torch"]
    if isinstance(value, numpy.generic):
        return value.item()
    if not isinstance(value, numpy.ndarray):
        return value
    try:
        return {ARRAY: torch.from_numpy(numpy.array(value))}
    except TypeError as error:
        raise SaveFailed(f"{path} cannot be saved: {error}") from error


def _write_plain(tree: Any, file: Sink) -> None:
    import numpy as np  # noqa: PLC0415 - not at import: scripts that save nothing need none

    arrays: dict[str, Any] = {}

    def leaf(value: Any, path: str) -> Any:
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, np.ndarray) and value.dtype != object:
            arrays[f"a{len(arrays)}"] = value
            return {ARRAY: f"a{len(arrays) - 1}"}
        if value is None or isinstance(value, bool | int | float | str):
            return value
        raise SaveFailed(
            f"{path} cannot be saved, its type is {type(value).__name__}: save numbers, text, "
            "lists, mappings or arrays"
        )

    text = json.dumps(_keyed(_mapped(tree, leaf)))
    # Through memory: `savez` wants to seek, and what has no torch is small.
    buffer = io.BytesIO()
    np.savez(buffer, tree=np.frombuffer(text.encode(), dtype=np.uint8), **arrays)
    file.write(buffer.getvalue())


def _keyed(tree: Any, path: str = "") -> Any:
    """*tree*, or `SaveFailed` where JSON would turn a key into text without a word."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            if not isinstance(key, str):
                raise SaveFailed(f"{path} has the key {key!r}: only text is kept as a key")
            _keyed(value, _below(path, key))
    elif isinstance(tree, list | tuple):
        for index, value in enumerate(tree):
            _keyed(value, f"{path}[{index}]")
    return tree


def _read_plain(file: BinaryIO) -> Any:
    import numpy as np  # noqa: PLC0415 - as above

    with np.load(io.BytesIO(file.read()), allow_pickle=False) as arrays:
        tree = json.loads(arrays["tree"].tobytes())
        return _restored(tree, lambda name: arrays[name])
