"""`muster submit`."""

import asyncio
from collections.abc import Sequence
from typing import Annotated

import typer

from muster.errors import InvalidSpec
from muster_cli import manifest, options, output
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
    documents = manifest.read(file)
    jobs = [d for d in documents if d.is_job]
    others = [d for d in documents if not d.is_job]
    if not jobs:
        raise InvalidSpec(file, "there is no TrainingJob in it; kubectl apply is for the rest")
    if follow and len(jobs) > 1:
        raise InvalidSpec("--follow", f"{file} has {len(jobs)} TrainingJobs; one can be followed")
    session = connect(namespace, context, kubeconfig)
    _check_namespaces(documents, namespace)
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
