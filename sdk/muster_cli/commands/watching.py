"""Following a job to its end, which several commands offer."""

from muster_cli import follow, output
from muster_cli.errors import Failed


def watch_to_the_end(
    reader: follow.Reader, namespace: str, name: str, *, uid: str | None = None
) -> None:
    """Show the job on standard error until it has ended; raise `Failed` if it did not succeed."""
    with follow.display(output.stderr()) as display:
        for state in follow.states(reader, namespace, name, uid=uid):
            display.show(state)
    if state.phase != "Succeeded":
        raise Failed(
            f"{namespace}/{name} ended as {state.phase}: "
            f"{state.job.get('message') or state.job.get('reason') or 'no reason given'}; "
            f"see: muster logs {name} -n {namespace}"
        )
