"""`muster logs`."""

import asyncio
import sys
from collections.abc import Callable
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from muster.errors import InvalidSpec
from muster_cli import options
from muster_cli.session import Session, connect

_COLOURS = ("cyan", "green", "magenta", "yellow", "blue", "red")


def logs(
    job: options.Job,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Go on, over restarts, until the job has ended.")
    ] = False,
    rank: Annotated[
        int | None, typer.Option("--rank", min=0, help="Only the replica that runs this rank.")
    ] = None,
    replica: Annotated[
        int | None, typer.Option("--replica", min=0, help="Only this replica.")
    ] = None,
    attempt: Annotated[
        int | None, typer.Option("--attempt", min=1, help="This attempt; the newest if not given.")
    ] = None,
    namespace: options.Namespace = None,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Print what the replicas of a job print, each line with the number of its replica.

    Example: muster logs digits -f --rank 0
    """
    if rank is not None and replica is not None:
        raise InvalidSpec("--rank", "names a replica already; leave --replica away")
    session = connect(namespace, context, kubeconfig)
    asyncio.run(_logs(session, job, follow=follow, rank=rank, replica=replica, attempt=attempt))


async def _logs(
    session: Session,
    job: str,
    *,
    follow: bool,
    rank: int | None,
    replica: int | None,
    attempt: int | None,
) -> None:
    from muster_cli import logs as reading  # noqa: PLC0415 -- takes a second to import

    async with session.kube() as kube:
        found = await reading.read_job(kube, session.namespace, job)
        if rank is not None:
            replica = reading.replica_of_rank(found, rank)
        selection = reading.Selection(replica, attempt)
        is_one = replica is not None or found["spec"]["replicas"] == 1
        read = reading.follow_logs if follow else reading.print_logs
        await read(kube, session.namespace, job, selection, _writer(is_one=is_one))


def _writer(*, is_one: bool) -> Callable[[int, int, str], None]:
    """Writes lines to standard output, prefixed with the replica unless there *is_one*."""
    if is_one:
        return lambda _attempt, _replica, line: _plain(line)
    if not sys.stdout.isatty():
        return lambda _attempt, replica, line: _plain(f"[{replica}] {line}")
    console = Console(highlight=False, soft_wrap=True)

    def coloured(_attempt: int, replica: int, line: str) -> None:
        prefix = Text(f"[{replica}] ", style=_COLOURS[replica % len(_COLOURS)])
        console.print(prefix + Text.from_ansi(line))

    return coloured


def _plain(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
