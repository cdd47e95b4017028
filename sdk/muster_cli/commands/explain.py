"""`muster explain`."""

from muster_cli import offline, options, output, scheduling_pages
from muster_cli.session import connect


def explain(
    job: options.Job,
    snapshot: offline.Snapshot = None,
    namespace: options.Namespace = None,
    output_format: options.Output = options.Format.TABLE,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Say why a job waits, when it will start, and what would start it now.

    Each change was tried by the scheduler itself on a copy of the cluster.

    Example: muster explain digits
    """
    if snapshot is not None:
        answer = offline.explain(snapshot, namespace or "default", job)
    else:
        session = connect(namespace, context, kubeconfig)
        with session.api() as api:
            answer = api.explain(session.namespace, job)
    output.emit(
        answer, output_format, lambda console: scheduling_pages.explanation(console, answer)
    )
