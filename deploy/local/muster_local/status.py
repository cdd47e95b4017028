"""How a local cluster is at this moment."""

import asyncio
from typing import Any

from muster import wire
from muster_kube import NODES, ApiError, Kube
from muster_local import recipes
from muster_local.component import CONTROL_PLANE, Component
from muster_local.furnish import is_ready
from muster_local.hardware import KWOK_MARK
from muster_local.probes import answers
from muster_local.state import Cluster


def report(cluster: Cluster) -> dict[str, Any]:
    """The cluster as `status -o json` shows it; nodes only while the API server answers."""
    return {
        "name": cluster.name,
        "kubeconfig": str(cluster.kubeconfig),
        "components": [
            {
                "name": each.name,
                "kind": each.kind,
                "pid": each.pid,
                "url": each.url,
                "ready": _is_ready(each, cluster),
            }
            for each in cluster.components
        ],
        "nodes": asyncio.run(_nodes(cluster)),
    }


def is_whole(report: dict[str, Any]) -> bool:
    """Whether all components of a report are ready."""
    return bool(report["components"]) and all(each["ready"] for each in report["components"])


def _is_ready(component: Component, cluster: Cluster) -> bool:
    if not component.is_alive():
        return False
    pki = cluster.directory / "pki"
    if component.name == recipes.ETCD:
        server = cluster.component(recipes.API_SERVER)
        url = (server.url if server else None) or ""
        return answers(url, "/readyz/etcd", pki=pki)
    if component.url is None:
        return True
    if component.name == recipes.API_SERVER:
        return answers(component.url, "/readyz", pki=pki)
    path = "/healthz" if component.kind == CONTROL_PLANE else "/readyz"
    return answers(component.url, path)


async def _nodes(cluster: Cluster) -> list[dict[str, Any]]:
    kubeconfig = cluster.directory / "pki" / "bootstrap.kubeconfig"
    if not kubeconfig.exists():
        return []
    try:
        async with await Kube.connect(kubeconfig) as kube:
            nodes, _ = await kube.list(NODES.path())
    except ApiError:
        return []
    return [_node(each) for each in sorted(nodes, key=lambda each: str(each["metadata"]["name"]))]


def _node(node: dict[str, Any]) -> dict[str, Any]:
    metadata = node["metadata"]
    labels = metadata.get("labels") or {}
    is_kwok = KWOK_MARK in (metadata.get("annotations") or {})
    return {
        "name": metadata["name"],
        "kind": "kwok" if is_kwok else "process",
        "ready": is_ready(node),
        "gpus": int((node["status"].get("capacity") or {}).get(wire.GPU_RESOURCE, 0)),
        "domains": {
            level: labels[f"{wire.GROUP}/{level}"]
            for level in ("block", "rack")
            if f"{wire.GROUP}/{level}" in labels
        },
    }
