"""`muster queues`."""

from muster_cli import offline, options, output, scheduling_pages
from muster_cli.session import connect


def queues(
    snapshot: offline.Snapshot = None,
    output_format: options.Output = options.Format.TABLE,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Show the tree of queues: what each is guaranteed, may use, uses, waits for and borrows.

    Example: muster queues -o wide
    """
    if snapshot is not None:
        answer = offline.queues(snapshot)
    else:
        with connect(None, context, kubeconfig).api() as api:
            answer = api.queues()
    output.emit(
        answer,
        output_format,
        lambda console: console.print(
            output.table(scheduling_pages.QUEUE_COLUMNS, answer["items"], output_format)
        ),
    )
