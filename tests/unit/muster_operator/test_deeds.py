"""What becomes of a plan's deeds before any of them is written."""

from typing import Any

import pytest

from muster.claims import Claim
from muster.decisions import Decision, placed
from muster.job_status import JobStatus, Phase
from muster.scheduling.plan import (
    Admit,
    Deed,
    Grow,
    Preempt,
    Requeue,
    Right,
    Shrink,
    Victim,
    Withdraw,
)
from muster.scheduling.snapshot import Displaced, Gang
from muster.status_raw import difference
from muster_operator.cache import Cache
from muster_operator.deeds import Deeds
from muster_operator.metrics import Metrics
from muster_operator.records import JobRecord

NOW = 1_767_225_700.0


class Table:
    """A cache with jobs, and the deeds of one instant."""

    def __init__(self) -> None:
        self.version = 0
        self.marked: list[str] = []
        self.cache = Cache(
            has_scheduler=False,
            on_job=lambda uid, *, is_urgent=True: None,
            on_capacity=lambda: None,
            clock=lambda: NOW,
        )
        self.deeds = Deeds(self.cache, Metrics(), self.marked.append)
        for queue in ("default", "other"):
            self.cache.around_changed("queues", self._object(queue, spec={}))

    def _object(self, name: str, **rest: Any) -> dict[str, Any]:
        self.version += 1
        metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": str(self.version)}
        return {"metadata": metadata, **rest}

    def job(self, name: str, status: JobStatus | None = None, **spec: Any) -> JobRecord:
        template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
        raw = self._object(
            name, spec={"replicas": 2, "gpusPerReplica": 1, "template": template, **spec}
        )
        raw["metadata"] |= {"namespace": "t", "creationTimestamp": "2026-01-01T00:00:00Z"}
        if status is not None:
            raw["status"] = difference(JobStatus(), status)
        record = self.cache.job_changed(raw)
        assert record is not None
        return record

    def runs(self, name: str, *nodes: str, **spec: Any) -> JobRecord:
        status = placed(JobStatus(), nodes, "", gpus=len(nodes), port=1, now=NOW - 100)
        attempt = status.attempts[0]
        from dataclasses import replace  # noqa: PLC0415

        running = replace(
            status.with_attempt(replace(attempt, running_at=NOW - 90)), phase=Phase.RUNNING
        )
        return self.job(name, running, **spec)

    def take(self, *deeds: Deed) -> list[bool]:
        return [self.deeds.take(deed, NOW, 60.0) for deed in deeds]

    def gang(self, name: str) -> Gang:
        (found,) = (gang for gang in self.cache.cluster.objects().gangs if gang.key == f"t/{name}")
        return found


def victim(name: str, *ranks: int, right: Right = Right.PRIORITY) -> Victim:
    return Victim(f"t/{name}", ranks or None, right, 0)


def test_a_start_counts_at_once_and_once() -> None:
    table = Table()
    table.job("a")

    assert [True, False] == table.take(*[Admit("t/a", ("n1", "n1"), "2 GPUs")] * 2)
    assert ("n1", "n1") == table.gang("a").placement
    assert ["uid-a"] == table.marked


def test_a_preemption_counts_on_both_sides() -> None:
    table = Table()
    table.runs("low", "n1", "n2")
    high = table.job("high")

    assert [True] == table.take(Preempt("t/high", ("n1", "n2"), (victim("low"),), "1 leaves"))
    assert ("n1", "n2") == table.gang("high").claim
    (leaving,) = table.gang("low").leaving
    assert ("t/high", None, NOW + 60) == (leaving.claimant, leaving.ranks, leaving.deadline)
    # Nothing is asked of the victim before the claim is written.
    low = table.cache.by_key("t/low")
    assert low is not None
    from muster.steps import Rules  # noqa: PLC0415

    assert () == table.cache.scene(low, NOW, Rules()).job.departures
    assert high.decision is not None
    written = high.decision.applied(high.status, gpus_per_replica=1)
    table.cache.decide(high, None)
    assert () == table.gang("low").leaving
    table.job("high", written)
    assert 1 == len(table.cache.scene(low, NOW, Rules()).job.departures)


def test_what_it_takes_from_other_queues_at_its_time_is_remembered() -> None:
    table = Table()
    table.runs("a", "n1", queue="other")
    table.runs("b", "n2")
    high = table.job("high")
    table.take(
        Preempt(
            "t/high",
            ("n1", "n2"),
            (victim("a", right=Right.RESERVATION), victim("b", right=Right.RESERVATION)),
            "",
        )
    )

    assert high.decision is not None
    assert high.decision.claim is not None
    assert ("other",) == high.decision.claim.took


def test_two_decisions_of_one_instant_are_one_claim() -> None:
    table = Table()
    table.runs("a", "n1")
    table.runs("b", "n2")
    high = table.job("high")
    table.take(
        Preempt("t/high", ("n1",), (victim("a"),), "a leaves"),
        Preempt("t/high", ("n1", "n2"), (victim("b"),), "b leaves"),
    )

    assert high.claim is not None
    assert ["t/a", "t/b"] == [asked.job for _, asked in high.claim.victims()]
    assert 2 == len({ask.id for ask, _ in high.claim.victims()})


def test_what_is_withdrawn_leaves_no_trace() -> None:
    table = Table()
    table.runs("low", "n1", "n2")
    high = table.job("high")
    table.take(Preempt("t/high", ("n1", "n2"), (victim("low"),), ""), Withdraw("t/high", ""))

    assert high.decision is None
    assert () == table.gang("low").leaving
    assert [False] == table.take(Withdraw("t/high", ""))


def test_a_written_claim_is_given_up_with_a_start_elsewhere() -> None:
    table = Table()
    high = table.job("high", JobStatus(phase=Phase.PENDING, claim=Claim(("n1", "n2"))))
    table.take(Withdraw("t/high", ""), Admit("t/high", ("n3", "n3"), ""))

    assert high.decision is not None
    assert (True, None) == (high.decision.withdraws, high.claim)


def test_one_that_is_started_and_displaced_in_one_instant_was_not_started() -> None:
    table = Table()
    low = table.job("low")
    table.job("high")
    table.take(
        Admit("t/low", ("n1", "n2"), ""),
        Preempt("t/high", ("n1", "n2"), (victim("low"),), ""),
    )

    assert low.decision is not None
    assert (None, None) == (low.decision.start, low.status.placement)
    gang = table.gang("low")
    assert (None, Displaced("t/high", table.cache.account.changed)) == (
        gang.placement,
        gang.displaced,
    )
    assert table.cache.by_key("t/high").claim.asks == ()  # type: ignore[union-attr]


def test_surplus_that_was_only_just_given_is_not_given() -> None:
    table = Table()
    low = table.job("low", replicas=4, minReplicas=1)
    table.take(
        Admit("t/low", ("n1", "n1", "n2"), ""),
        Grow("t/low", ("n3",), ("t/big",)),
        Preempt("t/high", ("n2",), (), ""),
    )
    assert ("n1", "n1", "n2", "n3") == table.gang("low").placement

    table.job("high")
    table.take(Preempt("t/high", ("n2", "n3"), (victim("low", 2, 3),), ""))

    assert ("n1", "n1") == table.gang("low").placement
    assert low.decision is not None
    assert low.decision.start is not None
    assert ("t/big",) == low.decision.start.behind


def test_growth_of_a_gang_that_runs_is_put_together_and_cut() -> None:
    table = Table()
    low = table.runs("low", "n1", replicas=4, minReplicas=1)
    table.job("high")
    assert [True, True] == table.take(Grow("t/low", ("n2",)), Grow("t/low", ("n3",), ("t/x",)))
    assert ("n1", "n2", "n3") == table.gang("low").placement

    table.take(Preempt("t/high", ("n3",), (victim("low", 2),), ""))

    assert ("n1", "n2") == table.gang("low").placement
    table.take(Preempt("t/high", ("n2", "n1"), (victim("low"),), ""))
    assert ("n1",) == table.gang("low").placement
    assert [None] == [leaving.ranks for leaving in table.gang("low").leaving]
    assert low.decision is None


def test_what_is_being_written_is_waited_for() -> None:
    table = Table()
    low, high = table.runs("low", "n1", replicas=4, minReplicas=1), table.job("high")
    table.take(Grow("t/low", ("n2",)))
    low.is_committing = True

    assert [False] == table.take(Grow("t/low", ("n3",)))

    table.take(Preempt("t/high", ("n2",), (victim("low", 1),), ""))

    assert ("n1", "n2") == table.gang("low").placement
    assert high.claim is not None
    assert [(1,)] == [asked.ranks for _, asked in high.claim.victims()]


@pytest.mark.parametrize(
    "deed",
    [
        Requeue("t/low", ""),
        Shrink("t/low", (1,)),
        Admit("t/low", ("n1",), ""),
        Admit("t/nobody", ("n1",), ""),
        Grow("t/waits", ("n1",)),
    ],
)
def test_what_cannot_be_is_not_done(deed: Deed) -> None:
    table = Table()
    table.runs("low", "n1", "n2")
    table.job("waits")

    assert [False] == table.take(deed)
    assert Decision(0.0, 0.0).nodes == ()


def test_a_victim_that_is_gone_is_not_asked() -> None:
    table = Table()
    high = table.job("high")
    table.job("waits")
    table.take(Preempt("t/high", ("n1", "n2"), (victim("nobody"), victim("waits")), ""))

    assert high.claim is not None
    assert () == high.claim.asks
