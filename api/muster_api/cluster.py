"""The API server, as the API and its reviews need it."""

from collections.abc import Mapping
from typing import Any, Protocol

from muster import wire
from muster_api.auth import Access, Identity
from muster_kube import JOBS, PODS, QUEUES, TOPOLOGIES, Kube

Json = dict[str, Any]

_TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
_ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class Cluster(Protocol):
    """The objects that the API reads and writes. What is missing raises `ApiNotFound`."""

    async def job(self, namespace: str, name: str) -> Json:
        """A TrainingJob."""

    async def create_job(self, namespace: str, job: Json, *, is_dry_run: bool) -> Json:
        """Create a TrainingJob, or only ask the API server whether it would."""

    async def delete_job(self, namespace: str, name: str, uid: str) -> None:
        """Delete this very TrainingJob."""

    async def pod(self, namespace: str, name: str) -> Json:
        """A pod."""

    async def queue(self, name: str) -> Json:
        """A queue."""

    async def queues(self) -> list[Json]:
        """All queues."""

    async def topology(self) -> Json:
        """The levels of this cluster."""

    async def ping(self) -> None:
        """Raise an `ApiError` unless the API server answers."""


class KubeCluster:
    """The real one, with the API's own account."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube

    async def job(self, namespace: str, name: str) -> Json:
        """A TrainingJob."""
        return await self._kube.get(JOBS.path(namespace, name))

    async def create_job(self, namespace: str, job: Json, *, is_dry_run: bool) -> Json:
        """Create a TrainingJob, or only ask; unknown fields are refused, as kubectl does."""
        query = {"fieldValidation": "Strict"} | ({"dryRun": "All"} if is_dry_run else {})
        return await self._kube.create(JOBS.path(namespace), job, **query)

    async def delete_job(self, namespace: str, name: str, uid: str) -> None:
        """Delete this very TrainingJob."""
        await self._kube.delete(JOBS.path(namespace, name), uid=uid, propagation="Background")

    async def pod(self, namespace: str, name: str) -> Json:
        """A pod."""
        return await self._kube.get(PODS.path(namespace, name))

    async def queue(self, name: str) -> Json:
        """A queue."""
        return await self._kube.get(QUEUES.path(name=name))

    async def queues(self) -> list[Json]:
        """All queues."""
        return (await self._kube.list(QUEUES.path()))[0]

    async def topology(self) -> Json:
        """The levels of this cluster."""
        return await self._kube.get(TOPOLOGIES.path(name=wire.DEFAULT_TOPOLOGY))

    async def ping(self) -> None:
        """Raise an `ApiError` unless the API server answers."""
        await self._kube.request("GET", "/version", timeout_seconds=5)


class KubeReviewer:
    """Asks the API server whose a token is, and what somebody may do."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube

    async def review(self, token: str, audience: str | None) -> Identity | None:
        """Whose token it is, for *audience* or else the API server's own; None if not valid."""
        spec: Json = {"token": token} | ({"audiences": [audience]} if audience else {})
        status = await self._ask(_TOKEN_REVIEWS, "authentication.k8s.io/v1", "TokenReview", spec)
        if not status.get("authenticated"):
            return None
        # An authenticator that knows no audiences answers without them; its tokens are for nobody
        # in particular, and certainly not for reports.
        if audience and audience not in (status.get("audiences") or ()):
            return None
        user = status.get("user") or {}
        return Identity(
            username=str(user.get("username") or ""),
            uid=str(user.get("uid") or ""),
            groups=tuple(user.get("groups") or ()),
            extra={key: tuple(values) for key, values in (user.get("extra") or {}).items()},
        )

    async def allows(self, identity: Identity, access: Access) -> bool:
        """Whether *identity* may do it."""
        spec = {
            "user": identity.username,
            "uid": identity.uid,
            "groups": list(identity.groups),
            "extra": {key: list(values) for key, values in identity.extra.items()},
            "resourceAttributes": {
                "verb": access.verb,
                "group": access.group,
                "resource": access.resource,
                "namespace": access.namespace,
                "name": access.name,
            },
        }
        status = await self._ask(
            _ACCESS_REVIEWS, "authorization.k8s.io/v1", "SubjectAccessReview", spec
        )
        return bool(status.get("allowed"))

    async def _ask(self, path: str, api_version: str, kind: str, spec: Mapping[str, Any]) -> Json:
        body = {"apiVersion": api_version, "kind": kind, "spec": spec}
        status: Json = (await self._kube.create(path, body)).get("status") or {}
        return status
