"""Who created a job, as the API server records it."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from clusters import RunningCluster
from eventually import eventually
from muster import wire
from muster_kube import JOBS, Invalid, Kube

pytestmark = pytest.mark.integration

ADMIN = "system:serviceaccount:muster-system:muster-admin"
CANNOT_CHANGE = r"metadata.annotations\[muster.dev/user\]: cannot change"


def a_job(name: str = "job", annotations: dict[str, str] | None = None) -> dict[str, Any]:
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {"name": name} | ({"annotations": annotations} if annotations else {}),
        "spec": {"template": {"spec": {"containers": [{"name": "train"}]}}},
    }


def user_of(job: dict[str, Any]) -> str | None:
    annotations: dict[str, str] = job["metadata"].get("annotations") or {}
    return annotations.get(wire.ANNOTATION_USER)


@pytest.fixture
async def kube(cluster: RunningCluster, namespace: str) -> AsyncIterator[Kube]:
    async with await Kube.connect(cluster.kubeconfig) as client:

        async def is_in_force() -> bool:
            made = await client.create(JOBS.path(namespace), a_job("probe"), dryRun="All")
            return user_of(made) is not None

        # A new policy is in force a moment after its creation.
        await eventually(is_in_force)
        yield client


@pytest.fixture
async def api(cluster: RunningCluster) -> AsyncIterator[Kube]:
    """Muster's API, which has reviewed the rights of the user that it creates a job for."""
    async with await Kube.connect(cluster.kubeconfig_of("muster-api")) as client:
        yield client


async def test_the_user_of_a_job_is_recorded(kube: Kube, namespace: str) -> None:
    made = await kube.create(JOBS.path(namespace), a_job())
    assert ADMIN == user_of(made)


async def test_other_annotations_stay_beside_it(kube: Kube, namespace: str) -> None:
    made = await kube.create(JOBS.path(namespace), a_job(annotations={"note": "n"}))
    assert {"note": "n", wire.ANNOTATION_USER: ADMIN} == made["metadata"]["annotations"]


async def test_nobody_creates_a_job_in_the_name_of_another(kube: Kube, namespace: str) -> None:
    claimed = {wire.ANNOTATION_USER: "jane"}
    made = await kube.create(JOBS.path(namespace), a_job(annotations=claimed))
    assert ADMIN == user_of(made)


async def test_the_api_says_for_whom_it_creates_a_job(
    kube: Kube, api: Kube, namespace: str
) -> None:
    claimed = {wire.ANNOTATION_USER: "jane"}
    made = await api.create(JOBS.path(namespace), a_job(annotations=claimed))
    assert "jane" == user_of(made)


async def test_a_job_that_the_api_creates_for_nobody_is_its_own(
    kube: Kube, api: Kube, namespace: str
) -> None:
    made = await api.create(JOBS.path(namespace), a_job())
    assert "system:serviceaccount:muster-system:muster-api" == user_of(made)


@pytest.mark.parametrize("to", ["jane", "", None], ids=["another", "nobody", "removed"])
async def test_the_user_of_a_job_never_changes(kube: Kube, namespace: str, to: str | None) -> None:
    path = JOBS.path(namespace, "job")
    await kube.create(JOBS.path(namespace), a_job())
    change = {"metadata": {"annotations": {wire.ANNOTATION_USER: to}}}
    if to is None:
        # Left out, it is put back.
        assert ADMIN == user_of(await kube.patch(path, change))
    else:
        with pytest.raises(Invalid, match=CANNOT_CHANGE):
            await kube.patch(path, change)
    assert ADMIN == user_of(await kube.get(path))


async def test_not_even_the_operator_changes_it(
    cluster: RunningCluster, kube: Kube, namespace: str
) -> None:
    await kube.create(JOBS.path(namespace), a_job())
    change = {"metadata": {"annotations": {wire.ANNOTATION_USER: "jane"}}}
    async with await Kube.connect(cluster.kubeconfig_of("muster-operator")) as operator:
        with pytest.raises(Invalid, match=CANNOT_CHANGE):
            await operator.patch(JOBS.path(namespace, "job"), change)


async def test_a_job_is_replaced_by_a_file_that_does_not_name_its_user(
    kube: Kube, namespace: str
) -> None:
    path = JOBS.path(namespace, "job")
    made = await kube.create(JOBS.path(namespace), a_job())
    made["metadata"].pop("annotations")
    made["spec"]["priority"] = 3
    replaced = await kube.replace(path, made)
    assert (ADMIN, 3) == (user_of(replaced), replaced["spec"]["priority"])


async def test_what_the_platform_writes_passes(
    cluster: RunningCluster, kube: Kube, namespace: str
) -> None:
    path = JOBS.path(namespace, "job")
    await kube.create(JOBS.path(namespace), a_job())
    async with await Kube.connect(cluster.kubeconfig_of("muster-operator")) as operator:
        await operator.patch(path, {"metadata": {"finalizers": [wire.RECORDER_FINALIZER]}})
        await operator.patch(f"{path}/status", {"status": {"phase": "Pending"}})
    async with await Kube.connect(cluster.kubeconfig_of("muster-recorder")) as recorder:
        applied = a_job() | {"status": {"progress": {"epoch": 3}}}
        applied.pop("spec")
        options = {"fieldManager": wire.RECORDER_MANAGER, "force": "true"}
        await recorder.patch(f"{path}/status", applied, kind="apply", **options)
        await recorder.patch(path, {"metadata": {"finalizers": None}})
    written = await kube.get(path)
    assert "finalizers" not in written["metadata"]
    assert {"phase": "Pending", "progress": {"epoch": 3}} == written["status"]
