"""What each component and each kind of user may do: exactly what the tables say."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import yaml

from clusters import RunningCluster
from eventually import eventually
from muster import wire
from muster_kube import Kube
from muster_local import resources

pytestmark = pytest.mark.integration

READ = {"get", "list", "watch"}
VERBS = (*sorted(READ), "create", "update", "patch", "delete", "deletecollection")

# Everything that a component could be tempted to touch: `group/resource`.
RESOURCES = (
    "muster.dev/trainingjobs",
    "muster.dev/trainingjobs/status",
    "muster.dev/trainingjobs/finalizers",
    "muster.dev/queues",
    "muster.dev/queues/status",
    "muster.dev/topologies",
    "muster.dev/topologies/status",
    "muster.dev/snapshots",
    "muster.dev/decisions",
    "/pods",
    "/pods/log",
    "/pods/exec",
    "/pods/status",
    "/services",
    "/events",
    "/nodes",
    "/nodes/status",
    "/namespaces",
    "/resourcequotas",
    "/configmaps",
    "/secrets",
    "/serviceaccounts",
    "/serviceaccounts/token",
    "/persistentvolumeclaims",
    "apps/deployments",
    "coordination.k8s.io/leases",
    "apiextensions.k8s.io/customresourcedefinitions",
    "rbac.authorization.k8s.io/clusterroles",
    "rbac.authorization.k8s.io/clusterrolebindings",
    "admissionregistration.k8s.io/validatingadmissionpolicies",
    "authentication.k8s.io/tokenreviews",
    "authorization.k8s.io/subjectaccessreviews",
)

# What every account may do anyway.
EVERYBODY = {"muster.dev/queues": READ, "muster.dev/topologies": READ}

WATCH = {"list", "watch"}
COMPONENTS: dict[str, dict[str, set[str]]] = {
    "muster-operator": {
        "muster.dev/trainingjobs": READ | {"patch", "delete"},
        "muster.dev/trainingjobs/status": {"patch"},
        "muster.dev/trainingjobs/finalizers": {"update"},
        "muster.dev/queues/status": {"patch"},
        "muster.dev/topologies/status": {"patch"},
        "/pods": READ | {"create", "delete"},
        "/services": {"get", "create"},
        "/events": {"create"},
        "/nodes": WATCH,
        "/resourcequotas": WATCH,
        "authentication.k8s.io/tokenreviews": {"create"},
        "authorization.k8s.io/subjectaccessreviews": {"create"},
    },
    "muster-api": {
        "muster.dev/trainingjobs": {"get", "create", "delete"},
        "muster.dev/snapshots": {"get"},
        "muster.dev/decisions": {"get"},
        "/pods": {"get"},
        "authentication.k8s.io/tokenreviews": {"create"},
        "authorization.k8s.io/subjectaccessreviews": {"create"},
    },
    "muster-recorder": {
        "muster.dev/trainingjobs": READ | {"patch"},
        "muster.dev/trainingjobs/status": {"patch"},
        "/pods": WATCH,
        "/nodes": WATCH,
    },
}


@pytest.fixture
async def kube(cluster: RunningCluster) -> AsyncIterator[Kube]:
    async with await Kube.connect(cluster.kubeconfig) as client:
        yield client


async def is_allowed(
    kube: Kube,
    user: str,
    verb: str,
    resource: str,
    *,
    namespace: str = "",
    name: str = "",
    groups: tuple[str, ...] = ("system:authenticated",),
) -> bool:
    """Whether *user* may do *verb* to *resource* (`group/resource[/subresource]`)."""
    group, kind, *below = resource.split("/")
    attributes = {
        "verb": verb,
        "group": group,
        "resource": kind,
        "subresource": "/".join(below),
        "namespace": namespace,
        "name": name,
    }
    answer = await kube.create(
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": user, "groups": list(groups), "resourceAttributes": attributes},
        },
    )
    return bool(answer["status"]["allowed"])


async def rights(kube: Kube, user: str, **where: str) -> dict[str, set[str]]:
    """All that *user* may do to `RESOURCES`."""
    asked = [(resource, verb) for resource in RESOURCES for verb in VERBS]
    answers = await asyncio.gather(
        *(is_allowed(kube, user, verb, resource, **where) for resource, verb in asked)
    )
    found: dict[str, set[str]] = {}
    for (resource, verb), allowed in zip(asked, answers, strict=True):
        if allowed:
            found.setdefault(resource, set()).add(verb)
    return found


@pytest.mark.parametrize("account", COMPONENTS)
async def test_a_component_may_do_what_it_uses_and_no_more(kube: Kube, account: str) -> None:
    user = f"system:serviceaccount:{wire.SYSTEM_NAMESPACE}:{account}"
    # In any namespace, and for cluster-wide kinds.
    assert EVERYBODY | COMPONENTS[account] == await rights(kube, user)


async def test_the_recorder_reads_the_prices_and_no_other_config_map(kube: Kube) -> None:
    user = f"system:serviceaccount:{wire.SYSTEM_NAMESPACE}:muster-recorder"

    async def may(verb: str, name: str, namespace: str = wire.SYSTEM_NAMESPACE) -> bool:
        return await is_allowed(kube, user, verb, "/configmaps", namespace=namespace, name=name)

    assert await may("list", "muster-prices")
    assert await may("watch", "muster-prices")
    assert not await may("patch", "muster-prices")
    assert not await may("list", "other")
    assert not await may("list", "")
    assert not await may("list", "muster-prices", namespace="default")


async def test_the_api_makes_tokens_of_its_own_account_only(kube: Kube) -> None:
    user = f"system:serviceaccount:{wire.SYSTEM_NAMESPACE}:muster-api"

    async def may(name: str, namespace: str = wire.SYSTEM_NAMESPACE) -> bool:
        where = {"namespace": namespace, "name": name}
        return await is_allowed(kube, user, "create", "/serviceaccounts/token", **where)

    assert await may("muster-api")
    assert not await may("muster-operator")
    assert not await may("muster-api", namespace="default")


async def test_the_recorder_reads_the_one_namespace_that_tells_clusters_apart(kube: Kube) -> None:
    user = f"system:serviceaccount:{wire.SYSTEM_NAMESPACE}:muster-recorder"
    assert await is_allowed(kube, user, "get", "/namespaces", name="kube-system")
    assert not await is_allowed(kube, user, "get", "/namespaces", name="default")


async def test_everybody_who_is_known_reads_queues_and_levels(kube: Kube) -> None:
    assert EVERYBODY == await rights(kube, "jane")
    assert not await is_allowed(
        kube, "system:anonymous", "list", "muster.dev/queues", groups=("system:unauthenticated",)
    )


VIEW = {"muster.dev/trainingjobs": READ, "muster.dev/trainingjobs/status": READ}
EDIT = VIEW | {
    "muster.dev/trainingjobs": READ | {"create", "update", "patch", "delete", "deletecollection"}
}
ROLES = {"view": VIEW, "edit": EDIT, "admin": EDIT}


@pytest.mark.parametrize("role", ROLES)
async def test_the_roles_of_a_namespace_hold_for_its_jobs(
    kube: Kube, namespace: str, role: str
) -> None:
    await kube.create(
        f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings",
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "jane"},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": role,
            },
            "subjects": [
                {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"}
            ],
        },
    )

    async def ours() -> bool:
        found = await rights(kube, "jane", namespace=namespace)
        jobs = {key: verbs for key, verbs in found.items() if "/trainingjobs" in key}
        assert ROLES[role] == jobs
        return True

    # A controller gathers the rules of roles that others are added to.
    await eventually(ours)
    assert EVERYBODY == await rights(kube, "jane", namespace="default")


def _rules() -> Iterator[tuple[str, dict[str, Any]]]:
    for file in sorted((resources.chart() / "files").glob("rbac-*.yaml")):
        for manifest in yaml.safe_load_all(file.read_text()):
            for rule in manifest.get("rules", ()):
                yield manifest["metadata"]["name"], rule


def test_no_rule_has_a_wildcard() -> None:
    wild = [(name, rule) for name, rule in _rules() if "*" in str(rule)]
    assert [] == wild
