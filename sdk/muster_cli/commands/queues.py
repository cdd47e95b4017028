"""`muster queues`."""

from muster_cli import options, output, pages
from muster_cli.session import connect


def queues(
    output_format: options.Output = options.Format.TABLE,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """List the queues, with what they may use and do use.

    Example: muster queues -o json
    """
    session = connect(None, context, kubeconfig)
    with session.api() as api:
        answer = api.queues()
    output.emit(
        answer,
        output_format,
        lambda console: console.print(
            output.table(pages.QUEUE_COLUMNS, answer["items"], output_format)
        ),
    )
