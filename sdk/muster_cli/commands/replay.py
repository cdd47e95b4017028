"""`muster snapshot` and `muster replay`."""

import sys
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from muster.errors import InvalidSpec
from muster_cli import offline, options, output, scheduling_pages
from muster_cli.errors import Failed
from muster_cli.session import connect


def snapshot(
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Print what the scheduler sees, as JSON: for --snapshot, for replay, and for a bug report.

    It names the jobs, users and queues of all namespaces, and none of their templates, environment
    or secrets. For administrators: who may `get snapshots.muster.dev`.

    Example: muster snapshot > snapshot.json
    """
    with connect(None, context, kubeconfig).api() as api:
        text = api.snapshot()
    sys.stdout.write(text.decode() + "\n")


def replay(
    decision: Annotated[
        str,
        typer.Argument(
            metavar="FILE|DECISION-ID",
            help="A file of `muster snapshot` or of a decision (- is standard input), or the id "
            "of a decision that the operator has kept.",
            show_default=False,
        ),
    ],
    output_format: options.Output = options.Format.TABLE,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Plan again from the stored inputs alone; exit 1 if the plan differs from the recorded one.

    A snapshot has no recorded plan: its plan is printed.

    Example: muster replay 20261201T093001.500000-3f9a
    """
    from muster.scheduling import archive  # noqa: PLC0415 -- numpy is slow to import

    is_file = decision == "-" or Path(decision).exists() or "/" in decision
    if is_file:
        text = offline.read(decision)
    else:
        with connect(None, context, kubeconfig).api() as api:
            text = api.decision(decision)
    try:
        found = archive.loads_any(text)
    except InvalidSpec as error:
        raise offline.located(decision, error) from error
    if isinstance(found, archive.Record):
        id_, inputs, before = found.id, found.inputs, archive.dumps_plan(found.plan)
    else:
        id_, inputs, before = None, found, None
    written = archive.dumps_plan(archive.planned(inputs))
    answer: dict[str, Any] = {
        "id": id_,
        "now": inputs.now,
        "same": None if before is None else before == written,
        "plan": orjson.loads(written),
    }
    if before is not None and before != written:
        answer["recorded"] = orjson.loads(before)
    output.emit(answer, output_format, lambda console: scheduling_pages.plan(console, answer))
    if answer["same"] is False:
        raise Failed(f"{decision}: {scheduling_pages.first_difference(answer)}")
