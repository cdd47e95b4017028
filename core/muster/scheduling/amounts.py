"""Amounts of what a node has and a pod takes, as rows of integer arrays.

A fit is a vector: GPUs alone do not decide. One column is one node.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from muster.scheduling.snapshot import Needs, Node

Amounts = npt.NDArray[np.int64]

GPUS: Final = 0
CPU: Final = 1
MEMORY: Final = 2
PODS: Final = 3
RESOURCES: Final = 4

UNBOUNDED: Final = 1 << 60
"""Stands for an amount that does not bind; what is held can be subtracted from it without harm."""


def taken_by(needs: Needs) -> tuple[int, int, int, int]:
    """What one pod takes, a pod slot included."""
    return (needs.gpus, needs.cpu_millis, needs.memory_bytes, 1)


def capacity_of(node: Node) -> tuple[int, int, int, int]:
    """What a node has, with nothing running on it."""
    return (
        node.gpus,
        UNBOUNDED if node.cpu_millis is None else node.cpu_millis,
        UNBOUNDED if node.memory_bytes is None else node.memory_bytes,
        UNBOUNDED if node.pods is None else node.pods,
    )
