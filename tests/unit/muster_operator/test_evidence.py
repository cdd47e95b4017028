"""Who may read the operator's snapshot and decisions, and what they get."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from muster import wire
from muster.scheduling.archive import Inputs, loads, loads_record
from muster.scheduling.cluster import Cluster
from muster.scheduling.plan import Admit, Plan
from muster.scheduling.policy import Policy
from muster_kube import ApiUnreachable
from muster_operator.evidence import Evidence, Guard
from muster_operator.http import served
from muster_operator.metrics import Metrics
from muster_operator.spool import Limits, Spool
from small_clusters import gang, nodes
from spools import filled, spooling

Json = dict[str, Any]
PLAN = Plan((Admit("team/g0", ("n0",), "1 GPU on 1 node"),))


@dataclass
class Reviews:
    """An API server that knows two tokens; the second one's owner may read nothing."""

    asked: list[Json] = field(default_factory=list)
    is_away: bool = False

    async def create(self, path: str, body: Any) -> Json:
        if self.is_away:
            raise ApiUnreachable("the API server does not answer")
        self.asked.append(body)
        spec = body["spec"]
        if body["kind"] == "TokenReview":
            assert path == "/apis/authentication.k8s.io/v1/tokenreviews"
            if spec["token"] == "of-no-audience":
                return {"status": {"authenticated": True, "user": {"username": "eve"}}}
            known = {"of-the-api": "muster-api", "of-ada": "ada"}.get(spec["token"])
            audiences = spec["audiences"] if known else []
            status = {"authenticated": known is not None, "audiences": audiences}
            return {"status": {**status, "user": {"username": known, "groups": ["g"]}}}
        assert path == "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        return {"status": {"allowed": spec["user"] == "muster-api"}}


class Desk:
    """The routes over a small cluster, on a real port."""

    def __init__(self, spool: Spool) -> None:
        self.now = 100.0
        self.reviews = Reviews()
        self.cluster = Cluster.of(nodes=nodes("n0"), gangs=[gang("team/g0")])
        self.spool = spool
        self.policy = Policy(notice=30.0)
        guard = Guard(self.reviews, lambda: self.now)
        self.evidence = Evidence(guard, self.cluster, lambda: self.policy, spool, lambda: self.now)
        self.url = ""
        self.client = aiohttp.ClientSession()

    async def get(
        self, path: str, token: str | None = "of-the-api", **headers: str
    ) -> tuple[int, str, str | None]:
        """Status, text and tag."""
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        async with self.client.get(self.url + path, headers=headers) as answer:
            return answer.status, await answer.text(), answer.headers.get("ETag")


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Desk]:
    async with spooling(folder, Limits(100, 1 << 20)) as spool:
        desk = Desk(spool)
        routes = desk.evidence.routes()
        async with (
            served("127.0.0.1", 0, Metrics(), lambda: True, routes) as port,
            desk.client,
        ):
            desk.url = f"http://127.0.0.1:{port}"
            yield desk


async def test_the_snapshot_is_what_the_next_cycle_would_see(tmp_path: Path) -> None:
    async with opened(tmp_path) as desk:
        status, text, _ = await desk.get("/snapshot")

    assert (200, Inputs(desk.cluster.objects(), desk.policy, 100.0)) == (status, loads(text))


async def test_a_snapshot_is_sent_again_only_when_something_changed(tmp_path: Path) -> None:
    async with opened(tmp_path) as desk:
        _, _, tag = await desk.get("/snapshot")
        same = await desk.get("/snapshot", **{"If-None-Match": str(tag)})
        desk.cluster.upsert_gang(gang("team/g1"))
        status, text, other = await desk.get("/snapshot", **{"If-None-Match": str(tag)})

    assert (304, "", tag) == same
    assert (200, True) == (status, "team/g1" in text)
    assert tag != other


async def test_decisions_are_listed_and_read(tmp_path: Path) -> None:
    async with opened(tmp_path) as desk:
        ids = await filled(desk.spool, 2)
        status, listed, _ = await desk.get("/decisions")
        read = await desk.get(f"/decisions/{ids[0]}")
        missing = await desk.get("/decisions/none")

    assert (200, True) == (status, listed.index(ids[1]) < listed.index(ids[0]))
    assert ids[0] == loads_record(read[1]).id
    assert (404, True) == (missing[0], "there is no decision none" in missing[1])


REFUSED = {
    "nobody": (None, 401, "a token with the audience muster-operator is needed"),
    "a token that is none": ("wrong", 401, "audience muster-operator"),
    "a token for the API server": ("of-no-audience", 401, "audience muster-operator"),
    "somebody without the right": ("of-ada", 403, "ada may not get"),
}


@pytest.mark.parametrize("path", ["/snapshot", "/decisions", "/decisions/x"])
@pytest.mark.parametrize("claim", REFUSED)
async def test_refused_is(claim: str, path: str, tmp_path: Path) -> None:
    token, status, words = REFUSED[claim]
    async with opened(tmp_path) as desk:
        found = await desk.get(path, token)

    assert (status, True) == (found[0], words in found[1])
    assert "team/g0" not in found[1]


async def test_kubernetes_is_asked_about_the_right_thing_and_not_each_time(tmp_path: Path) -> None:
    async with opened(tmp_path) as desk:
        for _ in range(3):
            await desk.get("/snapshot")
        first = len(desk.reviews.asked)
        desk.now += 6
        await desk.get("/snapshot")

    assert (2, 4) == (first, len(desk.reviews.asked))
    attributes = desk.reviews.asked[1]["spec"]["resourceAttributes"]
    assert {"verb": "get", "group": wire.GROUP, "resource": "snapshots"} == attributes


async def test_without_an_api_server_nobody_gets_in(tmp_path: Path) -> None:
    async with opened(tmp_path) as desk:
        desk.reviews.is_away = True
        status, text, _ = await desk.get("/snapshot")

    assert (503, "the API server does not answer\n") == (status, text)
