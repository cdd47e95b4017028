"""The API against a real API server, with its own account's rights: tokens, jobs, bad input."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
import pytest_asyncio

from apis import bearer, client_of, job_manifest, job_pod
from clusters import RunningCluster
from eventually import eventually
from muster import wire
from muster_api.clock import now_ms
from muster_api.cluster import KubeCluster, KubeReviewer
from muster_api.parts import Parts
from muster_db.database import Database
from muster_db.reports import ReportRepository
from muster_kube import JOBS, PODS, QUEUES, Kube

pytestmark = pytest.mark.integration

EPOCH = {"kind": "epoch", "at": "2026-12-01T09:30:00Z", "epoch": 0, "event": "start", "step": 0}
REPORT = {"attempt": 1, "replica": 0, "sequence": 1, "items": [EPOCH]}


@pytest_asyncio.fixture
async def kube(cluster: RunningCluster) -> AsyncIterator[Kube]:
    """The test's own way to the API server: it may do everything."""
    async with await Kube.connect(cluster.bootstrap_kubeconfig) as opened:
        yield opened


@pytest_asyncio.fixture
async def client(cluster: RunningCluster, database: Database) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of an API that has the rights of its account only."""
    async with await Kube.connect(cluster.kubeconfig_of("muster-api")) as account:
        parts = Parts(database, KubeCluster(account), KubeReviewer(account), now_ms)
        async with client_of(parts) as opened:
            yield opened


@pytest_asyncio.fixture
async def editor(kube: Kube, namespace: str) -> str:
    """The token of an account that may edit in the namespace."""
    await kube.create(
        f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings",
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "editor"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "edit",
            },
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": namespace}],
        },
    )
    token = await token_of(kube, namespace)

    async def may_edit() -> bool:
        spec = {"verb": "create", "group": wire.GROUP, "resource": "trainingjobs"}
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": f"system:serviceaccount:{namespace}:default",
                "resourceAttributes": {**spec, "namespace": namespace},
            },
        }
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        return bool((await kube.create(path, body))["status"]["allowed"])

    # The role is aggregated from ours by a controller.
    await eventually(may_edit)
    return token


async def token_of(
    kube: Kube, namespace: str, *, audience: str | None = None, pod: dict[str, Any] | None = None
) -> str:
    """A token of the namespace's default account, bound to *pod* as a projected one is."""
    spec: dict[str, Any] = {"expirationSeconds": 3600}
    if audience:
        spec["audiences"] = [audience]
    if pod:
        metadata = pod["metadata"]
        bound = {"name": metadata["name"], "uid": metadata["uid"]}
        spec["boundObjectRef"] = {"kind": "Pod", "apiVersion": "v1", **bound}
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token"
    return str((await kube.create(path, body))["status"]["token"])


async def submit(
    client: httpx2.AsyncClient, token: str, namespace: str, name: str = "digits", **spec: Any
) -> httpx2.Response:
    return await client.post(
        "/api/v1/jobs",
        json=job_manifest(name, **spec),
        params={"namespace": namespace},
        headers=bearer(token),
    )


async def test_a_job_is_made_for_its_user_listed_read_and_cancelled(
    client, kube, editor, namespace
) -> None:
    created = await submit(client, editor, namespace, replicas=2, gpusPerReplica=4)

    assert created.status_code == 201, created.text
    path = created.headers["Location"]
    user = f"system:serviceaccount:{namespace}:default"
    assert user == (await client.get(path, headers=bearer(editor))).json()["user"]
    listed = await client.get(f"/api/v1/jobs?namespace={namespace}", headers=bearer(editor))
    assert ["digits"] == [item["name"] for item in listed.json()["items"]]
    again = await submit(client, editor, namespace)
    assert again.status_code == 409
    cancelled = await client.delete(path, headers=bearer(editor))
    assert cancelled.status_code == 202
    assert [] == (await kube.list(JOBS.path(namespace)))[0]
    # Nobody records here, so that the row of its creation is all that is left of it.
    assert (await client.get(path, headers=bearer(editor))).json()["name"] == "digits"
    assert (await client.delete(path, headers=bearer(editor))).status_code == 404


async def test_who_may_not_is_told_so(client, cluster, kube, editor, namespace) -> None:
    other = cluster.create_namespace()
    try:
        assert (await submit(client, editor, other)).status_code == 403
        for path in (f"/api/v1/namespaces/{other}/jobs/x", "/api/v1/jobs"):
            assert (await client.get(path, headers=bearer(editor))).status_code == 403
        stranger = await token_of(kube, other)
        asked = f"/api/v1/namespaces/{namespace}/jobs/x"
        assert (await client.get(asked, headers=bearer(stranger))).status_code == 403
        assert (await client.get("/api/v1/queues", headers=bearer(stranger))).status_code == 200
    finally:
        cluster.delete_namespace(other)


async def test_tokens_that_are_not_for_us_are_no_tokens(client, kube, namespace) -> None:
    foreign = await token_of(kube, namespace, audience="somebody-else")
    reporting = await token_of(kube, namespace, audience=wire.AUDIENCE)
    for token in ("nonsense", foreign, reporting):
        answer = await client.get("/api/v1/queues", headers=bearer(token))

        assert (401, 'Bearer realm="muster"') == (
            answer.status_code,
            answer.headers["WWW-Authenticate"],
        )


BAD = {
    "no replica": ({"replicas": 0}, "spec.replicas"),
    "negative GPUs": ({"gpusPerReplica": -1}, "spec.gpusPerReplica"),
    "a minimum above the number": ({"replicas": 2, "minReplicas": 3}, "spec.minReplicas"),
    "an unknown queue": ({"queue": "red"}, "spec.queue"),
    "an unknown level": ({"topology": {"required": "moon"}}, "spec.topology.required"),
    "no container": ({"template": {"spec": {"containers": []}}}, "spec.template.spec.containers"),
    "a node of its own": (
        {"template": {"spec": {"nodeName": "n", "containers": [{"name": "t"}]}}},
        "spec.template.spec.nodeName",
    ),
    "an unknown field": ({"replicaz": 2}, "spec.replicaz"),
    "a name that is too long": ({"name": "x" * 41}, "metadata.name"),
}


async def test_bad_input_names_its_field_and_changes_nothing(
    client, kube, editor, namespace
) -> None:
    for claim, (spec, field) in BAD.items():
        answer = await submit(client, editor, namespace, **spec)

        problem = answer.json()
        assert 400 <= answer.status_code < 500, claim
        assert field in [each["field"] for each in problem["errors"]], (claim, problem)
        assert problem["detail"], claim
    assert [] == (await kube.list(JOBS.path(namespace)))[0]


async def test_a_queue_that_does_not_take_the_namespace_is_a_403(
    client, kube, editor, namespace
) -> None:
    queue = f"closed-{namespace}"
    body = {"apiVersion": wire.API_VERSION, "kind": "Queue", "metadata": {"name": queue}}
    await kube.create(QUEUES.path(), {**body, "spec": {"namespaces": ["elsewhere"]}})
    try:
        answer = await submit(client, editor, namespace, queue=queue)

        assert (403, True) == (answer.status_code, "elsewhere" in answer.json()["detail"])
    finally:
        await kube.delete(QUEUES.path(name=queue))


async def made_pod(kube: Kube, job: dict[str, Any], **place: int) -> dict[str, Any]:
    pod = job_pod(job, **place)
    pod["spec"]["nodeName"] = "nowhere"
    return await kube.create(PODS.path(job["metadata"]["namespace"]), pod)


async def test_only_a_pod_of_the_very_job_may_report(
    client, database, kube, editor, namespace
) -> None:
    await submit(client, editor, namespace)
    await submit(client, editor, namespace, "other")
    job, other = [await kube.get(JOBS.path(namespace, name)) for name in ("digits", "other")]
    own, foreign = await made_pod(kube, job), await made_pod(kube, other)
    path = f"/api/v1/namespaces/{namespace}/jobs/digits/reports"
    tokens = {
        "its own": (await token_of(kube, namespace, audience=wire.AUDIENCE, pod=own), 200),
        "a pod of another job": (
            await token_of(kube, namespace, audience=wire.AUDIENCE, pod=foreign),
            403,
        ),
        "no pod": (await token_of(kube, namespace, audience=wire.AUDIENCE), 403),
        "its own, for the API server": (await token_of(kube, namespace, pod=own), 401),
        "the user's": (editor, 401),
    }

    for claim, (token, status) in tokens.items():
        answer = await client.post(path, json=REPORT, headers=bearer(token))

        assert status == answer.status_code, (claim, answer.text)
    async with database.reading() as transaction:
        rows = await ReportRepository(transaction, job["metadata"]["uid"]).epochs()
    assert [(1, 0)] == [(row.attempt, row.epoch) for row in rows]
    later = {"status": {"phase": "Running", "attempt": 2}}
    await kube.patch(JOBS.path(namespace, "digits", "status"), later)
    late = await client.post(
        path, json={**REPORT, "sequence": 2}, headers=bearer(tokens["its own"][0])
    )
    assert late.status_code == 409
