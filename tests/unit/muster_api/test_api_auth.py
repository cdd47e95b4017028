"""Who may do what: tokens, accesses, and what is kept of both."""

import httpx2
import pytest

from apis import Clock, PretendedReviewer, bearer, job_manifest
from muster import wire
from muster.errors import Forbidden, Unauthorized
from muster_api.auth import ACCESS_SECONDS, TOKEN_SECONDS, Access, Gate, Identity, Recent

ROUTES = [
    ("POST", "/api/v1/jobs"),
    ("GET", "/api/v1/jobs"),
    ("GET", "/api/v1/namespaces/a/jobs/x"),
    ("DELETE", "/api/v1/namespaces/a/jobs/x"),
    ("GET", "/api/v1/namespaces/a/jobs/x/epochs"),
    ("GET", "/api/v1/namespaces/a/jobs/x/cost"),
    ("POST", "/api/v1/namespaces/a/jobs/x/reports"),
    ("GET", "/api/v1/queues"),
]
HEADERS = {
    "no token": {},
    "a wrong token": bearer("wrong"),
    "another scheme": {"Authorization": "Basic YTpi"},
    "an empty token": {"Authorization": "Bearer "},
    "a token without end": bearer("x" * 40_000),
}


@pytest.mark.parametrize("claim", HEADERS)
async def test_every_route_asks_for_a_token(client: httpx2.AsyncClient, claim: str) -> None:
    for method, path in ROUTES:
        answer = await client.request(method, path, headers=HEADERS[claim])

        assert (401, 'Bearer realm="muster"') == (
            answer.status_code,
            answer.headers["WWW-Authenticate"],
        ), path


async def test_a_foreign_namespace_is_forbidden_whether_or_not_the_job_exists(
    client, platform
) -> None:
    ada, eve = platform.reviewer.know("ada", "a"), platform.reviewer.know("eve", "b")
    await client.post(
        "/api/v1/jobs", json=job_manifest("x"), params={"namespace": "a"}, headers=bearer(ada)
    )
    asked = [each for each in ROUTES if "namespaces/a" in each[1] and "reports" not in each[1]]

    for method, path in [*asked, ("GET", "/api/v1/jobs?namespace=a"), ("GET", "/api/v1/jobs")]:
        answer = await client.request(method, path, headers=bearer(eve))

        assert answer.status_code == 403, path
    created = await client.post(
        "/api/v1/jobs", json=job_manifest("y"), params={"namespace": "a"}, headers=bearer(eve)
    )
    assert created.status_code == 403
    assert [("a", "x")] == list(platform.cluster.jobs)


async def test_a_reporting_token_opens_nothing_else(client, platform) -> None:
    pod = platform.reviewer.know_pod("a", "x-1-0-0", "p1")

    answer = await client.get("/api/v1/namespaces/a/jobs/x", headers=bearer(pod))

    assert answer.status_code == 401


async def test_a_user_cannot_report(client, platform) -> None:
    platform.reviewer.identities["t", wire.AUDIENCE] = Identity("ada")

    answer = await client.post("/api/v1/namespaces/a/jobs/x/reports", headers=bearer("t"))

    assert answer.status_code == 403


async def test_answers_are_kept_for_seconds_only() -> None:
    clock, reviewer = Clock(), PretendedReviewer()
    gate = Gate(reviewer, clock)
    token = f"Bearer {reviewer.know('ada', 'a')}"
    access = Access("list", "trainingjobs", "a")

    for _ in range(3):
        await gate.require(await gate.identify(token), access)
    assert (1, 1) == (reviewer.reviews, reviewer.accesses)

    reviewer.identities.clear()
    reviewer.allowed.clear()
    clock.pass_seconds(max(TOKEN_SECONDS, ACCESS_SECONDS) + 1)

    with pytest.raises(Unauthorized):
        await gate.identify(token)
    with pytest.raises(Forbidden, match="ada may not list trainingjobs in namespace a"):
        await gate.require(Identity("ada"), access)


async def test_the_same_token_for_another_audience_is_asked_for_anew() -> None:
    reviewer = PretendedReviewer()
    gate = Gate(reviewer, Clock())
    token = f"Bearer {reviewer.know('ada')}"
    await gate.identify(token)

    with pytest.raises(Unauthorized):
        await gate.identify(token, wire.AUDIENCE)


def test_what_is_kept_is_bounded() -> None:
    clock = Clock()
    recent: Recent[int, int] = Recent(5, clock)

    for number in range(25_000):
        recent.put(number, number)

    kept = [number for number in range(25_000) if recent.get(number) is not None]
    assert len(kept) <= 10_000
    assert kept[-1] == 24_999
