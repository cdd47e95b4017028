"""What `make bench` runs: every benchmark that the documents state, into one file.

    python -m muster_local.bench.record build/bench.json [cluster] [schedule] [traces]

The file holds the figures of `bench cluster` at its top, those of `bench schedule` under
`schedule` and those of `bench trace` under `traces`. A part that is not run again keeps what the
file had; what is there already is written after each part, so that little is lost by an end.
"""

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from muster.scheduling.snapshot import Order
from muster_local.bench.scheduling import run as scheduling
from muster_local.bench.scheduling.shapes import SHAPES
from muster_local.bench.shape import Shape
from muster_local.bench.traces import replay
from muster_local.bench.traces.replay import Setting
from muster_local.progress import Tell, progress

TRACES: Final = Path(__file__).parents[4] / "tests" / "bench" / "traces"
RESTART_COSTS: Final = (0.0, 30.0, 300.0)
_WEEK: Final = 7 * 86_400.0
_TENANTS: Final = TRACES / "philly-vc-nodes.csv"
_REPLAYS: Final[tuple[tuple[str, Path | None, Setting], ...]] = (
    ("muri-3", None, Setting(8, order=Order.ATTAINED_SERVICE, has_limits=False)),
    ("muri-3", None, Setting(8, order=Order.SHORTEST_REMAINING)),
    ("philly-14d", _TENANTS, Setting(64, cut=_WEEK)),
)
"""Trace, tenants and setting of each row of the documents; each with every restart cost."""


def cluster(tell: Tell) -> Iterator[dict[str, Any]]:
    """Gangs through the operator, beside bare creation."""
    from muster_local.bench.cluster import run  # noqa: PLC0415 -- brings the Kubernetes client

    yield asdict(run(Shape(nodes=500, gangs=500, gang_size=8), tell))


def schedule(tell: Tell) -> Iterator[dict[str, Any]]:
    """All shapes."""
    yield {"schedule": scheduling.run(SHAPES, tell)}


def traces(tell: Tell) -> Iterator[dict[str, Any]]:
    """Every replay; the list grows by one with each."""
    found: list[dict[str, Any]] = []
    for trace, tenants, setting in _REPLAYS:
        for cost in RESTART_COSTS:
            tell(f"{trace}, {setting.order}, {cost:g} s a restart")
            charged = replace(setting, restart_cost=cost)
            figures = replay.run(TRACES / f"{trace}.csv.gz", tenants, charged, tell)
            found.append(asdict(figures))
            yield {"traces": found}


PARTS: Final[dict[str, Callable[[Tell], Iterator[dict[str, Any]]]]] = {
    "cluster": cluster,
    "schedule": schedule,
    "traces": traces,
}


def main(path: Path, parts: list[str]) -> int:
    """Run the named parts, or all, and write what they found beside what the file has."""
    unknown = sorted(set(parts) - PARTS.keys())
    if unknown:
        sys.stderr.write(f"there is no part {unknown[0]}; there are {', '.join(PARTS)}\n")
        return 2
    figures = json.loads(path.read_text()) if path.exists() else {}
    path.parent.mkdir(parents=True, exist_ok=True)
    with progress() as tell:
        for part in parts or PARTS:
            for found in PARTS[part](tell):
                figures |= found
                path.write_text(json.dumps(figures, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
