"""Traces and tenants' quotas, read from their files.

A trace has a header line and the columns `job_id, submit_s, duration_s, num_gpus`; further ones
are ignored, but for `tenant`. Tenants have two columns: the tenant, and its nodes.
"""

import csv
import gzip
import io
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from muster.errors import InvalidSpec, NotFound

COLUMNS: Final = ("job_id", "submit_s", "duration_s", "num_gpus")
_GZIP: Final = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class TraceJob:
    """One line of a trace."""

    job_id: str
    submitted: float
    """Seconds on the clock of the trace."""
    seconds: float
    """How long it runs when it is left alone."""
    gpus: int
    tenant: str = ""


def read_trace(path: Path) -> tuple[TraceJob, ...]:
    """The jobs of a trace, by submission. Raises `InvalidSpec` with the line and the column."""
    reader = csv.DictReader(io.StringIO(_text(path)))
    missing = [column for column in COLUMNS if column not in (reader.fieldnames or ())]
    if missing:
        raise InvalidSpec(
            f"{path}, line 1", f"has no column {missing[0]}; a trace needs {', '.join(COLUMNS)}"
        )
    jobs = [_job(row, f"{path}, line {reader.line_num}") for row in reader]
    if not jobs:
        raise InvalidSpec(str(path), "has no jobs")
    _refuse_twice((job.job_id for job in jobs), f"{path}, job_id")
    return tuple(sorted(jobs, key=lambda job: job.submitted))


def read_tenants(path: Path) -> dict[str, int]:
    """Nodes by tenant, in the order of the file. Raises `InvalidSpec` with the line."""
    rows = [row for row in csv.reader(io.StringIO(_text(path))) if row][1:]
    nodes = {}
    for line, row in enumerate(rows, 2):
        if len(row) != 2 or not row[1].strip().isdigit():
            raise InvalidSpec(
                f"{path}, line {line}", "must be a tenant and its number of nodes, as in a,16"
            )
        nodes[row[0].strip()] = int(row[1])
    if not sum(nodes.values()):
        raise InvalidSpec(str(path), "has no tenant with nodes")
    _refuse_twice((row[0].strip() for row in rows), f"{path}, tenant")
    return nodes


def quotas(nodes: Mapping[str, int], gpus: int) -> dict[str, int]:
    """*gpus* dealt out in proportion to the nodes of each tenant, none left (largest remainder).

    Of equal remainders the first tenant's counts first.
    """
    whole = sum(nodes.values())
    dealt = {tenant: gpus * number // whole for tenant, number in nodes.items()}
    remainders = sorted(nodes, key=lambda tenant: -(gpus * nodes[tenant] % whole))
    for tenant in remainders[: gpus - sum(dealt.values())]:
        dealt[tenant] += 1
    return dealt


def _text(path: Path) -> str:
    try:
        content = path.read_bytes()
        if content.startswith(_GZIP):
            content = gzip.decompress(content)
        return content.decode()
    except FileNotFoundError as error:
        raise NotFound(f"{path} does not exist") from error
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InvalidSpec(
            str(path), f"is no csv or csv.gz file that can be read: {error}"
        ) from error


def _job(row: Mapping[str, str | None], where: str) -> TraceJob:
    submitted = _number(row, "submit_s", where)
    seconds = _number(row, "duration_s", where)
    gpus = _number(row, "num_gpus", where)
    if gpus < 1 or gpus != int(gpus):
        raise InvalidSpec(f"{where}, num_gpus", f"must be a whole number from 1, is {gpus:g}")
    return TraceJob(row["job_id"] or "", submitted, seconds, int(gpus), row.get("tenant") or "")


def _number(row: Mapping[str, str | None], column: str, where: str) -> float:
    text = row[column]
    try:
        number = float(text or "")
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise InvalidSpec(f"{where}, {column}", f"must be a number from 0, is {text!r}")
    return number


def _refuse_twice(names: Iterable[str], where: str) -> None:
    seen = set()
    for name in names:
        if name in seen:
            raise InvalidSpec(where, f"{name!r} is there twice")
        seen.add(name)
