"""`muster nodes`."""

from muster_cli import offline, options, output, scheduling_pages
from muster_cli.session import connect


def nodes(
    snapshot: offline.Snapshot = None,
    output_format: options.Output = options.Format.TABLE,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Show the nodes by topology: free and held GPUs, and those that nobody who waits can use.

    Example: muster nodes
    """
    if snapshot is not None:
        answer = offline.nodes(snapshot)
    else:
        with connect(None, context, kubeconfig).api() as api:
            answer = api.nodes()
    output.emit(
        answer,
        output_format,
        lambda console: scheduling_pages.nodes(console, answer, output_format),
    )
