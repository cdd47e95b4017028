"""Tables of the figures in `build/bench.json`, put where the documents have their marks.

    python -m muster_local.bench.tables build/bench.json README.md docs/benchmarks.md

A table stands between `<!-- bench:NAME -->` and `<!-- /bench:NAME -->`; nothing else of a page is
touched, and no figure in one is typed by hand. A table without figures in the file is left as it
is.
"""

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from muster_local.bench.published import SHAPES, TRACES

_Figures = Mapping[str, Any]
_MARK: Final = re.compile(r"(<!-- bench:(\w+) -->\n).*?(<!-- /bench:\2 -->)", re.DOTALL)


def schedule(figures: _Figures) -> str:
    """The shapes beside what others published."""
    return _table(
        ("shape", "others", "ours, mean", "p99", "at a tenth", "growth", "peak memory"),
        (_shape(shape) for shape in figures["schedule"]["shapes"]),
    )


def _shape(shape: _Figures) -> Iterator[str]:
    row = SHAPES[shape["shape"]]
    yield f"{row.what} (`{shape['shape']}`)"
    yield row.others
    yield _millis(shape["mean_ms"]) + _rate(shape)
    yield _millis(shape["p99_ms"]) if shape["decisions"] > 1 else "–"
    yield _millis(shape["tenth_mean_ms"])
    yield f"× {shape['mean_ms'] / shape['tenth_mean_ms']:.1f}" if shape["tenth_mean_ms"] else "–"
    yield f"{shape['peak_rss_mb']:.0f} MB"


def _rate(shape: _Figures) -> str:
    if "workloads_per_second" not in shape:
        return ""
    rate, use = shape["workloads_per_second"], shape["quota_use"]
    return f", {rate:,.0f} workloads/s, quota use {100 * use:.0f} %"


def traces(figures: _Figures) -> str:
    """The replays beside what others published."""
    return _table(
        (
            "trace",
            "restart",
            "others",
            "mean completion",
            "wait, all",
            "wait, 8+ GPUs",
            "evictions",
        ),
        (_replay(replay) for replay in figures["traces"]),
    )


def _replay(replay: _Figures) -> Iterator[str]:
    told = "limits declared" if replay["limits"] == "declared" else "no limits declared"
    number = len(replay["tenants"])
    tenants = f", {number} tenant{'s' * (number > 1)}" if number else ""
    nodes = f"{replay['nodes']} × {replay['gpus']} GPUs"
    yield f"`{replay['trace']}`, {nodes}{tenants}, `{replay['order']}`, {told}"
    yield f"{replay['restart_cost_s']:g} s"
    yield TRACES.get((replay["trace"], replay["order"]), "–")
    yield f"{replay['mean_jct_s']:,.0f} s"
    yield f"{replay['mean_wait_s']:,.0f} s"
    yield f"{replay['mean_wait_8gpu_s']:,.0f} s"
    yield f"{replay['preemptions']:,}"


def tenants(figures: _Figures) -> str:
    """Each tenant in the shared cluster beside itself alone, at 30 s a restart."""
    replay = next(r for r in figures["traces"] if r["tenants"] and r["restart_cost_s"] == 30)
    return _table(
        ("tenant", "jobs", "quota", "waits", "alone it waits", "evictions", "why longer"),
        (_tenant(tenant) for tenant in replay["tenants"]),
    )


def _tenant(tenant: _Figures) -> Iterator[str]:
    beyond = tenant["beyond_quota"]
    yield f"`{tenant['tenant']}`"
    yield f"{tenant['jobs']:,}" + (f" ({beyond} beyond its quota)" if beyond else "")
    yield f"{tenant['quota_gpus']} GPUs"
    yield f"{tenant['mean_wait_s']:,.0f} s"
    yield f"{tenant['alone_mean_wait_s']:,.0f} s"
    yield f"{tenant['preemptions']:,}"
    yield tenant["reason"] or "–"


TABLES: Final[Mapping[str, Callable[[_Figures], str]]] = {
    "schedule": schedule,
    "traces": traces,
    "tenants": tenants,
}


def filled(page: str, figures: _Figures) -> str:
    """A page with every table made anew of which the file has the figures."""

    def fill(found: re.Match[str]) -> str:
        start, name, end = found.groups()
        try:
            return f"{start}{TABLES[name](figures)}{end}"
        except (KeyError, StopIteration):
            return found.group()

    return _MARK.sub(fill, page)


def _table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    columns = list(columns)
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _millis(milliseconds: float) -> str:
    """With three digits that count, in the unit that is read best."""
    if milliseconds >= 1_000:
        return f"{milliseconds / 1_000:.3g} s"
    return f"{milliseconds:.3g} ms"


def main(source: Path, pages: Iterable[Path]) -> None:
    """Fill the marks of the pages from the file."""
    figures = json.loads(source.read_text())
    for page in pages:
        page.write_text(filled(page.read_text(), figures))


if __name__ == "__main__":
    main(Path(sys.argv[1]), map(Path, sys.argv[2:]))
