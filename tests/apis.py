"""Muster's API in the test's own process, with a pretended or a real API server behind it."""

import copy
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2

from muster import wire
from muster_api.app import create_app
from muster_api.auth import Access, Identity
from muster_api.parts import Parts
from muster_db.database import Database
from muster_kube import AlreadyExists, ApiNotFound

Json = dict[str, Any]
NOW_MS = 1_796_117_400_000


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self, now_ms: int = NOW_MS) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms

    def pass_seconds(self, seconds: float) -> None:
        self.now_ms += int(seconds * 1000)


@dataclass
class PretendedReviewer:
    """Knows tokens by heart: (token, audience) to identity, and who may do what."""

    identities: dict[tuple[str, str | None], Identity] = field(default_factory=dict)
    allowed: set[tuple[str, str, str, str]] = field(default_factory=set)
    """(user, verb, resource, namespace)."""
    reviews: int = 0
    accesses: int = 0

    async def review(self, token: str, audience: str | None) -> Identity | None:
        self.reviews += 1
        return self.identities.get((token, audience))

    async def allows(self, identity: Identity, access: Access) -> bool:
        self.accesses += 1
        asked = (identity.username, access.verb, access.resource, access.namespace)
        return asked in self.allowed

    def know(self, user: str, *namespaces: str) -> str:
        """A token of *user*, who may do everything with jobs in *namespaces*."""
        token = f"token-of-{user}"
        self.identities[token, None] = Identity(user)
        for namespace in namespaces:
            for verb in ("create", "list", "get", "delete"):
                self.allowed.add((user, verb, "trainingjobs", namespace))
        self.allowed.add((user, "list", "queues", ""))
        return token

    def know_pod(self, namespace: str, name: str, uid: str) -> str:
        """The reporting token of a pod."""
        token = f"token-of-pod-{uid}"
        self.identities[token, wire.AUDIENCE] = Identity(
            f"system:serviceaccount:{namespace}:default",
            extra={
                "authentication.kubernetes.io/pod-name": (name,),
                "authentication.kubernetes.io/pod-uid": (uid,),
            },
        )
        return token


@dataclass
class PretendedCluster:
    """Holds objects in a dictionary, and fills in what an API server would."""

    jobs: dict[tuple[str, str], Json] = field(default_factory=dict)
    pods: dict[tuple[str, str], Json] = field(default_factory=dict)
    named_queues: dict[str, Json] = field(default_factory=dict)
    levels: list[Json] = field(default_factory=list)
    broken: dict[str, Exception] = field(default_factory=dict)
    """What each of our methods raises."""
    numbers: Any = field(default_factory=lambda: itertools.count(1))

    async def job(self, namespace: str, name: str) -> Json:
        return _found(self.jobs, (namespace, name))

    async def create_job(self, namespace: str, job: Json, *, is_dry_run: bool) -> Json:
        self._break("create_job")
        created = copy.deepcopy(job)
        name = created["metadata"]["name"]
        if (namespace, name) in self.jobs:
            raise AlreadyExists(f'trainingjobs "{name}" already exists', status=409)
        created["metadata"] |= {
            "uid": f"uid-{next(self.numbers):04}",
            "generation": 1,
            "creationTimestamp": "2026-12-01T09:30:00Z",
        }
        if not is_dry_run:
            self.jobs[namespace, name] = created
        return created

    async def delete_job(self, namespace: str, name: str, uid: str) -> None:
        job = _found(self.jobs, (namespace, name))
        assert uid == job["metadata"]["uid"]
        job["metadata"]["deletionTimestamp"] = "2026-12-01T09:40:00Z"

    async def pod(self, namespace: str, name: str) -> Json:
        return _found(self.pods, (namespace, name))

    async def queue(self, name: str) -> Json:
        return _found(self.named_queues, name)

    async def queues(self) -> list[Json]:
        return list(self.named_queues.values())

    async def topology(self) -> Json:
        return {"metadata": {"name": "default"}, "spec": {"levels": self.levels}}

    async def ping(self) -> None:
        self._break("ping")

    def _break(self, method: str) -> None:
        if method in self.broken:
            raise self.broken[method]

    def add_queue(self, name: str, **spec: Any) -> None:
        self.named_queues[name] = {"metadata": {"name": name}, "spec": spec}


def _found(objects: dict[Any, Json], key: Any) -> Json:
    if key not in objects:
        raise ApiNotFound(f"{key} not found", status=404)
    return objects[key]


def job_manifest(name: str = "digits", **spec: Any) -> Json:
    """A TrainingJob as a user writes it."""
    pod = {"spec": {"containers": [{"name": "train", "image": "team/digits:1"}]}}
    return {
        "apiVersion": wire.API_VERSION,
        "kind": "TrainingJob",
        "metadata": {"name": name},
        "spec": {"queue": "default", "template": pod, **spec},
    }


def job_pod(job: Json, *, attempt: int = 1, replica: int = 0, incarnation: int = 0) -> Json:
    """The pod of a replica, as the operator makes it."""
    metadata = job["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": wire.pod_name(metadata["name"], attempt, replica, incarnation),
            "namespace": metadata["namespace"],
            "labels": {
                wire.LABEL_JOB: metadata["name"],
                wire.LABEL_ATTEMPT: str(attempt),
                wire.LABEL_REPLICA: str(replica),
            },
            "ownerReferences": [
                {
                    "apiVersion": wire.API_VERSION,
                    "kind": "TrainingJob",
                    "name": metadata["name"],
                    "uid": metadata["uid"],
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "nodeName": f"node-{replica}",
            "containers": [{"name": "train", "image": "team/digits:1"}],
            "terminationGracePeriodSeconds": 1,
        },
    }


@asynccontextmanager
async def client_of(parts: Parts) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of an API made of *parts*, without a network in between."""
    # A defect is to be seen as its callers see it: as a 500.
    transport = httpx2.ASGITransport(create_app(parts), raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://muster") as client:
        yield client


def bearer(token: str) -> dict[str, str]:
    """The header with *token*."""
    return {"Authorization": f"Bearer {token}"}


@dataclass
class PretendedPlatform:
    """An API over a real database, with the rest pretended."""

    database: Database
    cluster: PretendedCluster = field(default_factory=PretendedCluster)
    reviewer: PretendedReviewer = field(default_factory=PretendedReviewer)
    clock: Clock = field(default_factory=Clock)

    @property
    def parts(self) -> Parts:
        return Parts(self.database, self.cluster, self.reviewer, self.clock)
