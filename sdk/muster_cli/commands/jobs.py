"""`muster jobs`, `describe` and `cancel`."""

import asyncio
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.console import Console

from muster import wire
from muster.errors import MusterError
from muster_cli import options, output, pages
from muster_cli.commands.watching import watch_to_the_end
from muster_cli.session import Session, connect


def jobs(
    namespace: options.Namespace = None,
    every: options.AllNamespaces = False,
    output_format: options.Output = options.Format.TABLE,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """List jobs, newest first.

    Example: muster jobs -n vision -o wide
    """
    session = connect(namespace, context, kubeconfig)
    with session.api() as api:
        answer = api.jobs(None if every else session.namespace)
    columns = pages.job_columns(datetime.now(UTC), with_namespace=every)
    output.emit(
        answer,
        output_format,
        lambda console: console.print(output.table(columns, answer["items"], output_format)),
    )
    if not answer["items"] and output_format in {options.Format.TABLE, options.Format.WIDE}:
        where = "" if every else f" in namespace {session.namespace}"
        output.note(f"There are no jobs{where}; submit one with: muster submit FILE")


def describe(
    job: options.Job,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Show its progress until it has ended.")
    ] = False,
    namespace: options.Namespace = None,
    output_format: options.Output = options.Format.TABLE,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Show all about a job: state, attempts, placement, epochs, cost, events.

    Example: muster describe digits
    """
    session = connect(namespace, context, kubeconfig)
    with session.api() as api:
        if follow:
            watch_to_the_end(api, session.namespace, job)
        found = api.job(session.namespace, job)
        epochs = api.epochs(session.namespace, job)["items"]
        cost = api.cost(session.namespace, job, "epoch")
    answer = {**found, "epochs": epochs, "cost": cost}

    def page(console: Console) -> None:
        pages.job_page(
            console, found, epochs=epochs, cost=cost, events=asyncio.run(_events(session, found))
        )

    output.emit(answer, output_format, page)


def cancel(
    job: options.Job,
    namespace: options.Namespace = None,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Cancel a job: end its processes and delete it. Its history and cost stay.

    Example: muster cancel digits
    """
    session = connect(namespace, context, kubeconfig)
    with session.api() as api:
        api.cancel(session.namespace, job)
    output.note(f"{session.namespace}/{job} is cancelled")


async def _events(session: Session, job: dict[str, Any]) -> list[dict[str, Any]] | None:
    """The events of *job*; None, with a warning, where the API server does not give them."""
    if session.access is None:
        return None
    from muster_kube import EVENTS  # noqa: PLC0415 -- takes a second to import

    selector = f"involvedObject.kind=TrainingJob,involvedObject.uid={job.get('uid')}"
    try:
        async with session.kube() as kube:
            items, _ = await kube.list(
                EVENTS.path(str(job.get("namespace"))), query={"fieldSelector": selector}
            )
    except MusterError as error:
        output.warn(f"no events of {wire.GROUP}/{job.get('name')}: {error}")
        return None
    return items
