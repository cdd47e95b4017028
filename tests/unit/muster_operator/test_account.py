"""The clocks of the scheduler's account: what changed from outside, and usage that decays."""

from typing import Any

from muster.decisions import Decision, placed
from muster.job_status import JobStatus, Outcome, Phase
from muster.scheduling.plan import Admit
from muster.scheduling.snapshot import Displaced, Gang, Run
from muster.status_raw import difference
from muster_operator.account import _matters, has_ended
from muster_operator.cache import Cache

START = 1_767_225_600.0  # when the jobs below were created
HOUR = 3600.0


class World:
    """A cache with a queue, and a clock that is moved."""

    def __init__(self, half_life: float = 0.0) -> None:
        self.now = START + 10.0
        self.version = 0
        self.cache = Cache(
            has_scheduler=False,
            on_job=lambda uid, *, is_urgent=True: None,
            on_capacity=lambda: None,
            clock=lambda: self.now,
            half_life=half_life,
        )
        self.put("queues", "default", spec={})

    def raw(self, name: str, **rest: Any) -> dict[str, Any]:
        self.version += 1
        metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": str(self.version)}
        return {"metadata": metadata, **rest}

    def put(self, kind: str, name: str, **rest: Any) -> None:
        self.cache.around_changed(kind, self.raw(name, **rest))

    def job(self, name: str, status: JobStatus | None = None, **spec: Any) -> None:
        template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
        raw = self.raw(
            name, spec={"replicas": 2, "gpusPerReplica": 1, "template": template, **spec}
        )
        raw["metadata"] |= {
            "namespace": "t",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "generation": spec.get("priority", 0),
        }
        if status is not None:
            raw["status"] = difference(JobStatus(), status)
        self.cache.job_changed(raw)

    def pod(self, name: str, phase: str = "Running") -> None:
        spec = {"nodeName": "n1", "containers": [{"name": "c"}]}
        raw = self.raw(name, spec=spec, status={"phase": phase})
        raw["metadata"]["namespace"] = "t"
        self.cache.pod_changed(raw)

    @property
    def changed(self) -> float:
        return self.cache.account.changed


RUNNING = placed(JobStatus(), ("n1", "n1"), "", gpus=2, port=1, now=START)


def test_what_comes_from_outside_is_a_change() -> None:
    world = World()
    seen = [world.changed]
    for happen in (
        lambda: world.job("a"),
        lambda: world.job("a", priority=1),
        lambda: world.put("nodes", "n1", status={"allocatable": {"cpu": "1"}}),
        lambda: world.put("queues", "default", spec={"limit": 4}),
        lambda: world.pod("theirs"),
        lambda: world.pod("theirs", "Succeeded"),
        lambda: world.cache.job_gone("uid-a"),
    ):
        world.now += 1.0
        happen()
        seen.append(world.changed)

    assert sorted(set(seen)) == seen
    assert world.cache.cluster.snapshot().changed == seen[-1]


def test_our_own_decisions_are_none() -> None:
    world = World()
    world.job("a")
    before = world.changed
    world.now += 1.0
    record = world.cache.by_key("t/a")
    assert record is not None
    decision = Decision(world.now, before, start=Admit("t/a", ("n1", "n1"), ""))
    world.cache.decide(record, decision)
    world.cache.decide(record, None)
    world.job("a", RUNNING)

    assert before == world.changed


def test_a_status_of_a_queue_is_no_change() -> None:
    world = World()
    before = world.changed
    world.now += 1.0
    world.put("queues", "default", spec={}, status={"pending": {"jobs": 1}})

    assert before == world.changed


def test_a_new_operator_takes_up_the_clock_of_the_last_one() -> None:
    world = World()
    world.now = START - 100.0  # what was listed is all there is
    world.cache.account.changed = 0.0
    world.job("old", JobStatus(phase=Phase.PENDING))
    assert START == world.changed
    world.job("victim", JobStatus(phase=Phase.PENDING, displaced=Displaced("t/x", START + 5)))

    assert START + 5 == world.changed


ENDED = {
    "it was given back": (RUNNING, JobStatus(), True),
    "it was evicted": (
        RUNNING,
        JobStatus(attempts=(RUNNING.attempts[0].__class__(1, 0.0, outcome=Outcome.PREEMPTED),)),
        False,
    ),
    "it goes on": (RUNNING, RUNNING, False),
    "one that waited was cancelled": (JobStatus(), JobStatus(phase=Phase.CANCELLED), True),
    "it was over": (
        JobStatus(phase=Phase.CANCELLED),
        JobStatus(phase=Phase.CANCELLED),
        False,
    ),
}


def test_an_end_is_a_change_unless_we_made_it() -> None:
    for claim, (before, after, want) in ENDED.items():
        assert want is has_ended(before, after), claim


def gang(placement: tuple[str, ...] | None, run: Run | None = None, replicas: int = 1) -> Gang:
    from muster.scheduling.snapshot import Needs  # noqa: PLC0415

    return Gang("t/a", replicas, 1, Needs(1), 0.0, placement=placement, run=run)


def test_a_plan_is_worked_out_anew_for_what_may_change_it() -> None:
    waits, runs = gang(None), gang(("n1",), Run(1.0))

    assert _matters(None, waits)
    assert not _matters(None, runs)
    assert not _matters(waits, runs)
    assert _matters(runs, None)
    assert not _matters(waits, None)
    assert not _matters(runs, gang(("n1",), Run(1.0, saved=5.0, eta=9.0)))
    assert _matters(runs, gang(("n1",), Run(1.0), replicas=2))


def usage_of(value: float, at: str) -> dict[str, Any]:
    return {"usage": {"value": value, "byModel": {"H100": value}, "asOf": at}}


def test_decayed_usage_goes_on_from_what_was_written() -> None:
    world = World(half_life=HOUR)
    world.put("queues", "default", spec={}, status=usage_of(8.0, "2026-01-01T00:00:00Z"))
    world.put("queues", "older", spec={}, status=usage_of(8.0, "2025-12-31T23:00:00Z"))
    world.put("queues", "new", spec={})
    world.now = START + HOUR
    world.cache.account.load_usage(world.cache.around.raw_of("queues"))
    usage = world.cache.cluster.snapshot().usage

    assert (4.0, 2.0) == (round(usage["default"], 6), round(usage["older"], 6))
    by_model = world.cache.cluster.snapshot().usage_by_model
    assert 4.0 == round(by_model["default", "H100"], 6)


def test_without_a_half_life_nothing_is_loaded() -> None:
    world = World()
    world.put("queues", "default", spec={}, status=usage_of(8.0, "2026-01-01T00:00:00Z"))
    world.cache.account.load_usage(world.cache.around.raw_of("queues"))

    assert {} == world.cache.cluster.snapshot().usage


def test_queues_that_tell_of_no_usage_begin_at_nothing() -> None:
    world = World(half_life=HOUR)
    world.cache.account.load_usage(world.cache.around.raw_of("queues"))

    assert 0.0 == world.cache.cluster.snapshot().usage.get("default", 0.0)
