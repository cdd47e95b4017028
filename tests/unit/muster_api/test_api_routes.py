"""Routes over a real database, with a pretended API server: statuses, bodies and problems."""

from typing import Any

import httpx2
import orjson
import pytest
import yaml

from apis import bearer, job_manifest
from muster_api.limits import MOST_BYTES
from muster_kube import ApiError, ApiUnreachable, Invalid, TooManyRequests

PROBLEM = "application/problem+json"


async def submitted(client: httpx2.AsyncClient, token: str, **spec: Any) -> httpx2.Response:
    return await client.post(
        "/api/v1/jobs", json=job_manifest(**spec), params={"namespace": "a"}, headers=bearer(token)
    )


async def test_a_job_that_was_submitted_is_listed_and_read_at_once(client, platform) -> None:
    ada = platform.reviewer.know("ada", "a")

    created = await submitted(client, ada, replicas=2, gpusPerReplica=8)

    assert created.status_code == 201
    assert created.headers["Location"] == "/api/v1/namespaces/a/jobs/digits"
    read = (await client.get(created.headers["Location"], headers=bearer(ada))).json()
    listed = await client.get("/api/v1/jobs", params={"namespace": "a"}, headers=bearer(ada))
    (item,) = listed.json()["items"]
    want = {
        "namespace": "a",
        "name": "digits",
        "queue": "default",
        "phase": "Pending",
        "replicas": 2,
        "gpus": 16,
        "attempt": 0,
        "user": "ada",
        "submitted": "2026-12-01T09:30:00Z",
        "started": None,
        "finished": None,
        "progress": {"epoch": None, "step": None, "eta": None},
        "cost_micro_usd": 0,
    }
    assert want.items() <= item.items()
    assert want.items() <= read.items()


async def test_yaml_is_taken_as_well(client, platform) -> None:
    ada = platform.reviewer.know("ada", "a")
    manifest = job_manifest()
    manifest["metadata"]["namespace"] = "a"

    created = await client.post(
        "/api/v1/jobs",
        content=yaml.safe_dump(manifest),
        headers={**bearer(ada), "Content-Type": "application/yaml"},
    )

    assert (201, "a") == (created.status_code, created.json()["namespace"])


async def test_a_dry_run_leaves_nothing(client, platform) -> None:
    ada = platform.reviewer.know("ada", "a")

    tried = await client.post(
        "/api/v1/jobs",
        json=job_manifest(),
        params={"namespace": "a", "dryRun": "true"},
        headers=bearer(ada),
    )

    assert (200, {}) == (tried.status_code, platform.cluster.jobs)


async def test_what_a_caller_may_not_say_is_left_out_of_the_object(client, platform) -> None:
    ada = platform.reviewer.know("ada", "a")
    manifest = job_manifest()
    manifest["metadata"] |= {
        "annotations": {"muster.dev/user": "eve", "note": "mine"},
        "finalizers": ["eve.example/stays"],
        "ownerReferences": [{"name": "x"}],
    }
    manifest["status"] = {"phase": "Succeeded"}

    await client.post(
        "/api/v1/jobs", json=manifest, params={"namespace": "a"}, headers=bearer(ada)
    )

    made = platform.cluster.jobs["a", "digits"]
    assert {"muster.dev/user": "ada", "note": "mine"} == made["metadata"]["annotations"]
    assert not {"finalizers", "ownerReferences"} & set(made["metadata"])
    assert "status" not in made


BAD = {
    "an unknown queue": ({"queue": "red"}, 422, "spec.queue", "default"),
    "an unknown level": (
        {"topology": {"required": "moon"}},
        422,
        "spec.topology.required",
        "rack",
    ),
    "a template with a node": (
        {"template": {"spec": {"nodeName": "n", "containers": [{"name": "t"}]}}},
        422,
        "spec.template.spec.nodeName",
        "Muster chooses the node",
    ),
}


@pytest.mark.parametrize("claim", BAD)
async def test_refused_with_the_field_and_the_way_out(client, platform, claim: str) -> None:
    spec, status, field, words = BAD[claim]
    platform.cluster.levels = [{"name": "rack", "label": "muster.dev/rack"}]
    ada = platform.reviewer.know("ada", "a")

    answer = await submitted(client, ada, **spec)

    assert (status, PROBLEM) == (answer.status_code, answer.headers["Content-Type"])
    assert [field] == [each["field"] for each in answer.json()["errors"]]
    assert words in answer.json()["detail"]
    assert platform.cluster.jobs == {}


async def test_a_queue_that_does_not_take_the_job_is_a_403(client, platform) -> None:
    platform.cluster.add_queue("closed", namespaces=["b"])
    ada = platform.reviewer.know("ada", "a")

    answer = await submitted(client, ada, queue="closed")

    assert answer.status_code == 403
    assert "takes jobs of the namespaces b only" in answer.json()["detail"]


async def test_a_second_job_of_a_name_is_a_409_with_the_way_out(client, platform) -> None:
    ada = platform.reviewer.know("ada", "a")
    first = await submitted(client, ada)
    second = await submitted(client, ada)

    assert (201, 409) == (first.status_code, second.status_code)
    assert "in namespace a already; choose another name" in second.json()["detail"]


BODIES = {
    "no object": (b"[1]", 400),
    "not YAML": (b"a: [", 400),
    "not UTF-8": (b"\xff\xfe\xff", 400),
    "another kind": (orjson.dumps({**job_manifest(), "kind": "Pod"}), 422),
    "another version": (orjson.dumps({**job_manifest(), "apiVersion": "v1"}), 422),
    "an unknown field": (orjson.dumps({**job_manifest(), "specc": {}}), 422),
    "no metadata": (orjson.dumps({**job_manifest(), "metadata": None}), 422),
    "another namespace": (
        orjson.dumps({**job_manifest(), "metadata": {"name": "x", "namespace": "b"}}),
        422,
    ),
    "too much": (b'"' + b"x" * MOST_BYTES + b'"', 413),
}


@pytest.mark.parametrize("claim", BODIES)
async def test_a_body_is_refused(client, platform, claim: str) -> None:
    body, status = BODIES[claim]
    ada = platform.reviewer.know("ada", "a", "b")

    answer = await client.post(
        "/api/v1/jobs",
        content=body,
        params={"namespace": "a"},
        headers={**bearer(ada), "Content-Type": "text/yaml"},
    )

    assert (status, PROBLEM) == (answer.status_code, answer.headers["Content-Type"])


async def test_a_body_that_hides_its_length_is_counted(client, platform) -> None:
    ada = platform.reviewer.know("ada", "a")

    async def chunks():
        for _ in range(3):
            yield b"x" * (MOST_BYTES // 2)

    answer = await client.post("/api/v1/jobs", content=chunks(), headers=bearer(ada))

    assert answer.status_code == 413


ERRORS = {
    "fields of the CRD are passed on": (
        Invalid("bad", status=422, fields=(("spec.replicas", "Invalid value: 0: must be 1"),)),
        (422, [{"field": "spec.replicas", "problem": "0: must be 1"}]),
    ),
    "a rule about the whole object names its field itself": (
        Invalid("bad", status=422, fields=(("<nil>", "Invalid value: metadata.name: too long"),)),
        (422, [{"field": "metadata.name", "problem": "too long"}]),
    ),
    "a field that its problem repeats is named once": (
        Invalid(
            "bad",
            status=422,
            fields=(("spec.replicas", "Invalid value: 0: spec.replicas in body should be >= 1"),),
        ),
        (422, [{"field": "spec.replicas", "problem": "0: should be >= 1"}]),
    ),
    "that other checks were left out is not told beside what stopped them": (
        Invalid(
            "bad",
            status=422,
            fields=(
                ("spec.template", "Required value"),
                ("<nil>", "Invalid value: null: some validation rules were not checked"),
                ("<nil>", 'Invalid value: "": Checked value must be of type integer'),
            ),
        ),
        (422, [{"field": "spec.template", "problem": "Required value"}]),
    ),
    "a problem without a path is told when it is the only one": (
        Invalid("bad", status=422, fields=(("<nil>", "Invalid value: null: not checked"),)),
        (422, [{"field": "", "problem": "null: not checked"}]),
    ),
    "an unknown field is named": (
        ApiError('strict decoding error: unknown field "spec.replicaz"', status=400),
        (400, [{"field": "spec.replicaz", "problem": "is not a field of this kind"}]),
    ),
    "an API server that is busy": (TooManyRequests("wait", status=429), (429, [])),
    "an API server that is away": (ApiUnreachable("gone"), (503, [])),
    "an API server that fails": (ApiError("oops", status=500), (503, [])),
    "a defect tells nothing": (RuntimeError("secret"), (500, [])),
}


@pytest.mark.parametrize("claim", ERRORS)
async def test_errors_of_the_api_server(client, platform, claim: str) -> None:
    error, (status, fields) = ERRORS[claim]
    ada = platform.reviewer.know("ada", "a")
    platform.cluster.broken["create_job"] = error

    answer = await submitted(client, ada)

    assert (status, fields) == (answer.status_code, answer.json()["errors"])
    assert "secret" not in answer.text


async def test_the_sentence_of_a_refusal_is_its_fields(client, platform) -> None:
    causes = (("spec.template", "Required value"), ("<nil>", "Invalid value: null: not checked"))
    platform.cluster.broken["create_job"] = Invalid("[<nil>: …]", status=422, fields=causes)

    answer = await submitted(client, platform.reviewer.know("ada", "a"))

    assert answer.json()["detail"] == "spec.template: Required value"


async def test_unknown_routes_methods_and_queries_are_problems_too(client, platform) -> None:
    ada = platform.reviewer.know("ada", "")
    asked = [
        ("GET", "/api/v1/nothing", 404),
        ("PUT", "/api/v1/jobs", 405),
        ("GET", "/api/v1/jobs?limit=0", 422),
        ("GET", "/api/v1/jobs?colour=red", 422),
        ("GET", "/api/v1/jobs?after=x", 422),
    ]

    for method, path, status in asked:
        answer = await client.request(method, path, headers=bearer(ada))

        assert (status, PROBLEM) == (answer.status_code, answer.headers["Content-Type"]), path
        assert {"type", "title", "status", "detail", "instance", "errors"} == set(answer.json())


async def test_pages_follow_each_other_newest_first(client, platform) -> None:
    ada = platform.reviewer.know("ada", "a", "")
    for name in "abcde":
        await client.post(
            "/api/v1/jobs", json=job_manifest(name), params={"namespace": "a"}, headers=bearer(ada)
        )
    seen: list[str] = []
    after: dict[str, str] = {}
    for _ in range(3):
        page = await client.get(
            "/api/v1/jobs", params={"limit": "2", **after}, headers=bearer(ada)
        )
        seen += [item["name"] for item in page.json()["items"]]
        after = {"after": page.json()["next"]} if page.json()["next"] else {}

    assert (list("edcba"), {}) == (seen, after)


async def test_a_job_that_nobody_knows_is_a_404(client, platform) -> None:
    ada = platform.reviewer.know("ada", "a")

    for path in ("", "/epochs", "/cost"):
        answer = await client.get(f"/api/v1/namespaces/a/jobs/none{path}", headers=bearer(ada))

        assert (404, PROBLEM) == (answer.status_code, answer.headers["Content-Type"])
    gone = await client.delete("/api/v1/namespaces/a/jobs/none", headers=bearer(ada))
    assert gone.status_code == 404


async def test_cancelling_asks_for_the_deletion(client, platform) -> None:
    ada = platform.reviewer.know("ada", "a")
    await submitted(client, ada)

    answer = await client.delete("/api/v1/namespaces/a/jobs/digits", headers=bearer(ada))

    assert answer.status_code == 202
    assert answer.json()["deleting"] is not None
    assert "deletionTimestamp" in platform.cluster.jobs["a", "digits"]["metadata"]


async def test_queues_have_the_keys_of_the_contract(client, platform) -> None:
    platform.cluster.add_queue("a", parent="default", limit={"H100": 8}, paused=True)
    ada = platform.reviewer.know("ada", "a")
    await submitted(client, ada, replicas=2, gpusPerReplica=4)

    items = (await client.get("/api/v1/queues", headers=bearer(ada))).json()["items"]

    rest = {
        "weight": 1.0,
        "guaranteed": 0,
        "usage": 0,
        "usage_by_model": {},
        "decayed_usage": None,
        "share": 0.0,
        "borrowed": 0,
        "order": "fifo",
    }
    want = [
        {
            "name": "default",
            "parent": None,
            "depth": 0,
            "limit": None,
            "pending_gpus": 8,
            "paused": False,
        },
        {
            "name": "a",
            "parent": "default",
            "depth": 1,
            "limit": {"H100": 8},
            "pending_gpus": 0,
            "paused": True,
        },
    ]
    assert [{**each, **rest} for each in want] == items


async def test_health_needs_no_token(client: httpx2.AsyncClient) -> None:
    for path in ("/healthz", "/readyz"):
        answer = await client.get(path)

        assert (200, {"status": "ok"}) == (answer.status_code, answer.json())
    metrics = (await client.get("/metrics")).text
    assert (
        'muster_api_request_duration_seconds_count{code="200",method="GET",route="/readyz"}'
        in (metrics)
    )


async def test_not_ready_while_the_api_server_is_away(client, platform) -> None:
    platform.cluster.broken["ping"] = ApiUnreachable("no answer")

    answer = await client.get("/readyz")

    assert (503, "no answer") == (answer.status_code, answer.json()["detail"])
