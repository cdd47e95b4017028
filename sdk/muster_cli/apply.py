"""Objects that come in a file beside a TrainingJob, applied as `kubectl apply` would.

Server-side apply with the user's own credentials: what the user may not create, the command may
not either.
"""

from collections.abc import Sequence
from typing import Any, Final

from muster.errors import InvalidSpec
from muster_cli.manifest import Document
from muster_kube import ApiError, ApiNotFound, Kube, Resource

FIELD_MANAGER: Final = "muster"


async def apply_all(kube: Kube, documents: Sequence[Document], namespace: str) -> list[str]:
    """Apply *documents*, none unless the server accepts each; give back what they are called.

    Raises `InvalidSpec` with the file and line of the one that was refused.
    """
    placed = [(document, await _resource(kube, document)) for document in documents]
    for document, resource in placed:
        await _apply(kube, document, resource, namespace, dryRun="All")
    for document, resource in placed:
        await _apply(kube, document, resource, namespace)
    return [f"{resource.plural}/{document.name}" for document, resource in placed]


async def _apply(
    kube: Kube, document: Document, resource: Resource, namespace: str, **query: str
) -> None:
    path = resource.path(document.namespace or namespace, document.name)
    try:
        await kube.patch(
            path, document.object, kind="apply", fieldManager=FIELD_MANAGER, force="true", **query
        )
    except ApiError as error:
        if error.status in {400, 422}:
            raise InvalidSpec(document.where, str(error)) from error
        raise


async def _resource(kube: Kube, document: Document) -> Resource:
    """Where objects of the document's kind live, as the server itself says."""
    api_version, kind = document.object["apiVersion"], document.object["kind"]
    group, _, version = api_version.rpartition("/")
    path = f"/apis/{api_version}" if group else f"/api/{version}"
    try:
        known: list[dict[str, Any]] = (await kube.get(path)).get("resources") or []
    except ApiNotFound:
        known = []
    for entry in known:
        if entry["kind"] == kind and "/" not in entry["name"]:
            return Resource(group, version, entry["name"], kind, bool(entry["namespaced"]))
    raise InvalidSpec(f"{document.where}: kind", f"the cluster knows no {kind} in {api_version}")
