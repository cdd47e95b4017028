"""The reflector against a small server that does on demand what a real one does rarely."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from muster_kube import Change, Kube, reflect

PATH = "/api/v1/pods"
REFUSED = None
TOO_OLD = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}


def pod(name: str, version: int, uid: str | None = None) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": uid or name, "resourceVersion": str(version)}}


class Script:
    """Lists and watches in the order in which the server is to answer them."""

    def __init__(self) -> None:
        self.lists: list[Any] = []
        self.watches: list[Any] = []
        self.asked: list[dict[str, str]] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(dict(request.query))
        if "watch" not in request.query:
            version, items = self.lists.pop(0)
            return web.json_response(
                {"metadata": {"resourceVersion": str(version)}, "items": items}
            )
        events = self.watches.pop(0) if self.watches else REFUSED
        if events is REFUSED:
            raise web.HTTPServiceUnavailable
        response = web.StreamResponse()
        await response.prepare(request)
        for kind, obj in events:
            await response.write(json.dumps({"type": kind, "object": obj}).encode() + b"\n")
        return response


@pytest.fixture
async def served() -> AsyncIterator[tuple[Script, Kube]]:
    script = Script()
    app = web.Application()
    app.router.add_get(PATH, script.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": f"http://{host}:{port}"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "n"}}],
        "current-context": "x",
    }
    async with await Kube.connect(config) as kube:
        yield script, kube
    await runner.cleanup()


async def steps(kube: Kube, count: int, **how: Any) -> list[tuple[str, str, str]]:
    seen: list[tuple[str, str, str]] = []
    changes = reflect(kube, PATH, **how)
    async for change in changes:
        seen.append(told(change))
        if len(seen) == count:
            break
    await changes.aclose()  # type: ignore[attr-defined]
    return seen


def told(change: Change) -> tuple[str, str, str]:
    return (
        change.kind.value,
        change.object.get("metadata", {}).get("name", ""),
        change.resource_version,
    )


async def test_the_whole_list_comes_first_then_synced_then_what_changes(
    served: tuple[Script, Kube],
) -> None:
    script, kube = served
    script.lists = [(5, [pod("a", 1), pod("b", 2)])]
    script.watches = [[("MODIFIED", pod("a", 6)), ("DELETED", pod("b", 7))]]

    want = [
        ("ADDED", "a", "5"),
        ("ADDED", "b", "5"),
        ("SYNCED", "", "5"),
        ("MODIFIED", "a", "6"),
        ("DELETED", "b", "7"),
    ]

    assert want == await steps(kube, 5)


async def test_a_watch_that_ends_goes_on_from_the_last_version_and_bookmarks_count(
    served: tuple[Script, Kube],
) -> None:
    script, kube = served
    script.lists = [(5, [])]
    script.watches = [[("BOOKMARK", pod("", 40))], [("ADDED", pod("a", 41))]]

    got = await steps(kube, 3)

    assert [("SYNCED", "", "5"), ("BOOKMARK", "", "40"), ("ADDED", "a", "41")] == got
    assert ["5", "40"] == [q["resourceVersion"] for q in script.asked if "watch" in q]


async def test_what_vanished_while_the_version_expired_comes_as_deleted(
    served: tuple[Script, Kube],
) -> None:
    script, kube = served
    script.lists = [
        (5, [pod("a", 1), pod("b", 2), pod("c", 3)]),
        (90, [pod("b", 2), pod("c", 80)]),
    ]
    script.watches = [[("ERROR", TOO_OLD)]]

    got = await steps(kube, 7)

    assert [
        ("DELETED", "a", "90"),
        ("MODIFIED", "c", "90"),
        ("SYNCED", "", "90"),
    ] == got[4:]


async def test_a_stored_version_skips_the_first_list(served: tuple[Script, Kube]) -> None:
    script, kube = served
    script.watches = [[("ADDED", pod("a", 78))]]

    got = await steps(kube, 1, resource_version="77")

    assert [("ADDED", "a", "78")] == got
    assert ["77"] == [q["resourceVersion"] for q in script.asked]


async def test_a_refused_watch_is_tried_again(served: tuple[Script, Kube]) -> None:
    script, kube = served
    script.lists = [(5, [])]
    script.watches = [REFUSED, [("ADDED", pod("a", 6))]]

    assert [("SYNCED", "", "5"), ("ADDED", "a", "6")] == await steps(kube, 2)
    assert ["5", "5"] == [q["resourceVersion"] for q in script.asked if "watch" in q]


async def test_a_line_longer_than_the_buffer_comes_through(served: tuple[Script, Kube]) -> None:
    script, kube = served
    script.lists = [(5, [])]
    long = pod("a", 6)
    long["metadata"]["annotations"] = {"nodes": "n" * 3_000_000}
    script.watches = [[("ADDED", long)]]

    assert ("ADDED", "a", "6") == (await steps(kube, 2))[1]
