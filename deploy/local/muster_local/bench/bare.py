"""The yardstick: the same client only creating the same pods on their nodes.

No operator, no decision, no status: what the API server of this machine takes at best from a
Python client. Muster's rate is told as a fraction of it, so that a slow or busy machine does not
change the verdict.
"""

import asyncio
import time
from typing import Any, Final

import orjson

from muster_kube import NAMESPACES, PODS, Kind, Kube, reflect
from muster_local.progress import Tell

CONCURRENCIES: Final = (16, 32, 64)
_PLAY_SECONDS: Final = 90.0
_SERVER_SET: Final = (
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "managedFields",
    "generation",
    "ownerReferences",
)


def bare_pod(pod: dict[str, Any], namespace: str) -> bytes:
    """The body with which *pod* could have been created in *namespace*, already serialised."""
    metadata = {k: v for k, v in pod["metadata"].items() if k not in _SERVER_SET}
    metadata["namespace"] = namespace
    spec = dict(pod["spec"])
    # Added by admission at the first creation; it would be added a second time.
    spec.pop("serviceAccount", None)
    return orjson.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})


async def best_rate(kube: Kube, pods: list[dict[str, Any]], tell: Tell) -> float:
    """Pods per second of the best of several concurrencies, each creating all of *pods* anew."""
    # What the fake nodes have left to do for our own pods would slow the yardstick down.
    await _played(kube, str(pods[0]["metadata"]["namespace"]))
    best = 0.0
    for workers in CONCURRENCIES:
        tell(f"creating the same pods without an operator, {workers} at once")
        best = max(best, await _rate(kube, pods, workers))
    return best


async def _rate(kube: Kube, pods: list[dict[str, Any]], workers: int) -> float:
    namespace = f"bare-{workers}"
    await kube.create(NAMESPACES.path(), {"metadata": {"name": namespace}})
    await default_account(kube, namespace)
    bodies = iter([bare_pod(pod, namespace) for pod in pods])
    path = PODS.path(namespace)

    async def work() -> None:
        for body in bodies:
            await kube.create(path, body)

    started = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(workers)))
    seconds = time.perf_counter() - started
    await _played(kube, namespace)
    return len(pods) / seconds


async def _played(kube: Kube, namespace: str) -> None:
    """Wait until the fake nodes run all pods, so that they disturb the next round little.

    Not for ever: KWOK is slower than we are, and the best round counts.
    """
    path, pending = PODS.path(namespace), {"fieldSelector": "status.phase=Pending", "limit": "1"}
    deadline = time.monotonic() + _PLAY_SECONDS
    while time.monotonic() < deadline:
        if not (await kube.get(path, **pending))["items"]:
            return
        await asyncio.sleep(0.2)


async def default_account(kube: Kube, namespace: str) -> None:
    """Wait for the service account without which no pod is admitted."""
    async for change in reflect(kube, f"/api/v1/namespaces/{namespace}/serviceaccounts"):
        if change.kind is Kind.ADDED:
            return
