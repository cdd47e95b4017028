"""`muster submit`."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.console import Console

from muster.errors import InvalidSpec
from muster_cli import manifest, offline, options, output, scheduling_pages
from muster_cli.commands.watching import watch_to_the_end
from muster_cli.manifest import Document
from muster_cli.session import Session, connect


def submit(
    file: Annotated[
        str, typer.Argument(help="YAML file; - is standard input.", show_default=False)
    ],
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Show its progress until it has ended.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Create nothing: say whether and where it would start, whose place it would "
            "take, and whom it would delay.",
        ),
    ] = False,
    snapshot: offline.Snapshot = None,
    namespace: options.Namespace = None,
    output_format: options.Output = options.Format.TABLE,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Submit the TrainingJob in FILE, and apply what lies beside it there.

    Everything is checked before anything is created. Other objects of the file, such as a
    ConfigMap with the script, are applied with your own rights first.

    Example: muster submit deploy/examples/digits.yaml --follow
    """
    _check_options(follow=follow, dry_run=dry_run, snapshot=snapshot)
    documents = manifest.read(file)
    jobs = [d for d in documents if d.is_job]
    others = [d for d in documents if not d.is_job]
    if not jobs:
        raise InvalidSpec(file, "there is no TrainingJob in it; kubectl apply is for the rest")
    if follow and len(jobs) > 1:
        raise InvalidSpec("--follow", f"{file} has {len(jobs)} TrainingJobs; one can be followed")
    _check_namespaces(documents, namespace)
    if snapshot is not None:
        _print_dry_runs(_tried_offline(snapshot, jobs, namespace or "default"), output_format)
        return
    session = connect(namespace, context, kubeconfig)
    if dry_run:
        _print_dry_runs(_tried(session, jobs), output_format)
        return
    with session.api() as api:
        for job in jobs:
            api.submit(job.object, namespace=job.namespace or session.namespace, dry_run=True)
        for name in _apply(session, others):
            output.note(f"{name} applied")
        created = [
            api.submit(job.object, namespace=job.namespace or session.namespace) for job in jobs
        ]
        for item in created:
            output.note(f"{item.get('namespace')}/{item.get('name')} submitted")
        if follow:
            place = created[0]["namespace"], created[0]["name"]
            watch_to_the_end(api, *place, uid=created[0].get("uid"))
            created = [api.job(*place)]
    if output_format not in {options.Format.TABLE, options.Format.WIDE}:
        output.emit({"items": created}, output_format, lambda *_: None)


def _check_options(*, follow: bool, dry_run: bool, snapshot: str | None) -> None:
    if snapshot is not None and not dry_run:
        raise InvalidSpec("--snapshot", "is for --dry-run; a file can't run anything")
    if dry_run and follow:
        raise InvalidSpec("--follow", "there is nothing to follow of a --dry-run")


def _tried(session: Session, jobs: Sequence[Document]) -> list[dict[str, Any]]:
    """What each of the jobs would do, alone."""
    with session.api() as api:
        return [
            api.dry_run(job.object, namespace=job.namespace or session.namespace) for job in jobs
        ]


def _tried_offline(
    snapshot: str, jobs: Sequence[Document], namespace: str
) -> list[dict[str, Any]]:
    """The same in a snapshot."""
    found = []
    for job in jobs:
        try:
            found.append(offline.dry_run(snapshot, job.object, job.namespace or namespace))
        except InvalidSpec as error:
            # A path in the snapshot names its file already.
            is_about_the_job = error.path.startswith(("metadata", "spec"))
            raise offline.located(job.where, error) if is_about_the_job else error from None
    return found


def _print_dry_runs(found: Sequence[dict[str, Any]], output_format: options.Format) -> None:
    """One answer as it is, several in a list; each is of its job alone."""

    def page(console: Console) -> None:
        for answer in found:
            scheduling_pages.dry_run(console, answer)

    answer = found[0] if len(found) == 1 else {"items": list(found)}
    output.emit(answer, output_format, page)


def _check_namespaces(documents: Sequence[Document], namespace: str | None) -> None:
    """A namespace in the file and another one on the command line cannot both be meant."""
    for document in documents:
        if namespace and document.namespace and document.namespace != namespace:
            raise InvalidSpec(
                f"{document.where}: metadata.namespace",
                f"is {document.namespace}, and --namespace says {namespace}",
            )


def _apply(session: Session, others: Sequence[Document]) -> list[str]:
    if not others:
        return []
    from muster_cli.apply import apply_all  # noqa: PLC0415 -- takes a second to import

    async def run() -> list[str]:
        async with session.kube() as kube:
            return await apply_all(kube, others, session.namespace)

    return asyncio.run(run())
