"""The state of every random number generator that a training script is likely to draw from.

Saved with each checkpoint by each rank, so that a resumed run draws what the uninterrupted one
would have drawn. Nothing in the SDK draws from these generators itself.
"""

import random
import sys
from collections.abc import Mapping
from typing import Any


def captured() -> dict[str, Any]:
    """The generators' state, as plain values, arrays and tensors."""
    version, words, gauss = random.getstate()
    state: dict[str, Any] = {"python": [version, list(words), gauss]}
    if (numpy := sys.modules.get("numpy")) is not None:
        name, keys, *rest = numpy.random.get_state()
        state["numpy"] = [name, keys, *rest]
    if (torch := sys.modules.get("torch")) is not None:
        state["torch"] = torch.get_rng_state()
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            state["cuda"] = torch.cuda.get_rng_state()
    return state


def reinstate(state: Mapping[str, Any]) -> None:
    """Set the generators to what `captured` gave, as far as they are in this process."""
    version, words, gauss = state["python"]
    random.setstate((version, tuple(words), gauss))
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if numpy is not None and "numpy" in state:
        numpy.random.set_state(tuple(state["numpy"]))
    if torch is not None and "torch" in state:
        torch.set_rng_state(state["torch"])
        if "cuda" in state and torch.cuda.is_available():
            torch.cuda.set_rng_state(state["cuda"])
