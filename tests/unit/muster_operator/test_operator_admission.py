"""What is asked before a commit, and how seldom."""

import asyncio
from typing import Any

import pytest

from muster.job_status import JobStatus
from muster.parse import job_of
from muster.scheduling.cluster import Cluster
from muster_kube import AlreadyExists, ApiError, ApiForbidden, ApiUnreachable
from muster_operator.admission import Admission
from muster_operator.records import JobRecord
from muster_operator.surroundings import Surroundings


class FakeServer:
    """Answers dry runs with what was sent, or with *error*."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.error: ApiError | None = None

    async def create(self, path: str, body: bytes, **query: str) -> dict[str, Any]:
        self.asked.append((path, query))
        await asyncio.sleep(0)
        if self.error is not None:
            raise self.error
        return {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}]}}


class Desk:
    """An admission desk with a quota of eight GPUs, and jobs that come to it."""

    def __init__(self) -> None:
        self.server = FakeServer()
        self.around = Surroundings(Cluster())
        status = {"hard": {"requests.nvidia.com/gpu": "8"}}
        self.around.quota_changed(
            {"metadata": {"namespace": "team", "name": "q"}, "status": status}
        )
        self.admission = Admission(self.server, self.around)  # type: ignore[arg-type]

    async def ask(
        self, name: str, pods: int = 4, namespace: str = "team", image: str = "i"
    ) -> Any:
        record = self.record(name, namespace, image)
        assert record.job is not None
        return await self.admission.refusal(record, record.job, pods)

    def record(self, name: str, namespace: str = "team", image: str = "i") -> JobRecord:
        template = {"spec": {"containers": [{"name": "c", "image": image}]}}
        raw = {
            "metadata": {"name": name, "namespace": namespace, "uid": name},
            "spec": {"gpusPerReplica": 1, "template": template},
        }
        return JobRecord(f"{namespace}/{name}", name, raw, 1, job_of(raw), JobStatus())


async def test_many_equal_gangs_cost_one_question() -> None:
    desk = Desk()
    answers = await asyncio.gather(*(desk.ask(f"j{n}", 1, "other") for n in range(50)))

    assert [None] * 50 == answers
    assert [("/api/v1/namespaces/other/pods", {"dryRun": "All"})] == desk.server.asked


async def test_other_pods_and_other_namespaces_are_other_questions() -> None:
    desk = Desk()
    await desk.ask("a", 1)
    await desk.ask("b", 1, "other")
    await desk.ask("c", 1, image="another")

    assert 3 == len(desk.server.asked)


async def test_room_is_promised_once() -> None:
    desk = Desk()

    assert await desk.ask("first", 5) is None
    assert "exceeded quota: q" in await desk.ask("second", 4)

    desk.admission.settled(desk.record("first"))

    assert await desk.ask("second", 4) is None


async def test_a_refusal_is_told_in_the_words_of_the_server() -> None:
    desk = Desk()
    desk.server.error = ApiForbidden("violates PodSecurity", status=403)

    assert "violates PodSecurity" == await desk.ask("a")


async def test_a_name_that_is_taken_is_no_matter_here() -> None:
    desk = Desk()
    desk.server.error = AlreadyExists("there", status=409)

    assert await desk.ask("a") is None


async def test_no_answer_is_asked_for_again() -> None:
    desk = Desk()
    desk.server.error = ApiUnreachable("gone")
    with pytest.raises(ApiUnreachable):
        await desk.ask("a")
    desk.server.error = None

    assert await desk.ask("a") is None
