"""`muster cost`."""

from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.console import Console

from muster.errors import InvalidSpec
from muster.money import usd
from muster_cli import options, output, pages
from muster_cli.output import Column
from muster_cli.session import connect


class By(StrEnum):
    """What the lines of a cost are for."""

    EPOCH = "epoch"
    ATTEMPT = "attempt"


def cost(
    job: Annotated[
        str | None,
        typer.Argument(help="Name of the TrainingJob; all of the namespace if not given."),
    ] = None,
    by: Annotated[By, typer.Option("--by", help="What each line is for.")] = By.EPOCH,
    namespace: options.Namespace = None,
    output_format: options.Output = options.Format.TABLE,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Show what a job cost, epoch by epoch, with start-up and restarts apart.

    The lines add up to the total exactly.

    Example: muster cost digits --by attempt
    """
    session = connect(namespace, context, kubeconfig)
    with session.api() as api:
        if job is None:
            if by is not By.EPOCH:
                raise InvalidSpec("--by", "says how to split the cost of one JOB; name it")
            answer = _all(api.jobs(session.namespace)["items"])
        else:
            answer = api.cost(session.namespace, job, by.value)

    def page(console: Console) -> None:
        if job is None:
            _page_of_all(console, answer)
        else:
            pages.cost_page(console, answer, by_attempt=by is By.ATTEMPT)

    output.emit(answer, output_format, page)


def _all(jobs: list[dict[str, Any]]) -> dict[str, Any]:
    items = [
        {key: item.get(key) for key in ("namespace", "name", "phase", "cost_micro_usd")}
        for item in jobs
    ]
    return {"total_micro_usd": sum(i["cost_micro_usd"] or 0 for i in items), "items": items}


def _page_of_all(console: Console, answer: dict[str, Any]) -> None:
    drawn = output.table(
        (
            Column("NAME", output.text("name")),
            Column("PHASE", output.phase),
            Column("COST", lambda item: usd(item["cost_micro_usd"]), is_number=True),
        ),
        answer["items"],
    )
    drawn.add_section()
    drawn.add_row("total", "", usd(answer["total_micro_usd"]), style="bold")
    console.print(drawn)
