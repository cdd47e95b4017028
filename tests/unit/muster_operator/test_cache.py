"""The cache: news in any order, and what the scheduler's account says after it."""

import copy
from typing import Any

import pytest

from muster.decisions import Decision, placed
from muster.job_status import JobStatus
from muster.parse import job_of
from muster.restarts import NodeState
from muster.scheduling.cycle import plan_cycle
from muster.scheduling.plan import Admit, Plan
from muster.scheduling.policy import Policy
from muster.status_raw import difference
from muster.steps import Rules
from muster_operator.cache import Cache
from muster_operator.render import GangBody

Raw = dict[str, Any]
NOW = 1000.0


class World:
    """A cache with a queue, and objects with versions that grow."""

    def __init__(self, *, nodes: int = 1, gpus: int = 8) -> None:
        self.version = 0
        self.marked: list[str] = []
        self.triggers = 0
        self.now = NOW
        self.cache = Cache(
            has_scheduler=False,
            on_job=self._mark,
            on_capacity=self._trigger,
            clock=lambda: self.now,
        )
        self.put("queues", "default", spec={})
        self.nodes = [self.node(f"n{index}", gpus) for index in range(nodes)]

    def _mark(self, uid: str, *, is_urgent: bool = True) -> None:
        self.marked.append(uid)
        self.urgent = is_urgent

    def _trigger(self) -> None:
        self.triggers += 1

    def stamped(self, raw: Raw, name: str, uid: str) -> Raw:
        self.version += 1
        raw = copy.deepcopy(raw)
        raw.setdefault("metadata", {}).update(
            {"name": name, "uid": uid, "resourceVersion": str(self.version)}
        )
        return raw

    def put(self, kind: str, name: str, uid: str = "", **raw: Any) -> Raw:
        made = self.stamped(raw, name, uid or f"uid-{name}")
        self.cache.around_changed(kind, made)
        return made

    def node(self, name: str, gpus: int = 8, ready: str = "True") -> Raw:
        amounts = {"cpu": "64", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": str(gpus)}
        status = {"allocatable": amounts, "conditions": [{"type": "Ready", "status": ready}]}
        return self.put("nodes", name, status=status)

    def job(
        self, name: str = "train", uid: str = "", status: Raw | None = None, **spec: Any
    ) -> Raw:
        template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
        raw: Raw = {
            "metadata": {
                "namespace": "team",
                "generation": 1,
                "creationTimestamp": "2026-01-01T00:00:00Z",
                **spec.pop("metadata", {}),
            },
            "spec": {"replicas": 2, "gpusPerReplica": 4, "template": template, **spec},
        }
        if status:
            raw["status"] = status
        made = self.stamped(raw, name, uid or f"uid-{name}")
        self.cache.job_changed(made)
        return made

    def placed_job(self, nodes: tuple[str, ...] = ("n0", "n0")) -> Raw:
        status = placed(JobStatus(), nodes, "why", gpus=8, port=20_000, now=NOW)
        return self.job(status=difference(JobStatus(), status))

    def pod(self, raw_job: Raw, replica: int, phase: str = "Running") -> Raw:
        job = job_of(raw_job)
        placement = placed(JobStatus(), ("n0", "n0"), "", gpus=8, port=1, now=NOW).placement
        assert placement is not None
        import orjson  # noqa: PLC0415

        raw = orjson.loads(GangBody(job, placement, 1, {}, "").pod(replica))
        raw["status"] = {"phase": phase}
        made = self.stamped(raw, raw["metadata"]["name"], f"pod-{replica}")
        self.cache.pod_changed(made)
        return made

    def plan(self) -> Plan:
        return plan_cycle(self.cache.cluster.snapshot(), Policy(), self.now)

    def admitted(self) -> list[str]:
        return [decision.gang for decision in self.plan().admitted]


def test_a_job_that_fits_is_planned() -> None:
    world = World()
    world.job()

    assert ["team/train"] == world.admitted()
    assert ["uid-train"] == world.marked
    assert world.triggers > 0


def test_what_is_older_than_what_is_known_is_ignored() -> None:
    world = World()
    old = world.job(replicas=2)
    world.job(replicas=3, metadata={"generation": 2})
    world.cache.job_changed(old)

    assert 3 == world.cache.jobs["uid-train"].raw["spec"]["replicas"]


def test_a_deleted_job_never_comes_back() -> None:
    world = World()
    raw = world.job()
    world.cache.job_gone("uid-train")
    world.cache.job_changed(world.stamped(raw, "train", "uid-train"))

    assert {} == world.cache.jobs
    assert [] == world.admitted()


def test_a_new_job_of_the_same_name_takes_its_place_in_any_order() -> None:
    world = World()
    world.job(uid="old")
    world.job(uid="new")
    world.cache.job_gone("old")

    assert ["new"] == list(world.cache.jobs)
    assert ["team/train"] == world.admitted()


def test_a_gang_counts_from_the_moment_of_its_decision() -> None:
    world = World()
    world.job("first")
    world.job("second")
    (decision,) = world.plan().admitted
    record = world.cache.by_key(decision.gang)
    assert record is not None
    world.cache.decide(record, Decision(NOW, 0.0, start=decision))

    assert [] == world.admitted()

    world.cache.decide(record, None)

    assert [decision.gang] == world.admitted()


def test_its_own_pods_do_not_count_twice() -> None:
    world = World(gpus=16)
    raw = world.placed_job()
    for replica in range(2):
        world.pod(raw, replica)
    world.job("second")

    assert ["team/second"] == world.admitted()


def test_leftovers_of_a_deleted_job_hold_their_gpus() -> None:
    world = World()
    raw = world.placed_job()
    pods = [world.pod(raw, replica) for replica in range(2)]
    world.cache.job_gone("uid-train")
    world.job("second")

    assert [] == world.admitted()

    for pod in pods:
        world.cache.pod_gone(pod)

    assert ["team/second"] == world.admitted()


def test_a_pod_that_is_over_holds_nothing() -> None:
    world = World()
    raw = world.placed_job()
    world.cache.job_gone("uid-train")
    world.pod(raw, 0)
    world.pod(raw, 0, "Succeeded")
    world.job("second")

    assert ["team/second"] == world.admitted()


def test_a_job_with_a_live_pod_of_its_own_is_not_planned() -> None:
    world = World(nodes=2)
    raw = world.job()
    pod = world.pod(raw, 0)

    assert [] == world.admitted()

    world.cache.pod_gone(pod)

    assert ["team/train"] == world.admitted()


NOT_PLANNED = {
    "suspended": {"suspend": True},
    "of an unknown queue": {"queue": "nowhere"},
    "of an unknown level": {"topology": {"required": "planet"}},
    "with a node of its own choice": {
        "template": {"spec": {"nodeName": "n0", "containers": [{"name": "c"}]}}
    },
    "that cannot be read": {"replicas": "many"},
    "that is being deleted": {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
    "that is over": {"status": {"phase": "Failed"}},
    "whose pause is not over": {"status": {"phase": "Pending", "retryAt": "1970-01-01T00:16:41Z"}},
}


@pytest.mark.parametrize("claim", NOT_PLANNED)
def test_no_plan_for_a_job(claim: str) -> None:
    world = World()
    world.job(**copy.deepcopy(NOT_PLANNED[claim]))

    assert [] == [decision.gang for decision in world.plan().decisions]


def test_a_pause_ends() -> None:
    world = World()
    world.job(status={"phase": "Pending", "retryAt": "1970-01-01T00:16:41Z"})
    world.now = 1001.0
    world.cache.settle(world.cache.jobs["uid-train"])

    assert ["team/train"] == world.admitted()


def test_a_queue_that_comes_lets_its_jobs_in_and_one_that_goes_does_not() -> None:
    world = World()
    world.job(queue="late")
    queue = world.put("queues", "late", spec={})

    assert ["team/train"] == world.admitted()

    world.cache.around_gone("queues", "late", queue["metadata"]["uid"])
    objection = world.cache.jobs["uid-train"].objection

    assert objection is not None
    assert "UnknownQueue" == objection.reason
    assert [] == world.admitted()


def test_the_levels_are_those_of_the_default_topology() -> None:
    world = World()
    world.job(topology={"required": "rack"})
    levels = [{"name": "rack", "label": "l"}]
    world.put("topologies", "other", spec={"levels": levels})

    assert () == world.cache.around.levels

    topology = world.put("topologies", "default", spec={"levels": levels})

    assert world.cache.jobs["uid-train"].objection is None

    world.cache.around_gone("topologies", "default", topology["metadata"]["uid"])

    assert world.cache.jobs["uid-train"].objection is not None


def test_a_node_that_goes_is_news_to_the_gangs_on_it() -> None:
    world = World(nodes=2)
    raw = world.placed_job()
    world.pod(raw, 0)
    record = world.cache.jobs["uid-train"]
    world.marked.clear()
    world.node("n1", ready="Unknown")

    assert [] == world.marked

    world.node("n0", ready="Unknown")

    assert ["uid-train"] == world.marked
    assert NodeState.UNREACHABLE is world.cache.scene(record, NOW, Rules()).pods[0].node_state

    world.cache.around_gone("nodes", "n0", "uid-n0")

    assert NodeState.GONE is world.cache.scene(record, NOW, Rules()).pods[0].node_state


def test_a_heartbeat_is_no_news() -> None:
    world = World()
    before = world.triggers
    world.node("n0")

    assert before == world.triggers


def test_a_node_of_the_same_name_is_not_removed_with_the_old_one() -> None:
    world = World()
    status = world.nodes[0]["status"]
    world.put("nodes", "n0", uid="new", status=status)
    world.cache.around_gone("nodes", "n0", "uid-n0")

    assert NodeState.UP is world.cache.around.node_state("n0")


def test_what_cannot_be_read_is_as_good_as_gone() -> None:
    world = World()
    world.put("nodes", "n0", status={"allocatable": {"cpu": "lots"}})
    world.job()

    assert [] == world.admitted()


def test_what_a_list_does_not_have_is_gone_unless_it_is_newer() -> None:
    world = World()
    world.job("old")
    version = world.version
    world.job("new")

    assert ["uid-old"] == world.cache.versions.missing_from({}, version)
    assert [("n0", "uid-n0")] == world.cache.around.missing("nodes", {}, version)


def test_the_seen_replicas_are_those_of_the_current_attempt() -> None:
    world = World()
    raw = world.placed_job()
    world.pod(raw, 1)
    record = world.cache.jobs["uid-train"]
    record.refusal = "of the last attempt"

    assert frozenset({1}) == world.cache.scene(record, NOW, Rules()).job.seen
    assert {20_000} == world.cache.ports()

    again = placed(record.status, ("n0",), "", gpus=1, port=20_001, now=NOW)
    world.job(status=difference(JobStatus(), again))
    facts = world.cache.scene(record, NOW, Rules()).job

    assert (frozenset(), None) == (facts.seen, facts.refusal)


def test_what_goes_wrong_is_urgent_and_what_goes_well_is_not() -> None:
    world = World()
    raw = world.placed_job()
    world.pod(raw, 0, "Running")

    assert not world.urgent

    world.pod(raw, 0, "Failed")

    assert world.urgent


def test_a_pod_that_is_to_go_is_not_told_so_twice() -> None:
    world = World()
    raw = world.job()
    world.pod(raw, 0)
    record = world.cache.jobs["uid-train"]
    world.cache.mark_deleting(record, "pod-0", NOW)

    assert NOW == world.cache.scene(record, NOW, Rules()).pods[0].deleting_since


def test_decisions_name_gangs_that_the_cache_knows() -> None:
    world = World()
    world.job()
    (decision,) = world.plan().decisions

    assert isinstance(decision, Admit)
    assert world.cache.by_key("team/other") is None
