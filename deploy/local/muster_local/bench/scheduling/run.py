"""Runs the shapes one after the other, each in a process of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from typing import Any, Final

from muster.errors import Unavailable
from muster_local.bench.scheduling.shapes import TENTH
from muster_local.progress import Tell

_ONE_THREAD: Final = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


def run(shapes: Iterable[str], tell: Tell) -> dict[str, list[dict[str, Any]]]:
    """What `muster bench schedule -o json` prints. Raises `Unavailable` when a shape fails."""
    found = []
    for shape in shapes:
        tell(f"{shape}, a tenth of it")
        tenth = _child(shape, TENTH)
        tell(shape)
        figures = _child(shape, 1)
        # The contract's keys, then what only some shapes have.
        found.append({"shape": shape, **figures, "tenth_mean_ms": tenth["mean_ms"]})
    return {"shapes": found}


def _child(shape: str, part: int) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "muster_local.bench.scheduling", shape, str(part)],
        env=os.environ | _ONE_THREAD,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        raise Unavailable(f"the shape {shape} could not be measured: {last[0]}")
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures
