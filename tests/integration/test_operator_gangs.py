"""A gang starts whole or not at all, and its status tells why."""

from collections.abc import AsyncIterator

import pytest

from clusters import RunningCluster
from eventually import eventually, stays
from muster import wire
from muster_kube import JOBS, NODES, PODS, SERVICES
from operators import Stage, kubelet, operating, operator_settings, staged

pytestmark = pytest.mark.integration


@pytest.fixture
async def stage(cluster: RunningCluster, namespace: str) -> AsyncIterator[Stage]:
    async with staged(cluster.kubeconfig, namespace) as stage:
        settings = operator_settings(
            cluster.kubeconfig_of("muster-operator"), api_url="http://api:8080"
        )
        async with kubelet(stage), operating(settings):
            yield stage


async def test_a_gang_runs_whole_and_gives_its_gpus_back(stage: Stage) -> None:
    await stage.add_nodes(2)
    await stage.create_job(replicas=4)
    pods = await stage.has_pods(4)
    assert [f"train-1-{replica}-0" for replica in range(4)] == [
        pod["metadata"]["name"] for pod in pods
    ]
    await stage.becomes("Starting", attempt=1, gang="0/4")
    await stage.set_pods("Running")
    status = await stage.becomes("Running", gang="4/4")
    assert sorted(stage.nodes * 2) == sorted(status["placement"]["nodes"])
    await stage.set_pods("Succeeded")
    status = await stage.becomes("Succeeded", reason="Succeeded")
    assert "placement" not in status
    assert ["Succeeded"] == [attempt["outcome"] for attempt in status["attempts"]]
    await stage.told("Admitted", "Running", "Succeeded")


async def test_each_replica_knows_its_place(stage: Stage) -> None:
    await stage.add_nodes(1)
    job = await stage.create_job(
        replicas=2, checkpoint={"uri": "s3://bucket/runs/"}, processesPerReplica=3
    )
    pods = await stage.has_pods(2)
    placement = (await stage.status())["placement"]
    for replica, pod in enumerate(pods):
        container = pod["spec"]["containers"][0]
        environment = {v["name"]: v["value"] for v in container["env"]}
        assert str(replica) == environment[wire.ENV_REPLICA]
        assert str(replica) == environment[wire.ENV_PET_NODE_RANK]
        assert ("2", "3") == (
            environment[wire.ENV_PET_NNODES],
            environment[wire.ENV_PET_NPROC_PER_NODE],
        )
        assert f"train-0.train.{stage.namespace}.svc" == environment[wire.ENV_MASTER_ADDR]
        assert str(placement["port"]) == environment[wire.ENV_MASTER_PORT]
        uri = f"s3://bucket/runs/{job['metadata']['uid']}"
        assert uri == environment[wire.ENV_CHECKPOINT_URI]
        assert placement["nodes"][replica] == pod["spec"]["nodeName"]
        assert (f"train-{replica}", "train") == (pod["spec"]["hostname"], pod["spec"]["subdomain"])
        assert "4" == container["resources"]["limits"]["nvidia.com/gpu"]
    service = await stage.kube.get(SERVICES.path(stage.namespace, "train"))
    assert "None" == service["spec"]["clusterIP"]
    assert [job["metadata"]["uid"]] == [o["uid"] for o in service["metadata"]["ownerReferences"]]


async def test_of_two_that_need_more_than_half_one_runs_whole(stage: Stage) -> None:
    await stage.add_nodes(2)
    await stage.create_job("first", replicas=3)
    await stage.has_pods(3, "first")
    await stage.create_job("second", replicas=3)
    status = await stage.becomes("Pending", "second", gang="0/3", queuePosition=1)
    assert status["reason"] in ("InsufficientCapacity", "Fragmented")
    assert "GPU" in status["message"]
    assert "placement" not in status
    admitted = next(c for c in status["conditions"] if c["type"] == "Admitted")
    assert ("False", status["reason"]) == (admitted["status"], admitted["reason"])
    assert [] == await stage.pods("second")
    await stage.set_pods("Running", "first")
    await stage.set_pods("Succeeded", "first")
    await stage.has_pods(3, "second")
    await stage.told("Queued", "Admitted", name="second")


async def test_other_peoples_pods_count(stage: Stage) -> None:
    (node,) = await stage.add_nodes(1)
    foreign = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "theirs", "namespace": stage.namespace},
        "spec": {
            "nodeName": node,
            "containers": [
                {"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "4"}}}
            ],
        },
    }
    pod = await stage.kube.create(PODS.path(stage.namespace), foreign)
    await stage.create_job(replicas=2)
    await stage.becomes("Pending")
    await stays(lambda: _has_no_pods(stage), during=0.5)
    await stage.set_pod(pod, "Succeeded")
    await stage.has_pods(2)


async def test_a_job_that_nothing_can_hold_is_told_so(stage: Stage) -> None:
    await stage.add_nodes(1)
    await stage.create_job(replicas=1, gpusPerReplica=9)
    status = await stage.becomes("Pending")
    assert status["reason"] in ("NeverFits", "NoMatchingNodes"), status
    assert [] == await stage.pods()


async def test_kopf_writes_nothing(stage: Stage) -> None:
    await stage.add_nodes(1)
    await stage.create_job()
    await stage.has_pods(2)
    await stage.set_pods("Running")
    await stage.becomes("Running")
    job = await stage.job()
    managers = {entry["manager"] for entry in job["metadata"]["managedFields"]}
    assert {wire.OPERATOR_MANAGER} == {m for m in managers if "python" not in m.lower()}
    assert [wire.RECORDER_FINALIZER] == job["metadata"]["finalizers"]
    assert not [a for a in job["metadata"].get("annotations", {}) if "kopf" in a]
    node = await stage.kube.get(NODES.path(name=stage.nodes[0]))
    assert "kopf" not in str(node["metadata"])


async def test_an_idle_job_is_not_written_to(stage: Stage) -> None:
    await stage.add_nodes(1)
    await stage.create_job(replicas=4)
    await stage.becomes("Pending")
    await eventually(lambda: _is_settled(stage))
    version = (await stage.job())["metadata"]["resourceVersion"]

    async def is_unchanged() -> bool:
        return bool(version == (await stage.job())["metadata"]["resourceVersion"])

    await stays(is_unchanged, during=1.0)


async def test_a_job_of_the_same_name_does_not_adopt_the_pods_of_the_old_one(
    stage: Stage,
) -> None:
    await stage.add_nodes(1)
    await stage.create_job()
    old = {pod["metadata"]["uid"] for pod in await stage.has_pods(2)}
    path = JOBS.path(stage.namespace, "train")
    await stage.kube.delete(path)
    await eventually(lambda: _is_gone(stage))
    new = await stage.create_job()

    async def has_own_pods() -> bool:
        pods = [p for p in await stage.pods() if p["metadata"]["uid"] not in old]
        owners = {o["uid"] for p in pods for o in p["metadata"]["ownerReferences"]}
        return len(pods) == 2 and owners == {new["metadata"]["uid"]}

    await eventually(has_own_pods)


async def _has_no_pods(stage: Stage) -> bool:
    return not await stage.pods()


async def _is_gone(stage: Stage) -> bool:
    items, _ = await stage.kube.list(JOBS.path(stage.namespace))
    return not items


async def _is_settled(stage: Stage) -> bool:
    before = (await stage.job())["metadata"]["resourceVersion"]
    await stays(lambda: True, during=0.5)
    return bool(before == (await stage.job())["metadata"]["resourceVersion"])
